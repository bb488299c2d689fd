import type { MailPreferences } from '../domain/notifications/preferences.ts'
import { bucketOf } from '../domain/orders/identifiers.ts'
import type { Order } from '../domain/orders/order.ts'
import type { InstantMs } from '../domain/time.ts'
import type { Sql } from './database.ts'
import { eventKeyOf } from './events.ts'
import { findMailReaders } from './notification_settings.ts'
import { findLoggedEndpoints } from './webhook_receivers.ts'

/** Neither the URL, which may hold a secret of its receiver, nor what was said in an answer. */
export type ToldWebhook = {
  readonly sequence: number
  /** `callback` for the order's callback_url, or an endpoint of the account. */
  readonly receiver: string
  /** With its port. */
  readonly host: string
  readonly state: string
  readonly attempts: number
  /** The status of HTTP, or why there was none; null before the first attempt, and of one without an end. */
  readonly last_answer: string | null
  readonly last_began_at_ms: InstantMs | null
  /** Null when it is over. */
  readonly due_at_ms: InstantMs | null
  /** The event that its receiver is told next, before all later ones. */
  readonly next_sequence: number | null
}

/** Not what it says: that may hold a link for its reader alone. */
export type ToldMail = {
  readonly event_key: string
  readonly kind: string
  readonly to_address: string
  readonly state: string
  readonly attempts: number
  /** What stands before the @ of its Message-ID. */
  readonly message_id: string
  readonly last_answer: string | null
  readonly queued_at_ms: InstantMs
  /** Null when it is over. */
  readonly due_at_ms: InstantMs | null
}

/** Whom an order's events were handed on to, as far as that is kept; and what its account wants at present. */
export type Told = {
  readonly relayed_sequence: number
  readonly webhooks: readonly ToldWebhook[]
  readonly mails: readonly ToldMail[]
  readonly endpoints: number
  /** Null: it has no address. */
  readonly mail_preferences: MailPreferences | null
}

export async function readTold(sql: Sql, { terms, sequence }: Order): Promise<Told> {
  const { id, accountId } = terms
  const [bucket, keys] = [bucketOf(id), Array.from({ length: sequence }, (_, at) => eventKeyOf(id, at + 1))]
  const [relayed] = await sql.query<{ relayed_sequence: number }>(
    'SELECT relayed_sequence FROM orders WHERE bucket = $1 AND order_id = $2',
    [bucket, id],
  )
  const [reader] = await findMailReaders(sql, [accountId])
  return {
    relayed_sequence: relayed?.relayed_sequence ?? 0,
    webhooks: await sql.query<ToldWebhook>(WEBHOOKS, [bucket, id]),
    mails: await sql.query<ToldMail>(
      `SELECT event_key, kind, to_address, state, attempts, message_id, last_answer, queued_at_ms,
         CASE WHEN state = 'waiting' THEN due_at_ms END AS due_at_ms
       FROM mails WHERE bucket = $1 AND event_key = ANY($2) ORDER BY queued_at_ms, event_key, kind, to_address`,
      [bucket, keys],
    ),
    endpoints: (await findLoggedEndpoints(sql, [accountId])).length,
    mail_preferences: reader === undefined ? null : { emails: reader.emails, muted: reader.muted },
  }
}

const WEBHOOKS = `
  SELECT d.sequence, d.receiver, l.host, d.state, made.attempts, last.answer AS last_answer,
    last.began_at_ms AS last_began_at_ms, CASE WHEN d.state = 'waiting' THEN d.due_at_ms END AS due_at_ms, l.next_sequence
  FROM webhook_deliveries d JOIN webhook_lines l USING (bucket, order_id, receiver)
  CROSS JOIN LATERAL (
    SELECT count(*)::int AS attempts FROM webhook_attempts a
    WHERE (a.bucket, a.order_id, a.receiver, a.sequence) = (d.bucket, d.order_id, d.receiver, d.sequence)) AS made
  LEFT JOIN LATERAL (
    SELECT CASE WHEN outcome = 'answered' THEN 'HTTP ' || status ELSE said END AS answer, began_at_ms
    FROM webhook_attempts a
    WHERE (a.bucket, a.order_id, a.receiver, a.sequence) = (d.bucket, d.order_id, d.receiver, d.sequence)
    ORDER BY fence DESC LIMIT 1) AS last ON true
  WHERE d.bucket = $1 AND d.order_id = $2 ORDER BY d.sequence, d.receiver`
