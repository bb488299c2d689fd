import type { AssetId } from '../domain/catalog/assets.ts'
import type { LedgerAccount } from '../domain/ledger/accounts.ts'
import type { Posting } from '../domain/ledger/postings.ts'
import { bucketOf, type OrderId } from '../domain/orders/identifiers.ts'
import type { Order, OrderStatus } from '../domain/orders/order.ts'
import type { InstantMs } from '../domain/time.ts'
import type { Sql } from './database.ts'

/** Movements that belong to no order lie in one bucket under this owner. */
export const HOUSE = 'house'
export const HOUSE_BUCKET = 0
/** In a statement on `journal`: whether it is one of them. */
export const IS_OF_HOUSE = `bucket = ${HOUSE_BUCKET} AND owner = '${HOUSE}'`

export async function isFactKnown(tx: Sql, orderId: OrderId, factKey: string): Promise<boolean> {
  const rows = await tx.query(
    'SELECT 1 AS one FROM facts WHERE bucket = $1 AND order_id = $2 AND fact_key = $3',
    [bucketOf(orderId), orderId, factKey],
  )
  return rows.length > 0
}

export async function insertFact(
  tx: Sql,
  orderId: OrderId,
  fact: { readonly key: string; readonly kind: string; readonly outcome: 'changed' | 'ignored' },
  nowMs: InstantMs,
): Promise<void> {
  await tx.query(
    'INSERT INTO facts (bucket, order_id, fact_key, kind, outcome, at_ms) VALUES ($1, $2, $3, $4, $5, $6)',
    [bucketOf(orderId), orderId, fact.key, fact.kind, fact.outcome, nowMs],
  )
}

/** The event log: `snapshot` is the order as a client sees it at this moment, frozen. */
export async function appendEvent(
  tx: Sql,
  order: Order,
  event: {
    readonly previousStatus: OrderStatus | null
    readonly factKey: string
    readonly snapshot: unknown
  },
): Promise<void> {
  const { id } = order.terms
  await tx.query(
    `INSERT INTO events (bucket, order_id, sequence, previous_status, status, fact_key, snapshot, at_ms)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
    [
      bucketOf(id),
      id,
      order.sequence,
      event.previousStatus,
      order.state.status,
      event.factKey,
      JSON.stringify(event.snapshot),
      order.updatedAtMs,
    ],
  )
}

/** The order as its client saw it when it took this step. */
export async function findSnapshot(sql: Sql, orderId: OrderId, sequence: number): Promise<unknown> {
  const [row] = await sql.query<{ snapshot: unknown }>(
    'SELECT snapshot FROM events WHERE bucket = $1 AND order_id = $2 AND sequence = $3',
    [bucketOf(orderId), orderId, sequence],
  )
  return row?.snapshot ?? null
}

export async function postForOrder(
  tx: Sql,
  orderId: OrderId,
  entryKey: string,
  postings: readonly Posting[],
  nowMs: InstantMs,
): Promise<void> {
  await post(tx, bucketOf(orderId), orderId, entryKey, postings, nowMs)
}

export async function postForHouse(
  tx: Sql,
  entryKey: string,
  postings: readonly Posting[],
  nowMs: InstantMs,
): Promise<void> {
  await post(tx, HOUSE_BUCKET, HOUSE, entryKey, postings, nowMs)
}

export async function isPostedForHouse(tx: Sql, entryKey: string): Promise<boolean> {
  const rows = await tx.query(
    'SELECT 1 AS one FROM journal WHERE bucket = $1 AND owner = $2 AND entry_key = $3 LIMIT 1',
    [HOUSE_BUCKET, HOUSE, entryKey],
  )
  return rows.length > 0
}

/** What the keys of a deposit's entries end with, as a pattern: `<deposit key>:confirmed:<block>` and `<deposit key>:unmined:<block>`. */
export const DEPOSIT_ENTRY = ':(confirmed|unmined):[^:]+$'

/** The same of what an outflow cost: `<payout id>:confirmed` and the like. */
export const OUTFLOW_ENTRY = ':(confirmed|failed|block_(lost|found):.*)$'

/** What the key of an entry begins with that an operator has made, and what a coin is spent by of which such an entry tells. */
export const OPERATOR = 'operator:'

/** Numbered, so that of two who saw the same difference only one books it. */
export function operatorEntryKey(asset: AssetId, number: number): string {
  return `${OPERATOR}${asset}:${number}`
}

/** How many entries an operator has made of an asset. */
export async function countOperatorEntries(sql: Sql, asset: AssetId): Promise<number> {
  const [row] = await sql.query<{ count: number }>(
    `SELECT count(DISTINCT entry_key)::int AS count FROM journal
     WHERE bucket = $1 AND owner = $2 AND starts_with(entry_key, $3)`,
    [HOUSE_BUCKET, HOUSE, `${OPERATOR}${asset}:`],
  )
  return row?.count ?? 0
}

/** The same, and until the transaction ends nobody else makes any. */
export async function lockOperatorEntries(tx: Sql, asset: AssetId): Promise<number> {
  await tx.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [`${OPERATOR}${asset}`])
  return countOperatorEntries(tx, asset)
}

async function post(
  tx: Sql,
  bucket: number,
  owner: string,
  entryKey: string,
  postings: readonly Posting[],
  nowMs: InstantMs,
): Promise<void> {
  if (postings.length === 0) return
  // One statement, so that no movement of the wallet is in the journal and in no sum (wallet_sums.ts).
  await tx.query(
    `WITH posted AS (
       INSERT INTO journal (bucket, owner, entry_key, line, asset, debit, credit, units, at_ms)
       SELECT $1, $2, $3, line, asset, debit, credit, units, $8
       FROM unnest($4::text[], $5::text[], $6::text[], $7::numeric[]) WITH ORDINALITY
         AS p (asset, debit, credit, units, line)
       RETURNING asset, debit, credit, units)
     INSERT INTO wallet_movements (bucket, asset, units)
     SELECT $1, asset, CASE WHEN debit = 'wallet' THEN units ELSE -units END
     FROM posted WHERE debit = 'wallet' OR credit = 'wallet'`,
    [
      bucket,
      owner,
      entryKey,
      postings.map(({ amount }) => amount.asset),
      postings.map(({ debit }) => debit),
      postings.map(({ credit }) => credit),
      postings.map(({ amount }) => amount.units),
      nowMs,
    ],
  )
}

/** Debits less credits of every account in every asset, of all that is booked or of what was booked before a time. */
export async function readBalances(
  sql: Sql,
  beforeMs?: InstantMs,
): Promise<{ readonly asset: string; readonly account: LedgerAccount; readonly units: bigint }[]> {
  return beforeMs === undefined
    ? sql.query(balancesOf('journal'))
    : sql.query(balancesOf('(SELECT * FROM journal WHERE at_ms < $1) AS earlier'), [beforeMs])
}

const balancesOf = (lines: string) =>
  `SELECT asset, account, sum(units)::numeric(78,0) AS units FROM (
     SELECT asset, debit AS account, units FROM ${lines}
     UNION ALL
     SELECT asset, credit AS account, -units FROM ${lines}
   ) AS sides GROUP BY asset, account ORDER BY asset, account`
