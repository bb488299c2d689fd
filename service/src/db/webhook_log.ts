import { bucketOf, type OrderId } from '../domain/orders/identifiers.ts'
import type { OrderStatus } from '../domain/orders/order.ts'
import type { InstantMs } from '../domain/time.ts'
import type { DeliveryKey } from '../domain/webhooks/delivery_id.ts'
import type { Sql } from './database.ts'
import type { DeliveryState } from './webhook_lines.ts'
import { isEnabled } from './webhook_receivers.ts'

export type LoggedAttempt = {
  readonly beganAtMs: InstantMs
  /** Null while it is under way, and for good when whoever made it died. */
  readonly endedAtMs: InstantMs | null
  readonly outcome: 'answered' | 'forbidden' | 'failed' | null
  readonly status: number | null
  readonly said: string | null
}

export type LoggedDelivery = DeliveryKey & {
  /** What the event says the order became. */
  readonly orderStatus: OrderStatus
  readonly url: string
  readonly state: DeliveryState
  readonly eventAtMs: InstantMs
  readonly dueAtMs: InstantMs
  readonly endedAtMs: InstantMs | null
  /** The newest `ATTEMPTS_SHOWN` of them, the oldest first. */
  readonly attempts: readonly LoggedAttempt[]
}

/** What was delivered again and again must not make a page long. */
const ATTEMPTS_SHOWN = 20

/** What a redelivery leaves of the attempts before it: a whole round of ten failures. */
const ATTEMPTS_KEPT = 10

/**
 * `found` answers rows of `webhook_deliveries`. It chooses among them alone, because PostgreSQL takes an order with its event for
 * far rarer than it is: to find a page of those it would read all that the account was ever told.
 */
const logOf = (
  found: string,
) => `SELECT d.order_id AS "orderId", d.receiver, d.sequence, events.status AS "orderStatus", l.url, d.state,
    d.event_at_ms AS "eventAtMs", d.due_at_ms AS "dueAtMs", d.ended_at_ms AS "endedAtMs",
    (SELECT coalesce(jsonb_agg(jsonb_build_object('beganAtMs', a.began_at_ms, 'endedAtMs', a.ended_at_ms,
       'outcome', a.outcome, 'status', a.status, 'said', a.said) ORDER BY a.fence), '[]')
     FROM (SELECT * FROM webhook_attempts one WHERE (one.bucket, one.order_id, one.receiver, one.sequence)
         = (d.bucket, d.order_id, d.receiver, d.sequence)
       ORDER BY one.fence DESC LIMIT ${ATTEMPTS_SHOWN}) AS a) AS attempts
  FROM (${found}) AS d JOIN webhook_lines l USING (bucket, order_id, receiver)
  JOIN events USING (bucket, order_id, sequence)
  ORDER BY d.event_at_ms DESC, d.order_id DESC, d.receiver DESC, d.sequence DESC`

export type LogPosition = DeliveryKey & { readonly eventAtMs: InstantMs }

/** After every delivery there can be. */
const END_OF_TIME: LogPosition = {
  eventAtMs: Number.MAX_SAFE_INTEGER,
  orderId: '',
  receiver: '',
  sequence: 0,
}

/**
 * An account's deliveries, the newest event first. What they are ordered by never changes: each is met once. Those of one
 * order are asked for in other words, so that not all of the account are read for them.
 */
export function findDeliveries(
  sql: Sql,
  accountId: string,
  filter: { readonly orderId: OrderId | null; readonly states: readonly DeliveryState[] },
  after: LogPosition | null,
  limit: number,
): Promise<LoggedDelivery[]> {
  const { eventAtMs, orderId, receiver, sequence } = after ?? END_OF_TIME
  const order = filter.orderId === null ? [] : [bucketOf(filter.orderId), filter.orderId]
  return sql.query<LoggedDelivery>(
    logOf(`SELECT * FROM webhook_deliveries d
      WHERE d.account_id = $1 AND (d.event_at_ms, d.order_id, d.receiver, d.sequence) < ($2, $3, $4, $5)
        AND d.state = ANY($6) ${alone(filter.states)} ${order.length === 0 ? '' : 'AND d.bucket = $8 AND d.order_id = $9'}
      ORDER BY d.event_at_ms DESC, d.order_id DESC, d.receiver DESC, d.sequence DESC LIMIT $7`),
    [accountId, eventAtMs, orderId, receiver, sequence, filter.states, limit, ...order],
  )
}

/** One state alone is named in the statement as well: only of a name is it known which index holds all of it. */
function alone([state, ...others]: readonly DeliveryState[]): string {
  return state === undefined || others.length > 0 ? '' : `AND d.state = '${state}'`
}

export async function findDelivery(
  sql: Sql,
  accountId: string,
  { orderId, receiver, sequence }: DeliveryKey,
): Promise<LoggedDelivery | null> {
  const [row] = await sql.query<LoggedDelivery>(
    logOf(`SELECT * FROM webhook_deliveries d
      WHERE d.bucket = $1 AND d.order_id = $2 AND d.receiver = $3 AND d.sequence = $4 AND d.account_id = $5`),
    [bucketOf(orderId), orderId, receiver, sequence, accountId],
  )
  return row ?? null
}

/** The ones of an account that are over and whose receivers are enabled, the oldest first, after a position. */
export function findEnded(
  sql: Sql,
  accountId: string,
  range: { readonly after: LogPosition; readonly untilMs: InstantMs },
  states: readonly DeliveryState[],
  limit: number,
): Promise<LogPosition[]> {
  const { eventAtMs, orderId, receiver, sequence } = range.after
  return sql.query<LogPosition>(
    `SELECT d.event_at_ms AS "eventAtMs", d.order_id AS "orderId", d.receiver, d.sequence FROM webhook_deliveries d
     WHERE d.account_id = $1 AND (d.event_at_ms, d.order_id, d.receiver, d.sequence) > ($2, $3, $4, $5)
       AND d.event_at_ms <= $6 AND d.state = ANY($7) ${alone(states)}
       AND ${isEnabled('d.receiver')}
     ORDER BY d.event_at_ms, d.order_id, d.receiver, d.sequence LIMIT $8`,
    [accountId, eventAtMs, orderId, receiver, sequence, range.untilMs, states, limit],
  )
}

/**
 * Puts deliveries back into their lines, from the first attempt on; what waits already stays as it is. A `callback_url`
 * that wanted no more is told again. Of the attempts so far the newest are kept, and with them the one under way, if any:
 * its fence is the highest. Answers how many.
 */
export async function redeliver(
  tx: Sql,
  deliveries: readonly DeliveryKey[],
  nowMs: InstantMs,
): Promise<number> {
  const keys = [
    deliveries.map(({ orderId }) => bucketOf(orderId)),
    deliveries.map(({ orderId }) => orderId),
    deliveries.map(({ receiver }) => receiver),
  ]
  // The lines first, as everybody locks them who moves one.
  await tx.query(
    `SELECT 1 AS one FROM webhook_lines l WHERE (bucket, order_id, receiver) IN (
       SELECT * FROM unnest($1::smallint[], $2::text[], $3::text[]))
     ORDER BY bucket, order_id, receiver FOR NO KEY UPDATE`,
    keys,
  )
  const again = await tx.query(
    `WITH again AS (
       UPDATE webhook_deliveries SET state = 'waiting', attempts = 0, due_at_ms = $5, ended_at_ms = NULL
       WHERE state <> 'waiting' AND (bucket, order_id, receiver, sequence) IN (
         SELECT * FROM unnest($1::smallint[], $2::text[], $3::text[], $4::integer[]))
       RETURNING bucket, order_id, receiver, sequence),
     forgotten AS (
       DELETE FROM webhook_attempts a USING again CROSS JOIN LATERAL (
         SELECT kept.fence FROM webhook_attempts kept WHERE (kept.bucket, kept.order_id, kept.receiver, kept.sequence)
           = (again.bucket, again.order_id, again.receiver, again.sequence)
         ORDER BY kept.fence DESC OFFSET ${ATTEMPTS_KEPT - 1} LIMIT 1) AS oldest_kept
       WHERE (a.bucket, a.order_id, a.receiver, a.sequence)
           = (again.bucket, again.order_id, again.receiver, again.sequence)
         AND a.fence < oldest_kept.fence)
     SELECT 1 AS one FROM again`,
    [...keys, deliveries.map(({ sequence }) => sequence), nowMs],
  )
  await tx.query(
    `UPDATE webhook_lines l SET closed_at_ms = NULL, (next_sequence, due_at_ms) = (
       SELECT d.sequence, d.due_at_ms FROM webhook_deliveries d
       WHERE (d.bucket, d.order_id, d.receiver) = (l.bucket, l.order_id, l.receiver) AND d.state = 'waiting'
       ORDER BY d.sequence LIMIT 1)
     WHERE (bucket, order_id, receiver) IN (
       SELECT * FROM unnest($1::smallint[], $2::text[], $3::text[]))`,
    keys,
  )
  return again.length
}

/**
 * What has been over for long, with its attempts, and lines that have nothing left, unless their receiver wants no more of the
 * order: that holds for as long as the order does. At most `limit`; answers how many.
 */
export async function deleteDeliveries(tx: Sql, beforeMs: InstantMs, limit: number): Promise<number> {
  const rows = await tx.query<{ bucket: number; order_id: string; receiver: string }>(
    `DELETE FROM webhook_deliveries WHERE (bucket, order_id, receiver, sequence) IN (
       SELECT bucket, order_id, receiver, sequence FROM webhook_deliveries
       WHERE ended_at_ms < $1 ORDER BY ended_at_ms LIMIT $2 FOR UPDATE SKIP LOCKED)
     RETURNING bucket, order_id, receiver`,
    [beforeMs, limit],
  )
  if (rows.length === 0) return 0
  await tx.query(
    `DELETE FROM webhook_lines l
     WHERE (bucket, order_id, receiver) IN (SELECT * FROM unnest($1::smallint[], $2::text[], $3::text[]))
       AND closed_at_ms IS NULL AND NOT EXISTS (SELECT 1 FROM webhook_deliveries d
         WHERE (d.bucket, d.order_id, d.receiver) = (l.bucket, l.order_id, l.receiver))`,
    [
      rows.map(({ bucket }) => bucket),
      rows.map(({ order_id }) => order_id),
      rows.map(({ receiver }) => receiver),
    ],
  )
  return rows.length
}
