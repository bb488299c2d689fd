import { detailForOwner, readAuditBackwards } from '../db/audit_log.ts'
import type { InstantMs } from '../domain/time.ts'
import type { AccountsPlace } from './accounts.ts'

/** A row of the audit log as the owner of the account sees it. */
export type AuditView = {
  readonly sequence: number
  readonly at: InstantMs
  readonly act: string
  readonly actor: string
  readonly subject: string | null
  readonly address: string | null
  readonly detail: Readonly<Record<string, string>>
  readonly hash: string
}

/** The newest first, those before `beforeSequence`. */
export async function readAudit(
  { db }: Pick<AccountsPlace, 'db'>,
  accountId: string,
  beforeSequence: number,
  limit: number,
): Promise<readonly AuditView[]> {
  const rows = await readAuditBackwards(db, accountId, beforeSequence, limit)
  return rows.map((row) => ({
    sequence: Number.parseInt(row.sequence, 10),
    at: Number.parseInt(row.at_ms, 10),
    act: row.act,
    actor: row.actor,
    subject: row.subject,
    address: row.address,
    detail: detailForOwner(row),
    hash: row.hash,
  }))
}
