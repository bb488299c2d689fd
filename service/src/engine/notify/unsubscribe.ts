import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto'
import { appendAudit } from '../../db/audit_log.ts'
import type { Database } from '../../db/database.ts'
import { muteMail, turnMailsOff } from '../../db/notification_settings.ts'
import { isMailClass, type MailClass } from '../../domain/notifications/preferences.ts'
import type { InstantMs } from '../../domain/time.ts'

/** Which mails of which account a link switches off. */
export type Unsubscription = { readonly accountId: string; readonly mailClass: MailClass }

export type Unsubscribing = {
  /** The same for ever: a mail of last year still works. */
  tokenOf(unsubscription: Unsubscription): string
  /** Null: nobody was given this. */
  read(token: string): Unsubscription | null
  /** Doing it twice is the same as once: whoever has a link must not be able to lengthen a log that is never cut. */
  unsubscribe(
    unsubscription: Unsubscription,
    by: { readonly address: string; readonly atMs: InstantMs },
  ): Promise<void>
}

const TOKEN = /^(acc_[0-9a-z]{8,32})\.([a-z_]{1,40})\.([A-Za-z0-9_-]{43})$/

/** Links that switch mails off for whoever has them, and can do nothing else. */
export function unsubscribing(db: Database, key: KeyObject): Unsubscribing {
  // Of a purpose of its own: what the key says of orders says nothing here.
  const macOf = ({ accountId, mailClass }: Unsubscription) =>
    createHmac('sha256', key).update(`unsubscribe\n${accountId}\n${mailClass}`).digest()
  return {
    tokenOf: (each) => `${each.accountId}.${each.mailClass}.${macOf(each).toString('base64url')}`,
    read(token) {
      const [, accountId, mailClass, mac] = TOKEN.exec(token) ?? []
      if (accountId === undefined || mailClass === undefined || mac === undefined) return null
      if (!isMailClass(mailClass)) return null
      const given = Buffer.from(mac, 'base64url')
      const right = macOf({ accountId, mailClass })
      const isRight = given.length === right.length && timingSafeEqual(given, right)
      return isRight ? { accountId, mailClass } : null
    },
    unsubscribe: ({ accountId, mailClass }, { address, atMs }) =>
      db.transaction(async (tx) => {
        const isChanged =
          mailClass === 'all' ? await turnMailsOff(tx, accountId) : await muteMail(tx, accountId, mailClass)
        if (!isChanged) return
        await appendAudit(tx, {
          chain: accountId,
          atMs,
          act: 'notifications_changed',
          by: { actor: 'visitor', address, sessionId: null },
          subject: accountId,
          detail: { unsubscribed: mailClass },
        })
      }),
  }
}
