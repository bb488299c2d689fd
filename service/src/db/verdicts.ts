import type { PayoutId } from '../domain/payouts/intent.ts'
import type { InstantMs } from '../domain/time.ts'
import type { Sql } from './database.ts'
import { bucketOfPayout, type OtherMove } from './outflows.ts'

/** Whether an operator has said that this move paid, or null: nobody has said anything about just this one. */
export async function findVerdict(
  sql: Sql,
  payoutId: PayoutId,
  { txHash, moved }: OtherMove,
): Promise<boolean | null> {
  const [row] = await sql.query<{ is_paid: boolean }>(
    'SELECT is_paid FROM verdicts WHERE bucket = $1 AND payout_id = $2 AND tx_hash = $3 AND moved = $4',
    [bucketOfPayout(payoutId), payoutId, txHash, moved],
  )
  return row?.is_paid ?? null
}

/** Writes the one verdict there is about a move. */
export async function insertVerdict(
  tx: Sql,
  payoutId: PayoutId,
  { txHash, moved }: OtherMove,
  isPaid: boolean,
  atWallMs: InstantMs,
): Promise<void> {
  await tx.query(
    'INSERT INTO verdicts (bucket, payout_id, tx_hash, moved, is_paid, at_wall_ms) VALUES ($1, $2, $3, $4, $5, $6)',
    [bucketOfPayout(payoutId), payoutId, txHash, moved, isPaid, atWallMs],
  )
}

/** What waits for a verdict of an outflow, which is locked until the transaction ends, or null. */
export async function lockUnjudged(tx: Sql, payoutId: PayoutId): Promise<OtherMove | null> {
  const [row] = await tx.query<{ unjudged_tx_hash: string | null; unjudged_moved: string | null }>(
    `SELECT unjudged_tx_hash, unjudged_moved FROM outflows WHERE bucket = $1 AND payout_id = $2 FOR UPDATE`,
    [bucketOfPayout(payoutId), payoutId],
  )
  const txHash = row?.unjudged_tx_hash ?? null
  const moved = row?.unjudged_moved ?? null
  return txHash === null || moved === null ? null : { txHash, moved }
}

/** Due by every clock. A worker that has it at this moment puts it off once more, not knowing of the verdict. */
export async function makeOutflowDue(tx: Sql, payoutId: PayoutId): Promise<void> {
  await tx.query(
    'UPDATE outflows SET due_at_ms = planned_at_ms, due_height = NULL WHERE bucket = $1 AND payout_id = $2',
    [bucketOfPayout(payoutId), payoutId],
  )
}
