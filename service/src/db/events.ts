import { bucketOf, type OrderId } from '../domain/orders/identifiers.ts'
import type { OrderStatus } from '../domain/orders/order.ts'
import type { InstantMs } from '../domain/time.ts'
import { arrayText } from './array_text.ts'
import type { Sql } from './database.ts'

/** A row of the event log, with what says who wants to hear of it. */
export type OrderEvent = {
  readonly orderId: OrderId
  readonly accountId: string
  readonly callbackUrl: string | null
  /** From 1 on, without gaps. */
  readonly sequence: number
  /** Null for the first. */
  readonly previousStatus: OrderStatus | null
  readonly status: OrderStatus
  /** The order as its client saw it then (`OrderView`), frozen. */
  readonly snapshot: unknown
  readonly atMs: InstantMs
}

/**
 * Of one order at a time: whoever can take back what it has paid makes its history as long as it likes, and all of that at
 * once is more than may lie unread in a stream, or be handed on in one transaction.
 */
export const EVENTS_AT_ONCE = 25

/**
 * Of the orders that have gone on longest without anybody being told, except for these: what happened next to each, oldest event
 * first within an order, and of one no more than `EVENTS_AT_ONCE`.
 */
export function findEventsToRelay(
  sql: Sql,
  ordersMax: number,
  except: readonly OrderId[],
): Promise<OrderEvent[]> {
  return sql.query<OrderEvent>(
    `SELECT event.order_id AS "orderId", account_id AS "accountId", callback_url AS "callbackUrl", event.sequence,
       event.previous_status AS "previousStatus", event.status, event.snapshot, event.at_ms AS "atMs"
     FROM (SELECT bucket, order_id, account_id, callback_url, relayed_sequence FROM orders
           WHERE sequence > relayed_sequence AND order_id NOT IN (SELECT unnest($2::text[]))
           ORDER BY updated_at_ms LIMIT $1) AS waiting
     CROSS JOIN LATERAL (
       SELECT * FROM events
       WHERE events.bucket = waiting.bucket AND events.order_id = waiting.order_id AND sequence > relayed_sequence
       ORDER BY sequence LIMIT ${EVENTS_AT_ONCE}
     ) AS event
     ORDER BY event.bucket, event.order_id, event.sequence`,
    [ordersMax, except],
  )
}

/** Never backwards: another process may have handed on more meanwhile. */
export async function noteRelayed(
  tx: Sql,
  orders: readonly { readonly orderId: OrderId; readonly sequence: number }[],
): Promise<void> {
  await tx.query(
    `UPDATE orders SET relayed_sequence = u.sequence
     FROM unnest($1::smallint[], $2::text[], $3::integer[]) AS u (bucket, order_id, sequence)
     WHERE orders.bucket = u.bucket AND orders.order_id = u.order_id AND relayed_sequence < u.sequence`,
    [
      arrayText(orders, ({ orderId }) => bucketOf(orderId)),
      arrayText(orders, ({ orderId }) => orderId),
      arrayText(orders, ({ sequence }) => sequence),
    ],
  )
}

/** Of these events those whose order had the same status before. */
export async function findRepeats(
  sql: Sql,
  events: readonly { readonly orderId: OrderId; readonly sequence: number }[],
): Promise<ReadonlySet<string>> {
  if (events.length === 0) return new Set()
  const rows = await sql.query<{ order_id: string; sequence: number }>(
    `SELECT order_id, sequence FROM unnest($1::smallint[], $2::text[], $3::integer[]) AS u (bucket, order_id, sequence)
     JOIN events AS e USING (bucket, order_id, sequence)
     WHERE EXISTS (SELECT 1 FROM events AS earlier
       WHERE earlier.bucket = e.bucket AND earlier.order_id = e.order_id
         AND earlier.sequence < e.sequence AND earlier.status = e.status)`,
    [
      arrayText(events, ({ orderId }) => bucketOf(orderId)),
      arrayText(events, ({ orderId }) => orderId),
      arrayText(events, ({ sequence }) => sequence),
    ],
  )
  return new Set(rows.map((row) => eventKeyOf(row.order_id, row.sequence)))
}

/** Names an event for ever: `CB4821093377160542:3`. */
export function eventKeyOf(orderId: OrderId, sequence: number): string {
  return `${orderId}:${sequence}`
}

/** An order that somebody follows, and the last of its events that they have. */
export type Followed = { readonly orderId: string; readonly after: number }

/**
 * What has happened next to orders that are followed, in order within each. Looked up order by order, so that it costs
 * as much as there are followed orders, however many there are in all.
 */
export function findEventsSince(sql: Sql, followed: readonly Followed[]): Promise<OrderEvent[]> {
  return sql.query<OrderEvent>(
    `SELECT event.order_id AS "orderId", account_id AS "accountId", callback_url AS "callbackUrl", event.sequence,
       event.previous_status AS "previousStatus", event.status, event.snapshot, event.at_ms AS "atMs"
     FROM unnest($1::smallint[], $2::text[], $3::integer[]) AS followed (bucket, order_id, after)
     CROSS JOIN LATERAL (
       SELECT * FROM events
       WHERE events.bucket = followed.bucket AND events.order_id = followed.order_id AND sequence > after
       ORDER BY sequence LIMIT ${EVENTS_AT_ONCE}
     ) AS event
     JOIN orders ON orders.bucket = event.bucket AND orders.order_id = event.order_id
     ORDER BY event.order_id, event.sequence`,
    [
      arrayText(followed, ({ orderId }) => bucketOf(orderId)),
      arrayText(followed, ({ orderId }) => orderId),
      arrayText(followed, ({ after }) => after),
    ],
  )
}
