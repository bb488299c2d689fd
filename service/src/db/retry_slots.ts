import type { InstantMs } from '../domain/time.ts'
import type { Sql } from './database.ts'

/**
 * What makes a repeated POST one act: the Idempotency-Key (`key:…`), or a hash of the signature (`sign:…`) when
 * there is none. It is stored in the transaction that acts, so a crash between acting and answering cannot act twice.
 * Refusals change nothing and are not kept: a retry is judged afresh.
 */
export type RetrySlot = { readonly slot: string; readonly bodyHash: string }

export type FilledSlot = { readonly bodyHash: string; readonly orderId: string; readonly answer: unknown }

/** What was done the first time, if there was one. */
export function findRetrySlot(sql: Sql, accountId: string, slot: string): Promise<FilledSlot | null> {
  return readSlot(sql, accountId, slot, '')
}

/** The same; whoever wants to lock it next waits until the transaction ends. */
export function lockRetrySlot(tx: Sql, accountId: string, slot: string): Promise<FilledSlot | null> {
  return readSlot(tx, accountId, slot, 'FOR UPDATE')
}

async function readSlot(
  sql: Sql,
  accountId: string,
  slot: string,
  lock: '' | 'FOR UPDATE',
): Promise<FilledSlot | null> {
  const [row] = await sql.query<{ body_hash: string; order_id: string; answer: unknown }>(
    `SELECT body_hash, order_id, answer FROM retry_slots WHERE account_id = $1 AND slot = $2 ${lock}`,
    [accountId, slot],
  )
  return row === undefined ? null : { bodyHash: row.body_hash, orderId: row.order_id, answer: row.answer }
}

/** In the transaction that acts. False: another request with the same slot has acted; this one must not. */
export async function fillRetrySlot(
  tx: Sql,
  accountId: string,
  slot: string,
  filled: FilledSlot,
  wallMs: InstantMs,
): Promise<boolean> {
  const rows = await tx.query(
    `INSERT INTO retry_slots (account_id, slot, body_hash, order_id, answer, at_ms) VALUES ($1, $2, $3, $4, $5, $6)
     ON CONFLICT DO NOTHING RETURNING slot`,
    [
      accountId,
      slot,
      filled.bodyHash,
      filled.orderId,
      filled.answer === null ? null : JSON.stringify(filled.answer),
      wallMs,
    ],
  )
  return rows.length > 0
}

/** In the transaction of an act that takes several: how far it is now. The slot is filled and locked. */
export async function moveRetrySlot(tx: Sql, accountId: string, slot: string, answer: object): Promise<void> {
  await tx.query('UPDATE retry_slots SET answer = $3 WHERE account_id = $1 AND slot = $2', [
    accountId,
    slot,
    JSON.stringify(answer),
  ])
}

/** At most `limit` of them, so that a statement stays short after a long pause; answers how many it was. */
export async function deleteRetrySlots(sql: Sql, beforeWallMs: InstantMs, limit: number): Promise<number> {
  const rows = await sql.query(
    `DELETE FROM retry_slots WHERE (account_id, slot) IN (
       SELECT account_id, slot FROM retry_slots WHERE at_ms < $1 ORDER BY at_ms LIMIT $2 FOR UPDATE SKIP LOCKED)
     RETURNING 1 AS one`,
    [beforeWallMs, limit],
  )
  return rows.length
}
