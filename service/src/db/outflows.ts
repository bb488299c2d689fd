import { type AssetId, assetOf, nativeAsset } from '../domain/catalog/assets.ts'
import type { ChainId } from '../domain/catalog/networks.ts'
import { type Amount, amountOf } from '../domain/money/amount.ts'
import { bucketOf, type OrderId, orderIdOfPayout } from '../domain/orders/identifiers.ts'
import type { BlockRef } from '../domain/orders/order.ts'
import type { Outflow, OutflowKind, PayoutId } from '../domain/payouts/intent.ts'
import type { InstantMs } from '../domain/time.ts'
import { isFree, isTime, laterOf, sinceOf } from './clocks_set_back.ts'
import type { Sql } from './database.ts'
import { keptText } from './kept_text.ts'
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

/** Not booked: its money is on its way, and was not taken from the ledger's wallet, or was given back to it. */
export const unbooked: readonly OutflowState[] = ['planned', 'signed', 'broadcast', 'orphaned']
export const UNBOOKED = textList(unbooked)

/** All others: nothing more becomes of it, but for a final one whose block is lost. */
export const ended: readonly OutflowState[] = ['confirmed', 'failed', 'cancelled']

/** An outflow that a worker has claimed; the fence says whether it still has. */
export type ClaimedOutflow = Outflow & {
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
  readonly fence: number
  /** The block that its chain had been looked at up to when it was claimed; null when it was only read. */
  readonly claimedAtHeight: number | null
}

type OutflowRow = {
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

/** What waits for a block is looked at without one after this: its fee may have to rise before any comes. */
const BLOCKLESS_MS = 20_000

/** Where outflows leave from: those of the reserve wait for no sweep, and the other way round. */
export type LeavingFrom = 'reserve' | 'deposits'

/**
 * A worker that has not let go in time may still be at work, because its node takes so long. The next claim lasts so many times as long:
 * two workers that take it from one another would never finish it.
 */
const CLAIM_AGAIN = 10

/** In a statement on `outflows`: whether it may be claimed, at $2 by the moved clock and $4 by the wall's, for $3. */
const IS_DUE = `state IN ${UNBOOKED}
  AND ${isTime('due_at_ms', '$2')} AND ${isFree('claimed_until_wall_ms', '$4', `$3::bigint * ${CLAIM_AGAIN}`)}
  AND (due_height IS NULL OR ${isTime('due_at_ms', `$2::bigint - ${BLOCKLESS_MS}`)}
    OR due_height <= (SELECT height FROM chain_heads h WHERE h.chain = outflows.chain))`

type ClaimTime = { readonly nowMs: InstantMs; readonly wallMs: number; readonly claimMs: number }

/** Those of these chains that have an outflow of the reserve which may be claimed. */
export async function findChainsWithDue(
  sql: Sql,
  chains: readonly ChainId[],
  { nowMs, wallMs, claimMs }: ClaimTime,
): Promise<readonly ChainId[]> {
  const rows = await sql.query<{ chain: ChainId }>(
    `SELECT asked.chain FROM unnest($1::text[]) AS asked (chain)
     WHERE EXISTS (SELECT FROM outflows WHERE outflows.chain = asked.chain AND from_address IS NULL AND ${IS_DUE})`,
    [chains, nowMs, claimMs, wallMs],
  )
  return rows.map(({ chain }) => chain)
}

/**
 * Takes due outflows of a chain for `claimMs` of wall time, those that have waited longest first: of more than one step
 * takes, each has its turn. Answers lower nonces first. Whoever is asked next gets others; a worker that died loses its
 * claim when the time is over, and its fence with it.
 */
export async function claimOutflows(
  sql: Sql,
  chain: ChainId,
  from: LeavingFrom,
  time: ClaimTime,
  limit: number,
): Promise<ClaimedOutflow[]> {
  const rows = await sql.query<OutflowRow & { head_height: number | null }>(
    `UPDATE outflows SET claim_fence = claim_fence + 1,
       claimed_until_wall_ms = $4::bigint + $3::bigint * CASE WHEN claimed_until_wall_ms = 0 THEN 1 ELSE ${CLAIM_AGAIN} END
     WHERE (bucket, payout_id) IN (
       SELECT bucket, payout_id FROM outflows
       WHERE chain = $1 AND (from_address IS NULL) = $6 AND ${IS_DUE}
       ORDER BY due_at_ms, nonce NULLS LAST, planned_at_ms LIMIT $5
       FOR UPDATE SKIP LOCKED)
     RETURNING *, (SELECT height FROM chain_heads h WHERE h.chain = $1) AS head_height`,
    [chain, time.nowMs, time.claimMs, time.wallMs, limit, from === 'reserve'],
  )
  return rows
    .map((row) => ({ ...toClaimed(row), claimedAtHeight: row.head_height }))
    .sort(
      (left, right) =>
        (left.nonce ?? Infinity) - (right.nonce ?? Infinity) || left.plannedAtMs - right.plannedAtMs,
    )
}

function toClaimed(row: OutflowRow): ClaimedOutflow {
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
    fence: row.claim_fence,
    claimedAtHeight: null,
    ...(row.from_address !== null &&
      row.from_index !== null && {
        from: { key: { purpose: 'deposit' as const, index: row.from_index }, address: row.from_address },
      }),
  }
}

/**
 * Holds a claim until then at least, and one that was taken before the clock was set back, which anybody may take, until just then. False:
 * somebody else has taken it since, or it is over.
 */
export async function renewClaim(sql: Sql, claimed: ClaimedOutflow, untilWallMs: number): Promise<boolean> {
  const rows = await sql.query(
    `UPDATE outflows SET claimed_until_wall_ms = ${laterOf('claimed_until_wall_ms', '$4::bigint')}
     WHERE bucket = $1 AND payout_id = $2 AND claim_fence = $3 RETURNING payout_id`,
    [bucketOfPayout(claimed.payoutId), claimed.payoutId, claimed.fence, untilWallMs],
  )
  return rows.length > 0
}

/**
 * The outflow, locked, or null when the claim was lost or it moved on: then the worker must stop. The statement says
 * nothing of the state: what it says makes PostgreSQL read the index of all that are live, when there were few the last
 * time it looked.
 */
export async function lockClaimed(tx: Sql, claimed: ClaimedOutflow): Promise<ClaimedOutflow | null> {
  const [row] = await tx.query<OutflowRow>(
    'SELECT * FROM outflows WHERE bucket = $1 AND payout_id = $2 AND claim_fence = $3 FOR UPDATE',
    [bucketOfPayout(claimed.payoutId), claimed.payoutId, claimed.fence],
  )
  return row !== undefined && unbooked.includes(row.state) ? toClaimed(row) : null
}

/**
 * For a caller that ends the outflow together with its order. The order is told first, and that has cancelled, in the same transaction, an
 * outflow that was drafted and never signed. False when it is no longer the caller's, or is not in one of `states`.
 */
export async function lockEnding(
  tx: Sql,
  claimed: ClaimedOutflow,
  states: readonly OutflowState[] = unbooked,
): Promise<boolean> {
  const [row] = await tx.query<{ state: OutflowState }>(
    'SELECT state FROM outflows WHERE bucket = $1 AND payout_id = $2 AND claim_fence = $3 FOR UPDATE',
    [bucketOfPayout(claimed.payoutId), claimed.payoutId, claimed.fence],
  )
  if (row === undefined) return false
  return states.includes(row.state) || (row.state === 'cancelled' && states.includes('planned'))
}

/** A transaction of an outflow whose token moved in another way than it was to, and how, in the words of its chain's connector. */
export type OtherMove = { readonly txHash: string; readonly moved: string }

/** `unjudged`: what a person is to judge; once noted it stays so while other trouble keeps anybody from looking at it. */
type Trouble = { readonly message: string; readonly nowMs: InstantMs; readonly unjudged?: OtherMove | null }

/**
 * Lets the claim go: when it is due again, and what stood in its way, if anything. A block that was looked at since it was claimed
 * counts as the next one, because what the worker knows may be from before.
 */
export async function postponeOutflow(
  sql: Sql,
  claimed: ClaimedOutflow,
  due: { readonly dueAtMs: InstantMs; readonly atHeight: number | 'next' | null },
  trouble: Trouble | null,
): Promise<void> {
  await sql.query(
    `UPDATE outflows SET claimed_until_wall_ms = 0, due_at_ms = $4, trouble = $5,
       trouble_since_ms = CASE WHEN $5::text IS NULL THEN NULL ELSE ${sinceOf('trouble_since_ms', '$6')} END,
       due_height = CASE
         WHEN $7 THEN (SELECT least(height, $9::bigint) + 1 FROM chain_heads h WHERE h.chain = outflows.chain)
         ELSE $8::bigint END,
       unjudged_tx_hash = CASE WHEN $5::text IS NOT NULL THEN coalesce($10, unjudged_tx_hash) END,
       unjudged_moved = CASE WHEN $5::text IS NOT NULL THEN coalesce($11, unjudged_moved) END
     WHERE bucket = $1 AND payout_id = $2 AND claim_fence = $3`,
    [
      bucketOfPayout(claimed.payoutId),
      claimed.payoutId,
      claimed.fence,
      due.dueAtMs,
      trouble === null ? null : keptText(trouble.message, 500),
      trouble?.nowMs ?? null,
      due.atHeight === 'next',
      due.atHeight === 'next' ? null : due.atHeight,
      claimed.claimedAtHeight,
      trouble?.unjudged?.txHash ?? null,
      trouble?.unjudged?.moved ?? null,
    ],
  )
}

/** What waits for a block waits no more. */
export async function lookForOutflows(tx: Sql, chain: ChainId): Promise<void> {
  await tx.query(
    `UPDATE outflows SET due_height = NULL WHERE chain = $1 AND state IN ${UNBOOKED} AND due_height IS NOT NULL`,
    [chain],
  )
}

/** The state is one of $3, in words in which PostgreSQL does not see that they are live ones, for the reason above. */
const IS_FROM = '$3::text[] @> ARRAY[state]'

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
       trouble_since_ms = NULL, claimed_until_wall_ms = 0, state = CASE
         WHEN EXISTS (SELECT FROM attempts WHERE bucket = $1 AND payout_id = $2 AND bytes IS NOT NULL) THEN 'signed'
         ELSE 'planned' END
     WHERE bucket = $1 AND payout_id = $2 AND state IN ('cancelled', 'failed') AND mined_hash IS NULL`,
    [bucketOfPayout(payoutId), payoutId, nowMs],
  )
}

/** Whether it has ended without being mined. */
export function endedUnmined({ state }: ClaimedOutflow): boolean {
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

/** Blocks that are no longer on the best chain: those named, or those above a height in whose place another one is known. */
export type LostBlocks =
  | { readonly kind: 'named'; readonly blocks: readonly BlockRef[] }
  | { readonly kind: 'replaced'; readonly aboveHeight: number }

/** It was executed there, whether it paid or was rejected, and the block is not known to have left the chain yet. */
const WAS_MINED = `state IN ('confirmed', 'failed') AND NOT is_block_lost`

/**
 * Outflows that were final in such a block, those among them that failed there, kept from being changed by anybody else; those planned last
 * come first, so that of two sweeps of one address the address waits for the one that ends last.
 */
export async function lockOrphanedOutflows(
  tx: Sql,
  chain: ChainId,
  lost: LostBlocks,
): Promise<(ClaimedOutflow & Ended)[]> {
  type Row = OutflowRow & { mined_height: number; mined_hash: string; mined_cost: bigint }
  const rows =
    lost.kind === 'named'
      ? await tx.query<Row>(
          `SELECT * FROM outflows
           WHERE chain = $1 AND ${WAS_MINED} AND mined_height = ANY($2) AND mined_hash = ANY($3)
           ORDER BY planned_at_ms DESC FOR UPDATE`,
          [chain, lost.blocks.map(({ height }) => height), lost.blocks.map(({ hash }) => hash)],
        )
      : await tx.query<Row>(
          `SELECT o.* FROM outflows o JOIN chain_blocks b ON b.chain = o.chain AND b.height = o.mined_height
           WHERE o.chain = $1 AND ${WAS_MINED} AND o.mined_height > $2 AND b.hash <> o.mined_hash
           ORDER BY o.planned_at_ms DESC FOR UPDATE OF o`,
          [chain, lost.aboveHeight],
        )
  return rows.map((row) => ({
    ...toClaimed(row),
    block: { height: row.mined_height, hash: row.mined_hash },
    cost: amountOf(nativeAsset(chain).id, row.mined_cost),
  }))
}

/** Due at once: its bytes have to go out again. What stood in its way before it was final does so no more. */
export async function orphanOutflow(tx: Sql, payoutId: PayoutId, nowMs: InstantMs): Promise<void> {
  await tx.query(
    `UPDATE outflows SET state = 'orphaned', due_at_ms = $3, due_height = NULL, trouble = NULL, trouble_since_ms = NULL,
       unjudged_tx_hash = NULL, unjudged_moved = NULL
     WHERE bucket = $1 AND payout_id = $2`,
    [bucketOfPayout(payoutId), payoutId, nowMs],
  )
}

/** It failed in a block that has left the chain: it is not sent again, and may be mined again, see `findRejected`. */
export async function loseRejected(tx: Sql, payoutId: PayoutId): Promise<void> {
  await tx.query('UPDATE outflows SET is_block_lost = true WHERE bucket = $1 AND payout_id = $2', [
    bucketOfPayout(payoutId),
    payoutId,
  ])
}

/** A filler, or what its gap is known by: a nonce of the reserve, or the outflow whose coins it takes back. */
type Gap = Pick<ClaimedOutflow, 'chain' | 'nonce'> & Partial<Pick<ClaimedOutflow, 'fills'>>

/** In a statement on `outflows`: whether it is what the filler of a gap stands in for, of which $1 to $4 tell. */
const IS_OF_GAP = 'chain = $1 AND (nonce = $2 OR (bucket = $3 AND payout_id = $4))'

function gapOf({ chain, nonce, fills = null }: Gap): readonly unknown[] {
  return [chain, nonce, fills === null ? null : bucketOfPayout(fills), fills]
}

/**
 * A filler was final and has lost its block: what it had excluded, and others may have, may be mined. That is not sent again either, see
 * `findRejected`. A deposit address has nonces of its own.
 */
export async function loseFilled(tx: Sql, filler: Gap): Promise<void> {
  await tx.query(
    `UPDATE outflows SET is_block_lost = true
     WHERE ${IS_OF_GAP} AND kind <> 'filler' AND from_address IS NULL AND state = 'failed' AND mined_hash IS NULL`,
    gapOf(filler),
  )
}

/**
 * For whoever ends an outflow in the same transaction because its filler is final: until the end of that is written down as well it may lose
 * its block, of which nobody knows then. Nothing when somebody else has ended it, or it has become final.
 */
export async function loseToFiller(
  tx: Sql,
  { payoutId, state }: Pick<ClaimedOutflow, 'payoutId' | 'state'>,
): Promise<void> {
  const from = unbooked.filter((one) => (one === 'orphaned') === (state === 'orphaned'))
  await tx.query(
    `UPDATE outflows SET is_block_lost = true WHERE bucket = $1 AND payout_id = $2 AND ${IS_FROM}`,
    [bucketOfPayout(payoutId), payoutId, from],
  )
}

/**
 * The outflow of the reserve that had failed, and whose nonce or coins this filler has: in a block that has left the chain, or by a filler
 * that has lost its own, or whose own end is not written down. Null: there is none that may be mined.
 */
export async function findRejected(sql: Sql, filler: Gap): Promise<ClaimedOutflow | null> {
  const [row] = await sql.query<OutflowRow>(
    `SELECT * FROM outflows WHERE ${IS_OF_GAP} AND is_block_lost`,
    gapOf(filler),
  )
  return row === undefined ? null : toClaimed(row)
}

/** The filler is final: the other is never mined again. */
export async function forgetRejected(tx: Sql, filler: Gap): Promise<void> {
  await tx.query(
    `UPDATE outflows SET is_block_lost = false, mined_height = NULL, mined_hash = NULL, mined_cost = NULL
     WHERE ${IS_OF_GAP} AND is_block_lost`,
    gapOf(filler),
  )
}

/**
 * One that lost its block is never mined again. It forgets that block, in which it has spent no nonce: what has, its filler most
 * likely, is still to end, or may lose its own block. False: it is orphaned no more.
 */
export async function failOrphaned(tx: Sql, payoutId: PayoutId): Promise<boolean> {
  const rows = await tx.query(
    `UPDATE outflows SET state = 'failed', mined_height = NULL, mined_hash = NULL, mined_cost = NULL
     WHERE bucket = $1 AND payout_id = $2 AND state = 'orphaned' RETURNING payout_id`,
    [bucketOfPayout(payoutId), payoutId],
  )
  return rows.length > 0
}

export async function forgetTrouble(tx: Sql, payoutId: PayoutId): Promise<void> {
  await tx.query(
    'UPDATE outflows SET trouble = NULL, trouble_since_ms = NULL WHERE bucket = $1 AND payout_id = $2',
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
export async function findByNonce(sql: Sql, chain: ChainId, nonce: number): Promise<ClaimedOutflow | null> {
  const [row] = await sql.query<OutflowRow>(
    `SELECT * FROM outflows
     WHERE chain = $1 AND nonce = $2 AND kind <> 'filler' AND from_address IS NULL AND state IN ${UNBOOKED}`,
    [chain, nonce],
  )
  return row === undefined ? null : toClaimed(row)
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

export async function findOutflow(sql: Sql, payoutId: PayoutId): Promise<ClaimedOutflow | null> {
  const [row] = await sql.query<OutflowRow>('SELECT * FROM outflows WHERE bucket = $1 AND payout_id = $2', [
    bucketOfPayout(payoutId),
    payoutId,
  ])
  return row === undefined ? null : toClaimed(row)
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
export function isLive(outflow: ClaimedOutflow | null): outflow is ClaimedOutflow {
  return outflow !== null && unbooked.includes(outflow.state)
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
