import type { PayoutId } from '../domain/payouts/intent.ts'
import type { InstantMs } from '../domain/time.ts'
import type { Sql } from './database.ts'
import { type OperatorAct, readOperatorActs, type WhoAndWhy } from './operator_acts.ts'
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

/** A verdict, with who gave it and why. */
export type ToldVerdict = WhoAndWhy & {
  readonly payout_id: PayoutId
  readonly tx_hash: string
  readonly moved: string
  readonly is_paid: boolean
}

/** All verdicts there are about these, the earliest first. */
export async function readVerdicts(sql: Sql, payoutIds: readonly PayoutId[]): Promise<ToldVerdict[]> {
  const rows = await sql.query<Omit<ToldVerdict, 'by' | 'because' | 'audit_chain'>>(
    `SELECT payout_id, tx_hash, moved, is_paid, at_wall_ms AS at_ms FROM verdicts
     WHERE bucket = ANY ($1) AND payout_id = ANY ($2) ORDER BY at_wall_ms, payout_id, tx_hash, moved`,
    [[...new Set(payoutIds.map(bucketOfPayout))], payoutIds],
  )
  if (rows.length === 0) return []
  const acts = await readOperatorActs(sql, 'payout_judged', payoutIds)
  return rows.map((row) => {
    const { by = null, because = null, audit_chain = null } = acts.find((act) => isOf(act, row)) ?? {}
    return { ...row, by, because, audit_chain }
  })
}

function isOf({ subject, detail }: OperatorAct, row: Pick<ToldVerdict, 'payout_id' | 'tx_hash' | 'moved'>) {
  return subject === row.payout_id && detail.tx_hash === row.tx_hash && detail.moved === row.moved
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
