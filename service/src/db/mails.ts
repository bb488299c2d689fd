import { createHash } from 'node:crypto'
import type { MailContent } from '../domain/notifications/mail_content.ts'
import { bucketOf, type OrderId } from '../domain/orders/identifiers.ts'
import type { InstantMs } from '../domain/time.ts'
import type { Sql } from './database.ts'

/** A mail to be sent, in the transaction that makes it true. */
export type NewMail = MailContent & {
  /**
   * What happened, as no other thing that happened is named (`CB…:3`, `sign_in:<id of the link>`): with kind and
   * address it makes the mail exist once.
   */
  readonly eventKey: string
  /** The order it is about; null for a mail about the account. */
  readonly orderId: OrderId | null
  readonly accountId: string | null
  readonly to: string
  /** On the service's clock: it is due at once. */
  readonly nowMs: InstantMs
}

/** Writes the mail down, or does nothing when it is written down already. Sending it is the notifier's. */
export async function queueMail(tx: Sql, mail: NewMail): Promise<void> {
  await tx.query(
    `INSERT INTO mails (bucket, event_key, kind, to_address, account_id, data, message_id, queued_at_ms, due_at_ms)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8)
     ON CONFLICT (bucket, event_key, kind, to_address) DO NOTHING`,
    [
      mail.orderId === null ? 0 : bucketOf(mail.orderId),
      mail.eventKey,
      mail.kind,
      mail.to,
      mail.accountId,
      JSON.stringify(mail.data),
      messageIdOf(mail),
      mail.nowMs,
    ],
  )
}

/** From what makes the mail exist once: the same mail has the same id, whoever writes it down, and no other has it. */
function messageIdOf({ eventKey, kind, to }: NewMail): string {
  return createHash('sha256')
    .update(JSON.stringify([eventKey, kind, to]))
    .digest('base64url')
    .slice(0, 32)
}
