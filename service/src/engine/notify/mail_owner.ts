import type { Sql } from '../../db/database.ts'
import { queueMail } from '../../db/mails.ts'
import { findMailReaders } from '../../db/notification_settings.ts'
import type { WebhookParts } from './webhook_world.ts'

/** What the owner of an account is mailed about its webhooks, if there is an address and mails are not switched off. */
export const mailOwner: Pick<WebhookParts, 'tellExhausted' | 'tellDisabled'> = {
  tellExhausted: async (tx, { orderId, accountId, sequence, url, endpoint, lastAnswer, nowMs }) => {
    const to = await findAddress(tx, accountId)
    if (to === null) return
    await queueMail(tx, {
      kind: 'webhook_exhausted',
      data: { order_id: orderId, url, endpoint, last_answer: lastAnswer.slice(0, 200) },
      // Delivered again and given up again, it is told again: by then it is another time.
      eventKey: `webhook:${orderId}:${sequence}:${endpoint ?? 'callback'}:${nowMs}`,
      orderId,
      accountId,
      to,
      nowMs,
    })
  },
  tellDisabled: async (tx, { orderId, accountId, url, endpoint, nowMs }) => {
    const to = await findAddress(tx, accountId)
    if (to === null) return
    await queueMail(tx, {
      kind: 'endpoint_disabled',
      data: { order_id: orderId, url, endpoint },
      // Enabled and disabled again, it is told again: by then it is another time.
      eventKey: `endpoint_disabled:${endpoint}:${nowMs}`,
      orderId,
      accountId,
      to,
      nowMs,
    })
  },
}

async function findAddress(tx: Sql, accountId: string): Promise<string | null> {
  const [owner] = await findMailReaders(tx, [accountId])
  return owner === undefined || owner.emails === 'off' ? null : owner.email
}
