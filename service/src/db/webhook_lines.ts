import { bucketOf, type OrderId } from '../domain/orders/identifiers.ts'
import type { OrderStatus } from '../domain/orders/order.ts'
import type { InstantMs } from '../domain/time.ts'
import type { Sql } from './database.ts'
import type { OrderEvent } from './events.ts'
import { isEnabled } from './webhook_receivers.ts'

/** An event that somebody has to be told. */
export type NewDelivery = {
  readonly orderId: OrderId
  readonly receiver: string
  readonly accountId: string
  readonly url: string
  /** Host and port of the URL. */
  readonly host: string
  readonly sequence: number
  readonly eventAtMs: InstantMs
}

/** Makes or lengthens lines. What is there already stays as it is, so that an event may be handed on again. */
export async function lengthenLines(
  tx: Sql,
  deliveries: readonly NewDelivery[],
  nowMs: InstantMs,
): Promise<void> {
  const keys = [
    deliveries.map(({ orderId }) => bucketOf(orderId)),
    deliveries.map(({ orderId }) => orderId),
    deliveries.map(({ receiver }) => receiver),
    deliveries.map(({ accountId }) => accountId),
  ]
  await tx.query(
    `INSERT INTO webhook_lines (bucket, order_id, receiver, account_id, url, host)
     SELECT DISTINCT bucket, order_id, receiver, account_id, url, host
     FROM unnest($1::smallint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[])
       AS g (bucket, order_id, receiver, account_id, url, host)
     ORDER BY bucket, order_id, receiver ON CONFLICT DO NOTHING`,
    [...keys, deliveries.map(({ url }) => url), deliveries.map(({ host }) => host)],
  )
  const added = await tx.query<{ bucket: number; order_id: string; receiver: string; sequence: number }>(
    `INSERT INTO webhook_deliveries
       (bucket, order_id, receiver, account_id, sequence, event_at_ms, state, due_at_ms)
     SELECT g.*, 'waiting', $7 FROM unnest(
       $1::smallint[], $2::text[], $3::text[], $4::text[], $5::integer[], $6::bigint[]) AS g
     ON CONFLICT DO NOTHING RETURNING bucket, order_id, receiver, sequence`,
    [
      ...keys,
      deliveries.map(({ sequence }) => sequence),
      deliveries.map(({ eventAtMs }) => eventAtMs),
      nowMs,
    ],
  )
  if (added.length === 0) return
  await tx.query(
    `UPDATE webhook_lines l SET next_sequence = least(l.next_sequence, added.sequence),
       due_at_ms = CASE WHEN l.next_sequence < added.sequence THEN l.due_at_ms ELSE $5 END
     FROM (SELECT bucket, order_id, receiver, min(sequence) AS sequence
           FROM unnest($1::smallint[], $2::text[], $3::text[], $4::integer[])
             AS a (bucket, order_id, receiver, sequence)
           GROUP BY bucket, order_id, receiver) AS added
     WHERE (l.bucket, l.order_id, l.receiver) = (added.bucket, added.order_id, added.receiver)`,
    [
      added.map(({ bucket }) => bucket),
      added.map(({ order_id }) => order_id),
      added.map(({ receiver }) => receiver),
      added.map(({ sequence }) => sequence),
      nowMs,
    ],
  )
}

/** A line that a worker has claimed; the fence says whether it still has. */
export type ClaimedLine = {
  readonly orderId: OrderId
  readonly receiver: string
  readonly accountId: string
  readonly url: string
  readonly host: string
  readonly sequence: number
  readonly fence: number
}

/** What a claimed line has to tell next. */
export type DueDelivery = ClaimedLine & {
  /** False: nobody wants to hear it any more. */
  readonly isWanted: boolean
  /** Failed attempts so far. */
  readonly failures: number
  readonly event: OrderEvent
}

/**
 * Reads what is told, and writes down that it is about to be: from now on it may have been sent. A line that has nothing
 * to tell is missing in the answer.
 */
export async function beginAttempts(
  sql: Sql,
  lines: readonly ClaimedLine[],
  nowMs: InstantMs,
): Promise<DueDelivery[]> {
  type Row = {
    order_id: string
    receiver: string
    is_wanted: boolean
    failures: number
    previous_status: OrderStatus | null
    status: OrderStatus
    snapshot: unknown
    at_ms: InstantMs
  }
  const rows = await sql.query<Row>(
    `WITH heads AS (
       SELECT d.bucket, d.order_id, d.receiver, d.sequence, claimed.fence, d.attempts AS failures,
         l.closed_at_ms IS NULL AND ${isEnabled('d.receiver')} AS is_wanted,
         events.previous_status, events.status, events.snapshot, events.at_ms
       FROM unnest($1::smallint[], $2::text[], $3::text[], $4::integer[], $5::bigint[])
         AS claimed (bucket, order_id, receiver, sequence, fence)
       JOIN webhook_lines l ON (l.bucket, l.order_id, l.receiver, l.claim_fence)
         = (claimed.bucket, claimed.order_id, claimed.receiver, claimed.fence)
       JOIN webhook_deliveries d ON (d.bucket, d.order_id, d.receiver, d.sequence)
         = (claimed.bucket, claimed.order_id, claimed.receiver, claimed.sequence) AND d.state = 'waiting'
       JOIN events ON (events.bucket, events.order_id, events.sequence) = (d.bucket, d.order_id, d.sequence)),
     begun AS (
       INSERT INTO webhook_attempts (bucket, order_id, receiver, sequence, fence, began_at_ms)
       SELECT bucket, order_id, receiver, sequence, fence, $6 FROM heads WHERE is_wanted)
     SELECT * FROM heads`,
    [
      lines.map(({ orderId }) => bucketOf(orderId)),
      lines.map(({ orderId }) => orderId),
      lines.map(({ receiver }) => receiver),
      lines.map(({ sequence }) => sequence),
      lines.map(({ fence }) => fence),
      nowMs,
    ],
  )
  const found = new Map(rows.map((row) => [`${row.order_id} ${row.receiver}`, row]))
  return lines.flatMap((line) => {
    const row = found.get(`${line.orderId} ${line.receiver}`)
    return row === undefined
      ? []
      : [{ ...line, isWanted: row.is_wanted, failures: row.failures, event: eventOf(line, row) }]
  })
}

function eventOf(
  { orderId, accountId, sequence }: ClaimedLine,
  row: { previous_status: OrderStatus | null; status: OrderStatus; snapshot: unknown; at_ms: InstantMs },
): OrderEvent {
  const { previous_status: previousStatus, status, snapshot, at_ms: atMs } = row
  return { orderId, accountId, callbackUrl: null, sequence, previousStatus, status, snapshot, atMs }
}

/** How an attempt ended. */
export type AttemptEnd = {
  readonly outcome: 'answered' | 'forbidden' | 'failed'
  readonly status: number | null
  readonly said: string
}

/** Also of a claim that was lost: what was sent was sent. */
export async function noteAttempt(
  sql: Sql,
  line: ClaimedLine,
  { outcome, status, said }: AttemptEnd,
  nowMs: InstantMs,
): Promise<void> {
  await sql.query(
    `UPDATE webhook_attempts SET outcome = $6, status = $7, said = $8, ended_at_ms = $9
     WHERE bucket = $1 AND order_id = $2 AND receiver = $3 AND sequence = $4 AND fence = $5`,
    [...keyOf(line), line.sequence, line.fence, outcome, status, said, nowMs],
  )
}

/** The line, kept from being changed by anybody else, or false when the claim was lost: then nothing may be written. */
export async function lockLine(tx: Sql, line: ClaimedLine): Promise<boolean> {
  const rows = await tx.query(
    `SELECT 1 AS one FROM webhook_lines
     WHERE bucket = $1 AND order_id = $2 AND receiver = $3 AND claim_fence = $4 FOR NO KEY UPDATE`,
    [...keyOf(line), line.fence],
  )
  return rows.length > 0
}

export const deliveryStates = ['waiting', 'delivered', 'exhausted', 'cancelled'] as const
export type DeliveryState = (typeof deliveryStates)[number]

/** `nowMs` is when it ended, unless it goes on waiting. */
export async function setDelivery(
  tx: Sql,
  line: ClaimedLine,
  next: {
    readonly state: DeliveryState
    readonly failures: number
    readonly dueAtMs: InstantMs
    readonly nowMs: InstantMs
  },
): Promise<void> {
  await tx.query(
    `UPDATE webhook_deliveries SET state = $5, attempts = $6, due_at_ms = $7, ended_at_ms = $8
     WHERE bucket = $1 AND order_id = $2 AND receiver = $3 AND sequence = $4 AND state = 'waiting'`,
    [
      ...keyOf(line),
      line.sequence,
      next.state,
      next.failures,
      next.dueAtMs,
      next.state === 'waiting' ? null : next.nowMs,
    ],
  )
}

/** Everything that still waits in the line is over. */
export async function cancelWaiting(tx: Sql, line: ClaimedLine, nowMs: InstantMs): Promise<void> {
  await tx.query(
    `UPDATE webhook_deliveries SET state = 'cancelled', ended_at_ms = $4
     WHERE bucket = $1 AND order_id = $2 AND receiver = $3 AND state = 'waiting'`,
    [...keyOf(line), nowMs],
  )
}

/** The receiver wants no more of this order. */
export async function closeLine(tx: Sql, line: ClaimedLine, nowMs: InstantMs): Promise<void> {
  await tx.query(
    'UPDATE webhook_lines SET closed_at_ms = $4 WHERE bucket = $1 AND order_id = $2 AND receiver = $3',
    [...keyOf(line), nowMs],
  )
}

/** Lets the claim go; the line goes on with the first that waits. */
export async function freeLine(tx: Sql, line: ClaimedLine): Promise<void> {
  await tx.query(
    `UPDATE webhook_lines SET claimed_until_wall_ms = 0, (next_sequence, due_at_ms) = (
       SELECT d.sequence, d.due_at_ms FROM webhook_deliveries d
       WHERE d.bucket = $1 AND d.order_id = $2 AND d.receiver = $3 AND d.state = 'waiting'
       ORDER BY d.sequence LIMIT 1)
     WHERE bucket = $1 AND order_id = $2 AND receiver = $3 AND claim_fence = $4`,
    [...keyOf(line), line.fence],
  )
}

function keyOf({ orderId, receiver }: ClaimedLine): readonly [number, OrderId, string] {
  return [bucketOf(orderId), orderId, receiver]
}
