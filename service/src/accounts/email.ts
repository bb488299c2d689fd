import { appendAudit, type By } from '../db/audit_log.ts'
import { queueMail, readdressMails } from '../db/mails.ts'
import { accept, type Outcome, refuse } from '../domain/outcome.ts'
import type { InstantMs } from '../domain/time.ts'
import { type AccountsPlace, refuseTaken, replaceEmail } from './accounts.ts'
import { parseEmail } from './email_address.ts'

/** Mails are due on the service's clock (clock.ts). */
export type EmailPlace = AccountsPlace & { nowMs(): InstantMs }

const ENDED = 'Nobody is signed in to it any more.'
const TAKEN_AWAY = `The operator of the service has taken the email address of your account away. ${ENDED}`
const REPLACED = `The operator of the service has given your account another email address. ${ENDED}`

/**
 * Gives an account another address at once, without asking either: for the operator, who has made sure whose it is. Every
 * session ends, because whoever holds one may be whom the account is taken from. The old address is told, and not of the new one.
 */
export async function setEmail(
  { db, wallMs, nowMs }: EmailPlace,
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
    if (old.email !== null && old.email !== address.value) {
      await readdressMails(tx, { accountId, from: old.email, to: address.value, nowMs: nowMs() })
      await queueMail(tx, {
        eventKey: `email_set:${accountId}:${wallMs()}`,
        orderId: null,
        accountId,
        to: old.email,
        nowMs: nowMs(),
        kind: 'security_notice',
        data: { what: address.value === null ? TAKEN_AWAY : REPLACED, is_former: true },
      })
    }
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
