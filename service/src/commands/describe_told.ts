import type { Told, ToldWebhook } from '../db/told_of_order.ts'
import type { Order } from '../domain/orders/order.ts'
import { section, showTime } from './table.ts'

/** Who was told of an order's events, and where nobody was, why. */
export function describeTold(order: Order, told: Told): string[] {
  const untold = order.sequence - told.relayed_sequence
  return [
    section(
      'Webhooks',
      ['EVENT', 'RECEIVER', 'HOST', 'STATE', 'ATTEMPTS', 'LAST', 'ANSWER', 'NEXT'],
      told.webhooks.map((one) => [
        `#${one.sequence}`,
        one.receiver,
        one.host,
        one.state,
        String(one.attempts),
        showTime(one.last_began_at_ms),
        one.last_answer ?? '-',
        nextOf(one),
      ]),
      whyNoWebhooks(order, told),
    ),
    section(
      'Mails',
      ['EVENT', 'KIND', 'TO', 'STATE', 'ATTEMPTS', 'QUEUED', 'NEXT', 'MESSAGE-ID', 'ANSWER'],
      told.mails.map((one) => [
        one.event_key.replace(/^.*:/, '#'),
        one.kind,
        one.to_address,
        one.state,
        String(one.attempts),
        showTime(one.queued_at_ms),
        showTime(one.due_at_ms),
        one.message_id,
        one.last_answer ?? '-',
      ]),
      whyNoMails(order, told),
    ),
    ...(untold > 0
      ? [
          `The last ${untold === 1 ? 'event was' : `${untold} events were`} not handed on to webhooks and mails yet.`,
        ]
      : []),
  ]
}

function nextOf({ sequence, due_at_ms, next_sequence }: ToldWebhook): string {
  if (due_at_ms === null || next_sequence === null || sequence === next_sequence) return showTime(due_at_ms)
  return `after #${next_sequence}`
}

const KEPT = 'none (30 days after they are over they are deleted)'

function whyNoWebhooks({ terms }: Order, { endpoints }: Told): string {
  if (terms.callbackUrl !== null || endpoints > 0) return KEPT
  return 'none wanted: the order has no callback_url, and its account no endpoint'
}

function whyNoMails({ terms }: Order, { mail_preferences: wanted }: Told): string {
  if (wanted === null) return 'none wanted: the account has no e-mail address'
  if (wanted.emails === 'off') return 'none wanted: the account has switched mails off'
  if (wanted.emails === 'with_callback' && terms.callbackUrl === null)
    return 'none wanted: the account has mails of orders with a callback_url only'
  return wanted.muted.length === 0 ? KEPT : `${KEPT}; not wanted: ${wanted.muted.join(', ')}`
}
