import { accept, type Outcome, refuse } from '../domain/outcome.ts'
import type { InstantMs } from '../domain/time.ts'
import type { Sql } from './database.ts'

/**
 * What makes a repeated POST one act: the Idempotency-Key (`key:…`), or a hash of the signature (`sign:…`) when
 * there is none. It is stored in the transaction that acts, so a crash between acting and answering cannot act twice.
 * Refusals change nothing and are not kept: a retry is judged afresh.
 */
export type RetrySlot = { readonly slot: string; readonly bodyHash: string }

/** What was done for a request: for which order ('' where for none), and what it was answered, where that is kept here. */
export type Done = { readonly orderId: string; readonly answer: unknown }

const anotherRequest = {
  code: 'IDEMPOTENCY_CONFLICT',
  message: 'this Idempotency-Key was used with another request; use a new key for a new request',
} as const

/** What was done for the same request before, or the refusal where the slot is that of another one. */
export type Earlier = Outcome<Done, typeof anotherRequest>

/** Null: the slot is free. */
export function findEarlier(sql: Sql, accountId: string, retry: RetrySlot): Promise<Earlier | null> {
  return readSlot(sql, accountId, retry, '')
}

/** The same of a slot that is filled; whoever wants to lock it next waits until the transaction ends. */
export async function lockEarlier(tx: Sql, accountId: string, retry: RetrySlot): Promise<Earlier> {
  return (await readSlot(tx, accountId, retry, 'FOR UPDATE')) ?? refuse(anotherRequest)
}

async function readSlot(
  sql: Sql,
  accountId: string,
  { slot, bodyHash }: RetrySlot,
  lock: '' | 'FOR UPDATE',
): Promise<Earlier | null> {
  const [row] = await sql.query<{ body_hash: string; order_id: string; answer: unknown }>(
    `SELECT body_hash, order_id, answer FROM retry_slots WHERE account_id = $1 AND slot = $2 ${lock}`,
    [accountId, slot],
  )
  if (row === undefined) return null
  return row.body_hash === bodyHash
    ? accept({ orderId: row.order_id, answer: row.answer })
    : refuse(anotherRequest)
}

/** In the transaction that acts. False: another request with the same slot has acted; this one must not. */
export async function fillRetrySlot(
  tx: Sql,
  accountId: string,
  { slot, bodyHash }: RetrySlot,
  { orderId, answer }: Done,
  wallMs: InstantMs,
): Promise<boolean> {
  const rows = await tx.query(
    `INSERT INTO retry_slots (account_id, slot, body_hash, order_id, answer, at_ms) VALUES ($1, $2, $3, $4, $5, $6)
     ON CONFLICT DO NOTHING RETURNING slot`,
    [accountId, slot, bodyHash, orderId, answer === null ? null : JSON.stringify(answer), wallMs],
  )
  return rows.length > 0
}

/** Thrown so that a request whose slot was filled meanwhile undoes what it began; `findEarlier` says what it hears. */
export class SlotTaken extends Error {}

/** The same, for whoever has begun to act: SlotTaken instead of false. */
export async function takeRetrySlot(...filling: Parameters<typeof fillRetrySlot>): Promise<void> {
  if (!(await fillRetrySlot(...filling))) throw new SlotTaken()
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
