import type { AssetId } from '../domain/catalog/assets.ts'
import { type ChainId, chainFacts } from '../domain/catalog/networks.ts'
import type { OrderId } from '../domain/orders/identifiers.ts'
import type { BlockRef, OrderStatus } from '../domain/orders/order.ts'
import type { InstantMs } from '../domain/time.ts'
import { HOUSE } from './books.ts'
import type { Sql } from './database.ts'
import { closingsOf } from './operator_words.ts'

/**
 * reserve: the operator's funding. unlisted: a token that we do not know, wherever it came. stray: all else that came to an address of
 * ours and is no order's: to one that no order has, to an order's on another chain, out of a block itself or beyond what an order
 * hears of, a stranger's to one for change.
 */
export type HouseDepositKind = 'reserve' | 'stray' | 'unlisted'

export type HouseDeposit = {
  readonly key: string
  readonly kind: HouseDepositKind
  readonly txHash: string
  readonly address: string
  readonly orderId: string | null
  /** An asset of the catalogue, or the contract of an unlisted token. */
  readonly asset: string
  readonly units: bigint
}

/** Mined again, a transaction may do something else: all that it says about itself is as of now. */
export async function upsertHouseDeposit(
  tx: Sql,
  chain: ChainId,
  deposit: HouseDeposit,
  block: BlockRef,
  nowMs: InstantMs,
): Promise<void> {
  await tx.query(
    `INSERT INTO house_deposits (chain, deposit_key, kind, tx_hash, address, order_id, asset, units, state,
       block_height, block_hash, seen_at_ms)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'mined', $9, $10, $11)
     ON CONFLICT (chain, deposit_key) DO UPDATE SET kind = excluded.kind, address = excluded.address,
       order_id = excluded.order_id, asset = excluded.asset, units = excluded.units, state = 'mined',
       block_height = excluded.block_height, block_hash = excluded.block_hash
     WHERE house_deposits.state <> 'confirmed'`,
    [
      chain,
      deposit.key,
      deposit.kind,
      deposit.txHash,
      deposit.address,
      deposit.orderId,
      deposit.asset,
      deposit.units,
      block.height,
      block.hash,
      nowMs,
    ],
  )
}

type HouseRow = {
  deposit_key: string
  kind: HouseDepositKind
  tx_hash: string
  address: string
  order_id: string | null
  asset: string
  units: bigint
  state: 'mined' | 'confirmed' | 'orphaned'
  block_hash: string
}

function toHouse(
  row: HouseRow,
): HouseDeposit & { readonly state: HouseRow['state']; readonly blockHash: string } {
  return {
    key: row.deposit_key,
    kind: row.kind,
    txHash: row.tx_hash,
    address: row.address,
    orderId: row.order_id,
    asset: row.asset,
    units: row.units,
    state: row.state,
    blockHash: row.block_hash,
  }
}

/** Asked without a lock at every look; most of the time there are none. */
export async function hasDeepHouseDeposits(sql: Sql, chain: ChainId, height: number): Promise<boolean> {
  const rows = await sql.query(
    `SELECT 1 AS one FROM house_deposits WHERE chain = $1 AND state = 'mined' AND block_height <= $2 LIMIT 1`,
    [chain, height],
  )
  return rows.length > 0
}

/** Those in a block no higher than `height`, waiting to be booked; locked. */
export async function lockDeepHouseDeposits(tx: Sql, chain: ChainId, height: number) {
  const rows = await tx.query<HouseRow>(
    `SELECT * FROM house_deposits WHERE chain = $1 AND state = 'mined' AND block_height <= $2
     ORDER BY deposit_key FOR UPDATE`,
    [chain, height],
  )
  return rows.map(toHouse)
}

export async function lockHouseDepositsInBlock(tx: Sql, chain: ChainId, blockHash: string) {
  const rows = await tx.query<HouseRow>(
    'SELECT * FROM house_deposits WHERE chain = $1 AND block_hash = $2 ORDER BY deposit_key FOR UPDATE',
    [chain, blockHash],
  )
  return rows.map(toHouse)
}

export async function setHouseDepositState(
  tx: Sql,
  chain: ChainId,
  key: string,
  state: 'confirmed' | 'orphaned',
): Promise<void> {
  await tx.query('UPDATE house_deposits SET state = $3 WHERE chain = $1 AND deposit_key = $2', [
    chain,
    key,
    state,
  ])
}

/**
 * `is_final`: it is as deep as money of any amount has to be; before that its sender or a reorganisation may take it back, also after it was
 * given back.
 * `may_count`: its order is not done, and may count it yet: should it be open again, or short of just this; given back by hand, it would be
 * paid twice.
 * `may_replace`: its order was paid, or refunded, for more than is confirmed of its deposits by now, and this may be the same money with
 * another key: given back by hand, it would be paid twice as well.
 * `was_closed`: an operator had closed it, and turned that round when it was gone; it is back.
 * `was_written_off`: something is written off of its order, which this may be with another key.
 */
export type Unclaimed = {
  readonly chain: ChainId
  readonly deposit_key: string
  readonly tx_hash: string
  /** The address of ours that it reached: the order's, where it has one. */
  readonly address: string
  readonly seen_at_ms: InstantMs
  readonly order_id: string | null
  readonly kind: string
  readonly asset: string
  readonly units: bigint
  readonly state: string
  readonly status: OrderStatus | null
  readonly is_final: boolean
  readonly may_count: boolean
  readonly may_replace: boolean
  readonly was_closed: boolean
  readonly was_written_off: boolean
}

/** What its order may count yet, by its role: what came when it was not open, and dust of what it asks for, which may complete it. */
const IS_OF_USE = "(role = 'extra' OR role = 'dust' AND asset = from_asset)"

/** Of an order: how much of it is written off. */
const WRITTEN_OFF = `
  (SELECT coalesce(sum(w.units), 0) FROM operator_words AS w WHERE w.act = 'written_off' AND w.owner = orders.order_id)`

/** Of an order that has ended: whether it was paid or refunded for more than its confirmed deposits and what was written off come to. */
const IS_PAID_FOR_MORE = `
  CASE status WHEN 'DONE' THEN settled_received WHEN 'REFUNDED' THEN refund_units + refund_network_fee ELSE 0 END >
    (SELECT coalesce(sum(counted.units), 0) FROM deposits AS counted
     WHERE (counted.bucket, counted.order_id) = (orders.bucket, orders.order_id)
       AND counted.role = 'counted' AND counted.state = 'confirmed') + ${WRITTEN_OFF}`

const isOfHouse = "found.kind IN ('stray', 'unlisted')"
const CLOSINGS = closingsOf(
  `CASE WHEN ${isOfHouse} THEN '${HOUSE}' ELSE found.order_id END`,
  'found.deposit_key',
)

/** Money of somebody that no order could use, as far as `which` says. What is gone again is nobody's to be given back. */
function unclaimed(which: string): string {
  return `SELECT found.*, h.height AS head_height, ${CLOSINGS} > 0 AS was_closed FROM (
       SELECT chain, deposit_key, tx_hash, address, seen_at_ms, order_id, kind, asset, units, state, block_height, NULL AS status,
         false AS may_count, false AS may_replace, false AS was_written_off
       FROM house_deposits WHERE kind <> 'reserve' AND state <> 'orphaned' ${which}
       UNION ALL
       SELECT chain, deposit_key, tx_hash, deposit_address, seen_at_ms, order_id, role, asset, units, state, block_height, status,
         ${IS_OF_USE} AND status NOT IN ('DONE', 'REFUNDED'), ${IS_OF_USE} AND ${IS_PAID_FOR_MORE},
         ${IS_OF_USE} AND ${WRITTEN_OFF} > 0
       FROM deposits JOIN orders USING (bucket, order_id) WHERE role <> 'counted' AND state <> 'vanished' ${which}) AS found
     LEFT JOIN chain_heads h USING (chain)`
}

/** What the operator has to look at, and has not closed; the newest first. */
export async function listUnclaimed(sql: Sql, limit: number): Promise<Unclaimed[]> {
  const rows = await sql.query<Unjudged<Unclaimed>>(
    `${unclaimed('')} WHERE ${CLOSINGS} % 2 = 0 ORDER BY seen_at_ms DESC, chain, deposit_key LIMIT $1`,
    [limit],
  )
  return rows.map(judged)
}

/** What is under this key, judged in the same way, closed or not: before its block is final it may be known to several owners. */
export async function findUnclaimed(sql: Sql, chain: ChainId, depositKey: string): Promise<Unclaimed[]> {
  const rows = await sql.query<Unjudged<Unclaimed>>(unclaimed('AND chain = $1 AND deposit_key = $2'), [
    chain,
    depositKey,
  ])
  return rows.map(judged)
}

/** Whose books have it, as the words about it name the owner. */
export function ownerOf({ kind, order_id }: Pick<Unclaimed, 'kind' | 'order_id'>): string {
  return kind === 'stray' || kind === 'unlisted' || order_id === null ? HOUSE : order_id
}

/** Why a deposit is none that could be closed; null where no table has the key. */
export async function findOtherUse(sql: Sql, chain: ChainId, depositKey: string): Promise<string | null> {
  const [row] = await sql.query<{ use: string }>(
    `SELECT CASE WHEN kind = 'reserve' THEN 'came to a reserve, and is your capital already'
       ELSE 'has lost its block, and is in no books' END AS use
     FROM house_deposits WHERE chain = $1 AND deposit_key = $2
     UNION ALL
     SELECT CASE WHEN state = 'vanished' THEN 'has left its chain, and is in no books'
       ELSE 'counts for its order ' || order_id END
     FROM deposits WHERE chain = $1 AND deposit_key = $2`,
    [chain, depositKey],
  )
  return row?.use ?? null
}

type Depth = { readonly block_height: number | null; readonly head_height: number | null }
type Unjudged<T> = Omit<T, 'is_final'> & Depth

function judged<T extends Depth & Pick<Unclaimed, 'chain' | 'state'>>({
  block_height,
  head_height,
  ...row
}: T): Omit<T, keyof Depth> & Pick<Unclaimed, 'is_final'> {
  const is_final = row.state === 'confirmed' && isDeepest(row.chain, block_height, head_height)
  return { ...row, is_final }
}

/** As deep as a deposit of any amount has to be: from which amount on that is deeper, a command does not know. */
function isDeepest(chain: ChainId, blockHeight: number | null, headHeight: number | null): boolean {
  if (blockHeight === null || headHeight === null) return false
  return blockHeight <= headHeight + 1 - chainFacts[chain].confirmationsLarge
}

/** Money that came to the address of an order and is not the order's, for the operator. */
export type AtAddress = Pick<
  Unclaimed,
  'chain' | 'deposit_key' | 'tx_hash' | 'kind' | 'asset' | 'units' | 'state' | 'seen_at_ms'
>

/** On another chain, of an unlisted token, or beyond what an order hears of; also what is gone again. */
export function listAtAddressOf(sql: Sql, orderId: OrderId): Promise<AtAddress[]> {
  return sql.query(
    `SELECT chain, deposit_key, tx_hash, kind, asset, units, state, seen_at_ms FROM house_deposits
     WHERE order_id = $1 ORDER BY seen_at_ms, chain, deposit_key`,
    [orderId],
  )
}

/** What came to a reserve and is booked as the operator's, or will be. */
export type ReserveArrival = Pick<
  Unclaimed,
  'chain' | 'deposit_key' | 'asset' | 'units' | 'state' | 'is_final'
> & {
  readonly tx_hash: string
  readonly seen_at_ms: InstantMs
}

/** Of each asset what is at least so many units, the newest first; what is gone again is left out. */
export async function listReserveArrivals(
  sql: Sql,
  leasts: readonly { readonly asset: AssetId; readonly units: bigint }[],
  limit: number,
): Promise<ReserveArrival[]> {
  const rows = await sql.query<Unjudged<ReserveArrival>>(
    `SELECT chain, deposit_key, tx_hash, asset, units, state, seen_at_ms, block_height, h.height AS head_height
     FROM house_deposits JOIN unnest($1::text[], $2::numeric[]) AS leasts (asset, least) USING (asset)
     LEFT JOIN chain_heads h USING (chain)
     WHERE kind = 'reserve' AND state <> 'orphaned' AND units >= least
     ORDER BY seen_at_ms DESC, chain, deposit_key LIMIT $3`,
    [leasts.map(({ asset }) => asset), leasts.map(({ units }) => units), limit],
  )
  return rows.map(judged)
}
