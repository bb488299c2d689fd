import type { AddressFamily, ChainId } from '../domain/catalog/networks.ts'
import type { KeyPath } from '../domain/payouts/intent.ts'
import type { InstantMs } from '../domain/time.ts'
import { errorCode, type Sql } from './database.ts'

export type OwnAddress = {
  readonly address: string
  readonly key: KeyPath
  /** The order it was given to, and the chain that order's deposit is expected on. */
  readonly orderId: string | null
  readonly chain: ChainId | null
}

/** Which of these are ours; the one question a block asks. */
export async function findOwnAddresses(
  sql: Sql,
  family: AddressFamily,
  addresses: readonly string[],
): Promise<Map<string, OwnAddress>> {
  if (addresses.length === 0) return new Map()
  const rows = await sql.query<AddressRow>(
    'SELECT address, purpose, key_index, order_id, chain FROM addresses WHERE family = $1 AND address = ANY($2)',
    [family, addresses],
  )
  return new Map(rows.map((row) => [row.address, toOwn(row)]))
}

type AddressRow = {
  address: string
  purpose: KeyPath['purpose']
  key_index: number
  order_id: string | null
  chain: ChainId | null
}

function toOwn({ address, purpose, key_index, order_id, chain }: AddressRow): OwnAddress {
  return { address, key: { purpose, index: key_index }, orderId: order_id, chain }
}

/** The addresses of the keys from `firstIndex` to before `endIndex`, whatever they are for. */
export async function readAddressesOfKeys(
  sql: Sql,
  family: AddressFamily,
  firstIndex: number,
  endIndex: number,
): Promise<readonly OwnAddress[]> {
  const rows = await sql.query<AddressRow>(
    `SELECT address, purpose, key_index, order_id, chain FROM addresses
     WHERE family = $1 AND purpose IN ('deposit', 'reserve', 'change') AND key_index >= $2 AND key_index < $3`,
    [family, firstIndex, endIndex],
  )
  return rows.map(toOwn)
}

/** -1 while there is none. */
export async function readLastKeyIndex(sql: Sql, family: AddressFamily): Promise<number> {
  const [row] = await sql.query<{ last: number }>(
    'SELECT coalesce(max(key_index), -1) AS last FROM addresses WHERE family = $1',
    [family],
  )
  return row?.last ?? -1
}

/** A ready change address, used once. */
export async function takeChangeAddress(
  tx: Sql,
  family: AddressFamily,
  chain: ChainId,
  nowMs: InstantMs,
): Promise<{ readonly address: string; readonly key: KeyPath } | null> {
  const [row] = await tx.query<{ address: string; key_index: number }>(
    `UPDATE addresses SET chain = $2, assigned_at_ms = $3
     WHERE (family, address) IN (
       SELECT family, address FROM addresses
       WHERE family = $1 AND purpose = 'change' AND assigned_at_ms IS NULL
       ORDER BY key_index LIMIT 1 FOR UPDATE SKIP LOCKED)
     RETURNING address, key_index`,
    [family, chain, nowMs],
  )
  return row === undefined ? null : { address: row.address, key: { purpose: 'change', index: row.key_index } }
}

export type PoolName = { readonly family: AddressFamily; readonly purpose: KeyPath['purpose'] }

/** How many addresses wait, and the next key to make one from. */
export type Pool = { readonly free: number; readonly nextIndex: number }

/** One for each name, in the order of the names. */
export function readPools(sql: Sql, names: readonly PoolName[]): Promise<Pool[]> {
  return sql.query<Pool>(
    `SELECT place,
       (SELECT count(*)::int FROM addresses a
        WHERE a.family = pool.family AND a.purpose = pool.purpose AND assigned_at_ms IS NULL) AS free,
       (SELECT coalesce(max(key_index) + 1, 0) FROM addresses a
        WHERE a.family = pool.family AND a.purpose = pool.purpose) AS "nextIndex"
     FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS pool (family, purpose, place) ORDER BY place`,
    [names.map(({ family }) => family), names.map(({ purpose }) => purpose)],
  )
}

/** Every deposit address that waits for an order is assigned from now on, to none; how many those were. */
export async function assignFreeDeposits(sql: Sql, family: AddressFamily, nowMs: InstantMs): Promise<number> {
  const [row] = await sql.query<{ count: number }>(
    `WITH assigned AS (
       UPDATE addresses SET assigned_at_ms = $2
       WHERE family = $1 AND purpose = 'deposit' AND assigned_at_ms IS NULL RETURNING 1
     ) SELECT count(*)::int AS count FROM assigned`,
    [family, nowMs],
  )
  return row?.count ?? 0
}

/**
 * Puts addresses into the pool; with `assignedAtMs` they are assigned at once, and no order ever gets them. Two processes that made
 * the same ones agree, because both derive them alike. Throws, and puts none of them in, where a key is stored with another address:
 * these are of another keystore, or of another network.
 */
export async function insertAddresses(
  sql: Sql,
  family: AddressFamily,
  purpose: KeyPath['purpose'],
  firstIndex: number,
  addresses: readonly string[],
  assignedAtMs: InstantMs | null = null,
): Promise<void> {
  const values = [family, purpose, firstIndex, addresses]
  try {
    // Only an address that is the same leaves the column something to hold, whoever wrote it a moment ago.
    await sql.query(
      `INSERT INTO addresses (family, address, purpose, key_index, assigned_at_ms)
       SELECT $1, address, $2, $3 + ordinal - 1, $5::bigint
       FROM unnest($4::text[]) WITH ORDINALITY AS a (address, ordinal)
       ON CONFLICT (family, purpose, key_index) DO UPDATE
         SET address = CASE WHEN addresses.address = excluded.address THEN excluded.address END,
           assigned_at_ms = coalesce(addresses.assigned_at_ms, excluded.assigned_at_ms)`,
      [...values, assignedAtMs],
    )
  } catch (error) {
    if (errorCode(error) !== NOT_NULL_VIOLATION) throw error
    const [other] = await sql.query<{ index: number; stored: string; made: string }>(
      `SELECT key_index AS index, addresses.address AS stored, made.address AS made
       FROM unnest($4::text[]) WITH ORDINALITY AS made (address, ordinal)
       JOIN addresses ON family = $1 AND purpose = $2 AND key_index = $3 + ordinal - 1
       WHERE addresses.address <> made.address ORDER BY key_index LIMIT 1`,
      values,
    )
    if (other === undefined) throw error
    const { index, stored, made } = other
    throw new Error(
      `${family} ${purpose} ${index} is ${stored} in this database, and the signer derives ${made}: none of these is taken`,
    )
  }
}

const NOT_NULL_VIOLATION = '23502'

export type StoredKey = {
  readonly family: AddressFamily
  readonly purpose: KeyPath['purpose']
  readonly index: number
  readonly address: string
}

/** The first reserve and the last deposit address of each family that has any: whose keystore they are of can be told by these. */
export function readOutermostKeys(sql: Sql, families: readonly AddressFamily[]): Promise<StoredKey[]> {
  return sql.query<StoredKey>(
    `SELECT f.family, purpose, key_index AS index, address FROM unnest($1::text[]) AS f (family), LATERAL (
       (SELECT purpose, key_index, address FROM addresses a
        WHERE a.family = f.family AND purpose = 'reserve' ORDER BY key_index LIMIT 1)
       UNION ALL
       (SELECT purpose, key_index, address FROM addresses a
        WHERE a.family = f.family AND purpose = 'deposit' ORDER BY key_index DESC LIMIT 1)) AS outermost`,
    [families],
  )
}

/** What payouts of account chains are made from; the first of them, where there are several. */
export async function reserveAddresses(sql: Sql, family: AddressFamily): Promise<string[]> {
  const rows = await sql.query<{ address: string }>(
    `SELECT address, key_index FROM addresses WHERE family = $1 AND purpose = 'reserve' ORDER BY key_index`,
    [family],
  )
  return rows.map(({ address }) => address)
}
