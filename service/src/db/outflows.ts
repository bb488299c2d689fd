import { type AssetId, assetOf } from '../domain/catalog/assets.ts'
import type { ChainId } from '../domain/catalog/networks.ts'
import type { Amount } from '../domain/money/amount.ts'
import { bucketOf, type OrderId, orderIdOfPayout } from '../domain/orders/identifiers.ts'
import type { BlockRef } from '../domain/orders/order.ts'
import type { Outflow, OutflowKind, PayoutId } from '../domain/payouts/intent.ts'
import type { InstantMs } from '../domain/time.ts'
import type { Sql } from './database.ts'
import { textList } from './text_list.ts'

/** orphaned: it was final, and lost its block to a reorganisation; its bytes go out again. */
export type OutflowState =
  | 'planned'
  | 'signed'
  | 'broadcast'
  | 'confirmed'
  | 'orphaned'
  | 'failed'
  | 'cancelled'

/** It may still be sent, or was and is not final. Not booked: its money was not taken from the ledger's wallet, or was given back to it. */
export const liveStates: readonly OutflowState[] = ['planned', 'signed', 'broadcast', 'orphaned']
export const LIVE = textList(liveStates)

/** All others: nothing more becomes of it, but for a final one whose block is lost. */
export const endedStates: readonly OutflowState[] = ['confirmed', 'failed', 'cancelled']

/** An outflow as its row has it. */
export type StoredOutflow = Outflow & {
  readonly orderId: string
  readonly chain: ChainId
  readonly state: OutflowState
  readonly nonce: number | null
  /** A filler on a coin chain: the outflow whose coins it takes back. On account chains the nonce says which one. */
  readonly fills: PayoutId | null
  readonly plannedAtMs: InstantMs
  /** What stood in its way when it was let go the last time. */
  readonly trouble: string | null
  readonly troubleSinceMs: InstantMs | null
  /** Since when a node has said at every look that its payee cannot be paid. */
  readonly payeeRefusedSinceMs: InstantMs | null
  /** How often it was claimed. */
  readonly fence: number
}

export type OutflowRow = {
  order_id: string
  payout_id: string
  kind: OutflowKind
  chain: ChainId
  asset: AssetId
  units: bigint
  address: string
  tag: string | null
  state: OutflowState
  nonce: number | null
  fills: string | null
  planned_at_ms: number
  trouble: string | null
  trouble_since_ms: number | null
  payee_refused_since_ms: number | null
  claim_fence: number
  from_address: string | null
  from_index: number | null
}

/** Order-owned payouts lie with their order; fillers and sweeps of the house in bucket 0. */
export function bucketOfPayout(payoutId: PayoutId): number {
  return payoutId.startsWith('CB') ? bucketOf(orderIdOfPayout(payoutId)) : 0
}

export async function planOutflow(
  tx: Sql,
  outflow: Outflow & { readonly nonce?: number; readonly fills?: PayoutId },
  nowMs: InstantMs,
): Promise<void> {
  await tx.query(
    `INSERT INTO outflows (bucket, order_id, payout_id, kind, chain, asset, units, address, tag, state, nonce,
       planned_at_ms, due_at_ms, from_address, from_index, fills)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'planned', $10, $11, $11, $12, $13, $14)`,
    [
      bucketOfPayout(outflow.payoutId),
      orderIdOfPayout(outflow.payoutId),
      outflow.payoutId,
      outflow.kind,
      assetOf(outflow.asset).chain,
      outflow.asset,
      outflow.units,
      outflow.address,
      outflow.tag,
      outflow.nonce ?? null,
      nowMs,
      outflow.from?.address ?? null,
      outflow.from?.key.index ?? null,
      outflow.fills ?? null,
    ],
  )
}

export function toStored(row: OutflowRow): StoredOutflow {
  return {
    orderId: row.order_id,
    payoutId: row.payout_id,
    kind: row.kind,
    chain: row.chain,
    asset: row.asset,
    units: row.units,
    address: row.address,
    tag: row.tag,
    state: row.state,
    nonce: row.nonce,
    fills: row.fills,
    plannedAtMs: row.planned_at_ms,
    trouble: row.trouble,
    troubleSinceMs: row.trouble_since_ms,
    payeeRefusedSinceMs: row.payee_refused_since_ms,
    fence: row.claim_fence,
    ...(row.from_address !== null &&
      row.from_index !== null && {
        from: { key: { purpose: 'deposit' as const, index: row.from_index }, address: row.from_address },
      }),
  }
}

/** A transaction of an outflow whose token moved in another way than it was to, and how, in the words of its chain's connector. */
export type OtherMove = { readonly txHash: string; readonly moved: string }

/**
 * The state is one of $3, in words in which PostgreSQL does not see that they are live ones: it would read the index of all that are live,
 * when there were few the last time it looked.
 */
export const IS_FROM = '$3::text[] @> ARRAY[state]'

export async function setOutflowState(
  sql: Sql,
  payoutId: PayoutId,
  from: readonly OutflowState[],
  state: OutflowState,
): Promise<boolean> {
  const rows = await sql.query(
    `UPDATE outflows SET state = $4 WHERE bucket = $1 AND payout_id = $2 AND ${IS_FROM} RETURNING payout_id`,
    [bucketOfPayout(payoutId), payoutId, from, state],
  )
  return rows.length > 0
}

/**
 * What ended because it was needless is due again, with whatever was signed of it. No network has it any more as far as is known; what was
 * final of it has lost its block.
 */
export async function resumeOutflow(tx: Sql, payoutId: PayoutId, nowMs: InstantMs): Promise<void> {
  await tx.query(
    `UPDATE attempts SET answer = 'refused' WHERE bucket = $1 AND payout_id = $2 AND answer IS NOT NULL`,
    [bucketOfPayout(payoutId), payoutId],
  )
  await tx.query(
    `UPDATE outflows SET planned_at_ms = $3, due_at_ms = $3, due_height = NULL, trouble = NULL,
       trouble_since_ms = NULL, payee_refused_since_ms = NULL, claimed_until_wall_ms = 0, state = CASE
         WHEN EXISTS (SELECT FROM attempts WHERE bucket = $1 AND payout_id = $2 AND bytes IS NOT NULL) THEN 'signed'
         ELSE 'planned' END
     WHERE bucket = $1 AND payout_id = $2 AND state IN ('cancelled', 'failed') AND mined_hash IS NULL`,
    [bucketOfPayout(payoutId), payoutId, nowMs],
  )
}

/** Whether it has ended without being mined. */
export function endedUnmined({ state }: StoredOutflow): boolean {
  return state === 'cancelled' || state === 'failed'
}

/** Where it was mined as deep as it has to be, and what that cost: to be turned round should the chain leave the block. */
export type Ended = { readonly block: BlockRef; readonly cost: Amount }

export async function endOutflow(
  sql: Sql,
  payoutId: PayoutId,
  from: readonly OutflowState[],
  end: 'confirmed' | 'failed',
  { block, cost }: Ended,
): Promise<boolean> {
  const rows = await sql.query(
    `UPDATE outflows SET state = $4, mined_height = $5, mined_hash = $6, mined_cost = $7, is_block_lost = false
     WHERE bucket = $1 AND payout_id = $2 AND ${IS_FROM} RETURNING payout_id`,
    [bucketOfPayout(payoutId), payoutId, from, end, block.height, block.hash, cost.units],
  )
  return rows.length > 0
}

/** It was executed there, whether it paid or was rejected, and the block is not known to have left the chain yet. */
export const WAS_MINED = `state IN ('confirmed', 'failed') AND NOT is_block_lost`

export async function forgetTrouble(tx: Sql, payoutId: PayoutId): Promise<void> {
  await tx.query(
    `UPDATE outflows SET trouble = NULL, trouble_since_ms = NULL, payee_refused_since_ms = NULL
     WHERE bucket = $1 AND payout_id = $2`,
    [bucketOfPayout(payoutId), payoutId],
  )
}

export async function setOutflowNonce(tx: Sql, payoutId: PayoutId, nonce: number): Promise<void> {
  await tx.query('UPDATE outflows SET nonce = $3 WHERE bucket = $1 AND payout_id = $2', [
    bucketOfPayout(payoutId),
    payoutId,
    nonce,
  ])
}

/** The live outflow that took a nonce of the reserve and is no filler. */
export async function findByNonce(sql: Sql, chain: ChainId, nonce: number): Promise<StoredOutflow | null> {
  const [row] = await sql.query<OutflowRow>(
    `SELECT * FROM outflows
     WHERE chain = $1 AND nonce = $2 AND kind <> 'filler' AND from_address IS NULL AND state IN ${LIVE}`,
    [chain, nonce],
  )
  return row === undefined ? null : toStored(row)
}

/**
 * Whether an outflow of the reserve that is no filler is deep in a block with this nonce: nothing else will be. One that failed has a block
 * only when it was rejected there.
 */
export async function isNonceSpent(sql: Sql, chain: ChainId, nonce: number): Promise<boolean> {
  const rows = await sql.query(
    `SELECT 1 AS one FROM outflows
     WHERE chain = $1 AND nonce = $2 AND kind <> 'filler' AND from_address IS NULL
       AND ${WAS_MINED} AND mined_hash IS NOT NULL`,
    [chain, nonce],
  )
  return rows.length > 0
}

export async function findOutflow(sql: Sql, payoutId: PayoutId): Promise<StoredOutflow | null> {
  const [row] = await sql.query<OutflowRow>('SELECT * FROM outflows WHERE bucket = $1 AND payout_id = $2', [
    bucketOfPayout(payoutId),
    payoutId,
  ])
  return row === undefined ? null : toStored(row)
}

/** What was to pay an order's customer and ended before any transaction of it was written down. */
export async function findNeverDrafted(sql: Sql, orderId: OrderId): Promise<readonly PayoutId[]> {
  const rows = await sql.query<{ payout_id: PayoutId }>(
    `SELECT payout_id FROM outflows o
     WHERE bucket = $1 AND order_id = $2 AND kind IN ('payout', 'refund') AND state IN ('cancelled', 'failed')
       AND NOT EXISTS (SELECT FROM attempts a WHERE a.bucket = o.bucket AND a.payout_id = o.payout_id)
     ORDER BY payout_id`,
    [bucketOf(orderId), orderId],
  )
  return rows.map(({ payout_id }) => payout_id)
}

/** Whether it may still be sent, or was and is not final. */
export function isLive(outflow: StoredOutflow | null): outflow is StoredOutflow {
  return outflow !== null && liveStates.includes(outflow.state)
}

/** Which of these transactions only move our own money from one of our addresses to another: nothing arrives by them. */
export async function findOwnSweeps(sql: Sql, txHashes: readonly string[]): Promise<ReadonlySet<string>> {
  if (txHashes.length === 0) return new Set()
  const rows = await sql.query<{ tx_hash: string }>(
    `SELECT a.tx_hash FROM attempts a JOIN outflows o USING (bucket, payout_id)
     WHERE a.tx_hash = ANY($1) AND o.kind = 'sweep'`,
    [txHashes],
  )
  return new Set(rows.map(({ tx_hash }) => tx_hash))
}
