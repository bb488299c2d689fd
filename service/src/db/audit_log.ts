import { createHash } from 'node:crypto'
import type { InstantMs } from '../domain/time.ts'
import type { Sql } from './database.ts'

/** What is written down, and in the words that its readers see. */
export type AuditAct =
  | 'account_created'
  | 'email_set'
  | 'email_change_asked'
  | 'email_change_agreed'
  | 'email_change_cancelled'
  | 'email_changed'
  | 'sign_in_link_asked'
  | 'signed_in'
  | 'sign_in_failed'
  | 'session_ended'
  | 'sessions_ended'
  | 'key_created'
  | 'key_rotated'
  | 'key_revoked'
  | 'notifications_changed'
  | 'endpoint_created'
  | 'endpoint_changed'
  | 'endpoint_deleted'
  | 'webhook_secret_rotated'
  | 'action_chosen'
  | 'difference_booked'
  | 'payout_judged'
  | 'addresses_skipped'
  | 'noted'
  | 'unclaimed_closed'
  | 'deposit_written_off'
  | 'owed_closed'

/** `owner`: signed in; `key`: signed with one; `operator`: at the command line; `visitor`: has proven nothing, or just now. */
export type Actor = 'owner' | 'operator' | 'visitor' | 'key'

/** Who acts, and from where; null where no request brought it. */
export type By = {
  readonly actor: Actor
  readonly address: string | null
  readonly sessionId: string | null
  /** Of an act that was signed. */
  readonly keyId?: string
  /** Of an act at the command line: who typed it and on which machine, as that machine says. */
  readonly machine?: { readonly user: string; readonly host: string }
}

export const operator: By = { actor: 'operator', address: null, sessionId: null }

export type AuditEntry = {
  /** An account's id, or `houseChain`. */
  readonly chain: string
  readonly atMs: InstantMs
  readonly act: AuditAct
  readonly by: By
  readonly subject: string | null
  readonly detail: Readonly<Record<string, string>>
}

/** A row as it stands in the table; numbers as text, so that whatever stands there can be read. */
export type AuditRow = {
  readonly chain: string
  readonly sequence: string
  readonly at_ms: string
  readonly act: string
  readonly actor: string
  readonly subject: string | null
  readonly address: string | null
  readonly detail: string
  /** Hex. */
  readonly previous_hash: string
  readonly hash: string
}

export type AuditHead = { readonly chain: string; readonly sequence: number; readonly hash: string }

/** What the first row of a chain has for the hash of the one before. */
export const FIRST_PREVIOUS = '0'.repeat(64)

/** Where acts are written that belong to no account: spread, so that not all wait for one. */
export function houseChain(about: string): string {
  return `house_${createHash('sha256').update(about).digest('hex').charAt(0)}`
}

/** Over everything a row says: a JSON array of strings and nulls can be taken apart in one way only. */
export function hashRow(row: Omit<AuditRow, 'hash'>): string {
  const { previous_hash, chain, sequence, at_ms, act, actor, subject, address, detail } = row
  const told = [
    'cambist-audit-1',
    previous_hash,
    chain,
    sequence,
    at_ms,
    act,
    actor,
    subject,
    address,
    detail,
  ]
  return createHash('sha256').update(JSON.stringify(told)).digest('hex')
}

/**
 * Writes an act down, in the transaction that does it. Whoever else writes in the same chain waits until that ends, so
 * this comes last in it.
 */
export async function appendAudit(tx: Sql, entry: AuditEntry): Promise<void> {
  const [head] = await tx.query<{ sequence: number; hash: string }>(
    `INSERT INTO audit_heads (chain, sequence, hash) VALUES ($1, 0, decode($2, 'hex'))
     ON CONFLICT (chain) DO UPDATE SET sequence = audit_heads.sequence
     RETURNING sequence, encode(hash, 'hex') AS hash`,
    [entry.chain, FIRST_PREVIOUS],
  )
  if (head === undefined) throw new Error(`the chain ${entry.chain} has no head`)
  const row = rowOf(entry, head.sequence + 1, head.hash)
  await tx.query(
    `WITH added AS (
       INSERT INTO audit_log (chain, sequence, at_ms, act, actor, subject, address, detail, previous_hash, hash)
       VALUES ($1, $2, $3, $4, $5, $6, $7, $8, decode($9, 'hex'), decode($10, 'hex'))
     )
     UPDATE audit_heads SET sequence = $2, hash = decode($10, 'hex') WHERE chain = $1`,
    [
      row.chain,
      row.sequence,
      row.at_ms,
      row.act,
      row.actor,
      row.subject,
      row.address,
      row.detail,
      row.previous_hash,
      hashRow(row),
    ],
  )
}

function rowOf({ chain, atMs, act, by, subject, detail }: AuditEntry, sequence: number, previous: string) {
  const told = {
    ...detail,
    ...(by.sessionId !== null && { session: by.sessionId }),
    ...(by.keyId !== undefined && { key: by.keyId }),
    ...(by.machine !== undefined && { os_user: by.machine.user, os_host: by.machine.host }),
  }
  return {
    chain,
    sequence: String(sequence),
    at_ms: String(atMs),
    act,
    actor: by.actor,
    // What is not Unicode would be stored otherwise than it was hashed.
    subject: subject?.toWellFormed() ?? null,
    address: by.address?.toWellFormed() ?? null,
    detail: JSON.stringify(told).toWellFormed(),
    previous_hash: previous,
  }
}

/** What a row says beside who, when and what, as it is for the owner of an account: how our machines are called is no business of theirs. */
export function detailForOwner({
  actor,
  detail,
}: Pick<AuditRow, 'actor' | 'detail'>): Readonly<Record<string, string>> {
  const told = JSON.parse(detail) as Record<string, string>
  if (actor !== operator.actor) return told
  const { os_user, os_host, ...rest } = told
  return rest
}

/** Whoever has changed the row may have left no JSON: then it says nothing, and `audit verify` names it. */
export function readDetail(text: string): Readonly<Record<string, unknown>> {
  try {
    return Object(JSON.parse(text))
  } catch {
    return {}
  }
}

const ROW = `chain, sequence::text, at_ms::text, act, actor, subject, address, detail,
  encode(previous_hash, 'hex') AS previous_hash, encode(hash, 'hex') AS hash`

/** In the order in which they were written, from the one after `sequence` on. */
export function readAuditRows(sql: Sql, chain: string, sequence: number, limit: number): Promise<AuditRow[]> {
  return sql.query<AuditRow>(
    `SELECT ${ROW} FROM audit_log WHERE chain = $1 AND audit_log.sequence > $2 ORDER BY audit_log.sequence LIMIT $3`,
    [chain, sequence, limit],
  )
}

/** The newest first, from the one before `sequence` on. */
export function readAuditBackwards(
  sql: Sql,
  chain: string,
  sequence: number,
  limit: number,
): Promise<AuditRow[]> {
  return sql.query<AuditRow>(
    `SELECT ${ROW} FROM audit_log WHERE chain = $1 AND audit_log.sequence < $2
     ORDER BY audit_log.sequence DESC LIMIT $3`,
    [chain, sequence, limit],
  )
}

/** Every row of an act, in whatever chain it stands: reads the whole log. */
export function readAuditAct(sql: Sql, act: AuditAct): Promise<AuditRow[]> {
  return sql.query<AuditRow>(
    `SELECT ${ROW} FROM audit_log WHERE act = $1 ORDER BY chain, audit_log.sequence`,
    [act],
  )
}

/** Of every chain that has a row or a head. */
export async function auditChains(sql: Sql): Promise<readonly string[]> {
  const rows = await sql.query<{ chain: string }>(
    'SELECT chain FROM audit_heads UNION SELECT chain FROM audit_log ORDER BY chain',
  )
  return rows.map(({ chain }) => chain)
}

export async function findAuditHead(sql: Sql, chain: string): Promise<AuditHead | null> {
  const [head] = await sql.query<AuditHead>(
    `SELECT chain, sequence, encode(hash, 'hex') AS hash FROM audit_heads WHERE chain = $1`,
    [chain],
  )
  return head ?? null
}

export function readAuditHeads(sql: Sql): Promise<AuditHead[]> {
  return sql.query<AuditHead>(
    `SELECT chain, sequence, encode(hash, 'hex') AS hash FROM audit_heads ORDER BY chain`,
  )
}
