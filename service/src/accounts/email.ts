import { appendAudit, type By } from '../db/audit_log.ts'
import { accept, type Outcome, refuse } from '../domain/outcome.ts'
import { type AccountsPlace, refuseTaken, replaceEmail } from './accounts.ts'
import { parseEmail } from './email_address.ts'

/**
 * Gives an account another address at once, without asking either: for the operator, who has made sure whose it is. Every
 * session ends, because whoever holds one may be whom the account is taken from.
 */
export async function setEmail(
  { db, wallMs }: AccountsPlace,
  by: By,
  accountId: string,
  email: string | null,
): Promise<Outcome<string | null>> {
  const address = email === null ? accept(null) : parseEmail(email)
  if (!address.ok) return address
  const work = db.transaction(async (tx) => {
    const [old] = await tx.query<{ email: string | null }>(
      'SELECT email FROM accounts WHERE account_id = $1 FOR UPDATE',
      [accountId],
    )
    if (old === undefined) {
      return refuse({ code: 'account_not_found', message: `there is no account ${accountId}` })
    }
    await replaceEmail(tx, accountId, address.value)
    await tx.query('DELETE FROM email_changes WHERE account_id = $1', [accountId])
    await tx.query('DELETE FROM sessions WHERE account_id = $1', [accountId])
    const detail = { from: old.email ?? 'none', to: address.value ?? 'none' }
    await appendAudit(tx, {
      chain: accountId,
      atMs: wallMs(),
      act: 'email_set',
      by,
      subject: accountId,
      detail,
    })
    return accept(address.value)
  })
  return work.catch((error: unknown) => refuseTaken(error, address.value))
}
