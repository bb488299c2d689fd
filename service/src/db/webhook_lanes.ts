import type { InstantMs } from '../domain/time.ts'
import { isFree } from './clocks_set_back.ts'
import type { Sql } from './database.ts'
import type { ClaimedLine } from './webhook_lines.ts'

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
