import { parseExact, stringifyExact } from '../domain/exact_json.ts'
import type { Intent, PayoutId, SignedTx } from '../domain/payouts/intent.ts'
import type { InstantMs } from '../domain/time.ts'
import type { Sql } from './database.ts'
import { bucketOfPayout } from './outflows.ts'

export type Attempt = {
  readonly attempt: number
  readonly intent: Intent
  readonly tx: SignedTx | null
  readonly answer: 'accepted' | 'refused' | 'unknown' | null
  readonly broadcastAtMs: InstantMs | null
}

/** Every exact transaction written down for an outflow, the first one first. */
export async function attemptsOf(sql: Sql, payoutId: PayoutId): Promise<Attempt[]> {
  const rows = await sql.query<{
    attempt: number
    intent: string
    tx_hash: string | null
    bytes: string | null
    answer: Attempt['answer']
    broadcast_at_ms: number | null
  }>(
    `SELECT attempt, intent::text AS intent, tx_hash, bytes, answer, broadcast_at_ms FROM attempts
     WHERE bucket = $1 AND payout_id = $2 ORDER BY attempt`,
    [bucketOfPayout(payoutId), payoutId],
  )
  return rows.map((row) => ({
    attempt: row.attempt,
    intent: parseExact(row.intent) as Intent,
    tx: row.tx_hash === null || row.bytes === null ? null : { txHash: row.tx_hash, bytes: row.bytes },
    answer: row.answer,
    broadcastAtMs: row.broadcast_at_ms,
  }))
}

export async function insertAttempt(tx: Sql, intent: Intent, nowMs: InstantMs): Promise<void> {
  await tx.query(
    'INSERT INTO attempts (bucket, payout_id, attempt, intent, drafted_at_ms) VALUES ($1, $2, $3, $4, $5)',
    [bucketOfPayout(intent.payoutId), intent.payoutId, intent.attempt, stringifyExact(intent), nowMs],
  )
}

/** The bytes, before anyone else sees them, and what they say where that is not what was drafted. Stored once; never overwritten. */
export async function storeSignedBytes(
  sql: Sql,
  payoutId: PayoutId,
  attempt: number,
  { txHash, bytes, intent }: SignedTx & { readonly intent?: Intent },
): Promise<void> {
  await sql.query(
    `UPDATE attempts SET tx_hash = $4, bytes = $5, intent = coalesce($6::jsonb, intent)
     WHERE bucket = $1 AND payout_id = $2 AND attempt = $3 AND bytes IS NULL`,
    [
      bucketOfPayout(payoutId),
      payoutId,
      attempt,
      txHash,
      bytes,
      intent === undefined ? null : stringifyExact(intent),
    ],
  )
}

/** Null: about to be sent, and from now on maybe sent, until the answer is known. */
export async function storeAnswer(
  sql: Sql,
  payoutId: PayoutId,
  attempt: number,
  answer: 'accepted' | 'refused' | 'unknown',
  nowMs: InstantMs,
): Promise<void> {
  await sql.query(
    `UPDATE attempts SET answer = $4, broadcast_at_ms = coalesce(broadcast_at_ms, $5)
     WHERE bucket = $1 AND payout_id = $2 AND attempt = $3`,
    [bucketOfPayout(payoutId), payoutId, attempt, answer, nowMs],
  )
}

/** Whether we made this transaction ourselves: some attempt of some outflow has its hash. */
export async function isOwnTransaction(sql: Sql, txHash: string): Promise<boolean> {
  const rows = await sql.query('SELECT 1 AS one FROM attempts WHERE tx_hash = $1 LIMIT 1', [txHash])
  return rows.length > 0
}
