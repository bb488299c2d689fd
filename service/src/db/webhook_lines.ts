import { bucketOf, type OrderId } from '../domain/orders/identifiers.ts'
import type { OrderStatus } from '../domain/orders/order.ts'
import type { InstantMs } from '../domain/time.ts'
import { isFree } from './clocks_set_back.ts'
import type { Sql } from './database.ts'
import type { OrderEvent } from './events.ts'

/** The receiver that is the order's own `callback_url`; every other one is an endpoint. */
export const CALLBACK = 'callback'

export type Endpoint = { readonly endpointId: string; readonly accountId: string; readonly url: string }

/**
 * Whose deliveries are written down: of what an endpoint misses that answered 410, too. They end as cancelled when they are
 * claimed, and are there to be delivered again once its owner has mended it.
 */
export function findLoggedEndpoints(sql: Sql, accountIds: readonly string[]): Promise<Endpoint[]> {
  return sql.query<Endpoint>(
    `SELECT endpoint_id AS "endpointId", account_id AS "accountId", url FROM webhook_endpoints
     WHERE account_id = ANY($1) AND disabled_by IS DISTINCT FROM 'owner'`,
    [accountIds],
  )
}

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

/** How many may be under way, and how many are: a receiver that is slow must not have all places. */
export type Places = {
  readonly all: number
  readonly ofHost: number
  readonly ofAccount: number
  readonly underWay: readonly { readonly host: string; readonly accountId: string }[]
}

/** The lines of an account to one host. */
export type Lane = { readonly accountId: string; readonly host: string }

/** A lane that was looked at; `isLast` of an account that may have more. */
export type SeenLane = Lane & { readonly isLast: boolean }

/**
 * Where lines wait, due or not: of each account so many at most, after the one where it was `leftOff`, and so many in all as
 * long as there are fewer accounts. Hosts are jumped along, so that it costs as much with a million lines for one of them as
 * with one; an account can name any number of them, and anybody may have several accounts.
 */
export function findLanes(
  sql: Sql,
  leftOff: readonly Lane[],
  most: { readonly ofAccount: number; readonly all: number },
): Promise<SeenLane[]> {
  return sql.query<SeenLane>(
    `WITH RECURSIVE waiting AS (
       (SELECT account_id FROM webhook_lines WHERE due_at_ms IS NOT NULL ORDER BY account_id LIMIT 1)
       UNION ALL
       SELECT following.account_id FROM waiting CROSS JOIN LATERAL (
         SELECT l.account_id FROM webhook_lines l
         WHERE l.due_at_ms IS NOT NULL AND l.account_id > waiting.account_id
         ORDER BY l.account_id LIMIT 1) AS following),
     share AS (SELECT greatest(1, least($3::bigint, $4::bigint / greatest(1, count(*)))) AS of_account FROM waiting)
     SELECT waiting.account_id AS "accountId", lanes.host, lanes.number = share.of_account AS "isLast"
     FROM waiting CROSS JOIN share
     LEFT JOIN unnest($1::text[], $2::text[]) AS left_off (account_id, host) USING (account_id)
     CROSS JOIN LATERAL (
       WITH RECURSIVE walk AS (
         (SELECT l.host, 1 AS number FROM webhook_lines l
          WHERE l.due_at_ms IS NOT NULL AND l.account_id = waiting.account_id AND l.host > coalesce(left_off.host, '')
          ORDER BY l.host LIMIT 1)
         UNION ALL
         SELECT following.host, walk.number + 1 FROM walk CROSS JOIN LATERAL (
           SELECT l.host FROM webhook_lines l
           WHERE l.due_at_ms IS NOT NULL AND l.account_id = waiting.account_id AND l.host > walk.host
           ORDER BY l.host LIMIT 1) AS following
         WHERE walk.number < share.of_account)
       SELECT host, number FROM walk) AS lanes`,
    [leftOff.map(({ accountId }) => accountId), leftOff.map(({ host }) => host), most.ofAccount, most.all],
  )
}

/**
 * Takes due lines of `lanes` for `claimMs` of wall time. A place goes to whichever account has the fewest, and there to the
 * host that has the fewest; likewise a host's places go to the accounts. What is under way counts as a turn that was had: else a
 * backlog, which has always waited longest, gets every place that comes free.
 */
export function claimLines(
  sql: Sql,
  lanes: readonly Lane[],
  time: { readonly nowMs: InstantMs; readonly wallMs: InstantMs; readonly claimMs: number },
  places: Places,
): Promise<ClaimedLine[]> {
  return sql.query<ClaimedLine>(
    `WITH lanes AS (SELECT * FROM unnest($9::text[], $10::text[]) AS lane (account_id, host)),
     due AS (
       SELECT lanes.account_id, lanes.host, heads.bucket, heads.order_id, heads.receiver, heads.due_at_ms,
         row_number() OVER (PARTITION BY lanes.account_id, lanes.host ORDER BY heads.due_at_ms)
           + (SELECT count(*) FROM unnest($7::text[], $8::text[]) AS busy (host, id)
              WHERE busy.host = lanes.host AND busy.id = lanes.account_id) AS turn
       FROM lanes CROSS JOIN LATERAL (
         SELECT l.bucket, l.order_id, l.receiver, l.due_at_ms FROM webhook_lines l
         WHERE l.account_id = lanes.account_id AND l.host = lanes.host
           AND l.due_at_ms <= $1 AND ${isFree('l.claimed_until_wall_ms', '$2', '$3::bigint')}
         ORDER BY l.due_at_ms LIMIT $5) AS heads),
     ranked AS (
       SELECT due.*,
         row_number() OVER (PARTITION BY due.host ORDER BY turn, due_at_ms)
           + (SELECT count(*) FROM unnest($7::text[]) AS busy (host) WHERE busy.host = due.host) AS of_host,
         row_number() OVER (PARTITION BY due.account_id ORDER BY turn, due_at_ms)
           + (SELECT count(*) FROM unnest($8::text[]) AS busy (id) WHERE busy.id = due.account_id) AS of_account
       FROM due),
     picked AS (
       SELECT bucket, order_id, receiver FROM ranked WHERE of_host <= $5 AND of_account <= $6
       ORDER BY of_account, due_at_ms LIMIT $4)
     UPDATE webhook_lines SET claimed_until_wall_ms = $2 + $3, claim_fence = claim_fence + 1
     WHERE (bucket, order_id, receiver) IN (
       SELECT l.bucket, l.order_id, l.receiver FROM webhook_lines l JOIN picked USING (bucket, order_id, receiver)
       WHERE l.due_at_ms <= $1 AND ${isFree('l.claimed_until_wall_ms', '$2', '$3::bigint')}
       FOR NO KEY UPDATE OF l SKIP LOCKED)
     RETURNING order_id AS "orderId", receiver, account_id AS "accountId", url, host,
       next_sequence AS sequence, claim_fence AS fence`,
    [
      time.nowMs,
      time.wallMs,
      time.claimMs,
      places.all - places.underWay.length,
      places.ofHost,
      places.ofAccount,
      places.underWay.map(({ host }) => host),
      places.underWay.map(({ accountId }) => accountId),
      lanes.map(({ accountId }) => accountId),
      lanes.map(({ host }) => host),
    ],
  )
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
         l.closed_at_ms IS NULL AND (d.receiver = '${CALLBACK}' OR EXISTS (
           SELECT 1 FROM webhook_endpoints e WHERE e.endpoint_id = d.receiver AND e.disabled_at_ms IS NULL))
           AS is_wanted,
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

/** The endpoint wants no more of any order. False: it is disabled already, or gone. */
export async function disableEndpoint(tx: Sql, endpointId: string, wallMs: InstantMs): Promise<boolean> {
  const disabled = await tx.query(
    `UPDATE webhook_endpoints SET disabled_at_ms = $2, disabled_by = 'receiver'
     WHERE endpoint_id = $1 AND disabled_at_ms IS NULL RETURNING endpoint_id`,
    [endpointId, wallMs],
  )
  return disabled.length > 0
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
