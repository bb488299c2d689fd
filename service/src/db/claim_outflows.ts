import type { ChainId } from '../domain/catalog/networks.ts'
import type { InstantMs } from '../domain/time.ts'
import { isFree, isTime, laterOf, sinceOf } from './clocks_set_back.ts'
import type { Sql } from './database.ts'
import { keptText } from './kept_text.ts'
import {
  bucketOfPayout,
  LIVE,
  liveStates,
  type OtherMove,
  type OutflowRow,
  type OutflowState,
  type StoredOutflow,
  toStored,
} from './outflows.ts'

/** An outflow that a worker has claimed; the fence says whether it still has. */
export type ClaimedOutflow = StoredOutflow & {
  /** The block that its chain had been looked at up to when it was claimed; null: the chain had not been looked at. */
  readonly claimedAtHeight: number | null
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
const IS_DUE = `state IN ${LIVE}
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
    .map((row) => ({ ...toStored(row), claimedAtHeight: row.head_height }))
    .sort(
      (left, right) =>
        (left.nonce ?? Infinity) - (right.nonce ?? Infinity) || left.plannedAtMs - right.plannedAtMs,
    )
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
  if (row === undefined || !liveStates.includes(row.state)) return null
  return { ...toStored(row), claimedAtHeight: claimed.claimedAtHeight }
}

/**
 * For a caller that ends the outflow together with its order. The order is told first, and that has cancelled, in the same transaction, an
 * outflow that was drafted and never signed. False when it is no longer the caller's, or is not in one of `states`.
 */
export async function lockEnding(
  tx: Sql,
  claimed: ClaimedOutflow,
  states: readonly OutflowState[] = liveStates,
): Promise<boolean> {
  const [row] = await tx.query<{ state: OutflowState }>(
    'SELECT state FROM outflows WHERE bucket = $1 AND payout_id = $2 AND claim_fence = $3 FOR UPDATE',
    [bucketOfPayout(claimed.payoutId), claimed.payoutId, claimed.fence],
  )
  if (row === undefined) return false
  return states.includes(row.state) || (row.state === 'cancelled' && states.includes('planned'))
}

/**
 * `unjudged`: what a person is to judge; once noted it stays so while other trouble keeps anybody from looking at it. `isPayeeRefused`: a node
 * says that its payee cannot be paid; any other trouble, or none, ends that.
 */
type Trouble = {
  readonly message: string
  readonly nowMs: InstantMs
  readonly unjudged?: OtherMove | null
  readonly isPayeeRefused?: boolean
}

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
       payee_refused_since_ms = CASE WHEN $12 THEN ${sinceOf('payee_refused_since_ms', '$6')} END,
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
      trouble?.isPayeeRefused === true,
    ],
  )
}

/** What waits for a block waits no more. */
export async function lookForOutflows(tx: Sql, chain: ChainId): Promise<void> {
  await tx.query(
    `UPDATE outflows SET due_height = NULL WHERE chain = $1 AND state IN ${LIVE} AND due_height IS NOT NULL`,
    [chain],
  )
}
