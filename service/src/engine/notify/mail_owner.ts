import { createHash } from 'node:crypto'
import type { Sql } from '../../db/database.ts'
import { queueMail } from '../../db/mails.ts'
import { findMailReaders } from '../../db/notification_settings.ts'
import type { InstantMs } from '../../domain/time.ts'
import type { WebhookParts } from './webhook_world.ts'

/** What the owner of an account is mailed about its webhooks, if there is an address and mails are not switched off. */
export const mailOwner: Pick<WebhookParts, 'tellExhausted' | 'tellDisabled'> = {
  tellExhausted: async (tx, { orderId, accountId, url, host, endpoint, lastAnswer, nowMs }) => {
    const to = await findAddress(tx, accountId)
    if (to === null) return
    await queueMail(tx, {
      kind: 'webhook_exhausted',
      data: { order_id: orderId, url, endpoint, last_answer: firstOf(lastAnswer) },
      // A receiver that is away lets all of its events be given up: that is one thing that happened, and one mail a day.
      eventKey: `webhook:${accountId}:${endpoint ?? hashOf(host)}:${dayOf(nowMs)}`,
      // Of many orders; a mail exists once among those of one order, or among those of none.
      orderId: null,
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

/** Half a character is no text to PostgreSQL: the delivery would not end, and be told again and again. */
function firstOf(answer: string): string {
  return [...answer].slice(0, 200).join('').toWellFormed()
}

/** A host may be longer than a key. */
function hashOf(host: string): string {
  return createHash('sha256').update(host).digest('base64url')
}

/** In UTC: `2026-11-22`. */
function dayOf(atMs: InstantMs): string {
  return new Date(atMs).toISOString().slice(0, 10)
}

async function findAddress(tx: Sql, accountId: string): Promise<string | null> {
  const [owner] = await findMailReaders(tx, [accountId])
  return owner === undefined || owner.emails === 'off' ? null : owner.email
}
