import { queueMail } from '../../db/mails.ts'
import { findMailReaders } from '../../db/notification_settings.ts'
import type { WebhookParts } from './webhook_world.ts'

/** A mail to the owner of the order, if there is an address and mails are not switched off. */
export const mailExhausted: WebhookParts['tellExhausted'] = async (tx, exhausted) => {
  const { orderId, accountId, sequence, url, endpoint, lastAnswer, nowMs } = exhausted
  const [owner] = await findMailReaders(tx, [accountId])
  if (owner === undefined || owner.emails === 'off') return
  await queueMail(tx, {
    kind: 'webhook_exhausted',
    data: { order_id: orderId, url, endpoint, last_answer: lastAnswer.slice(0, 200) },
    // Delivered again and given up again, it is told again: by then it is another time.
    eventKey: `webhook:${orderId}:${sequence}:${endpoint ?? 'callback'}:${nowMs}`,
    orderId,
    accountId,
    to: owner.email,
    nowMs,
  })
}
