import { createHash } from 'node:crypto'
import {
  linkMailKinds,
  type MailContent,
  type MailKind,
  mailKindsThatFollow,
} from '../domain/notifications/mail_content.ts'
import { bucketOf, type OrderId } from '../domain/orders/identifiers.ts'
import type { InstantMs } from '../domain/time.ts'
import { isFree } from './clocks_set_back.ts'
import type { Sql } from './database.ts'
import { keptText } from './kept_text.ts'

/** What of a mail server's answer is kept. */
const SAID_LENGTH_MAX = 500

/** A mail to be sent, in the transaction that makes it true. */
export type NewMail = MailContent & {
  /**
   * What happened, as no other thing that happened is named (`CB…:3`, `sign_in:<id of the link>`): with kind and
   * address it makes the mail exist once.
   */
  readonly eventKey: string
  /** The order it is about; null for a mail about the account. */
  readonly orderId: OrderId | null
  /** Of the order's event that it tells of: it leaves after the mails of earlier ones. Without, it waits for no other. */
  readonly sequence?: number
  readonly accountId: string | null
  readonly to: string
  /** On the service's clock: it is due at once. */
  readonly nowMs: InstantMs
}

/** Writes the mail down, or does nothing when it is written down already. Sending it is the notifier's. */
export async function queueMail(tx: Sql, mail: NewMail): Promise<void> {
  await tx.query(
    `INSERT INTO mails (bucket, event_key, kind, to_address, account_id, data, message_id, queued_at_ms, due_at_ms,
       order_id, sequence)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8, $9, $10)
     ON CONFLICT (bucket, event_key, kind, to_address) DO NOTHING`,
    [
      mail.orderId === null ? 0 : bucketOf(mail.orderId),
      mail.eventKey,
      mail.kind,
      mail.to,
      mail.accountId,
      JSON.stringify(mail.data),
      messageIdOf(mail),
      mail.nowMs,
      mail.sequence === undefined ? null : mail.orderId,
      mail.sequence ?? null,
    ],
  )
}

/** From what makes the mail exist once: the same mail has the same id, whoever writes it down, and no other has it. */
function messageIdOf({ eventKey, kind, to }: Pick<NewMail, 'eventKey' | 'kind' | 'to'>): string {
  return createHash('sha256')
    .update(JSON.stringify([eventKey, kind, to]))
    .digest('base64url')
    .slice(0, 32)
}

/** A mail that a worker has claimed; the fence says whether it still has. */
export type ClaimedMail = {
  readonly bucket: number
  readonly eventKey: string
  readonly content: MailContent
  readonly to: string
  readonly accountId: string | null
  readonly messageId: string
  readonly queuedAtMs: InstantMs
  /** The one that begins with `beginMail` included. */
  readonly attempts: number
  readonly fence: number
}

type MailRow = {
  bucket: number
  event_key: string
  kind: string
  to_address: string
  account_id: string | null
  data: unknown
  message_id: string
  queued_at_ms: number
  attempts: number
  claim_fence: number
}

/** Of a mail whose link ends, in the words of the index `mails_links`. */
const HAS_LINK = isOneOf(linkMailKinds)

function isOneOf(kinds: readonly MailKind[]): string {
  return `kind IN (${kinds.map((kind) => `'${kind}'`).join(', ')})`
}

const FREE = isFree('claimed_until_wall_ms', '$3', '($2::bigint - $3::bigint)')

const WAITS_WITHOUT_LINK = `state = 'waiting' AND NOT ${HAS_LINK}`

type Time = { readonly nowMs: InstantMs; readonly wallMs: number; readonly claimMs: number }

/**
 * Takes due mails whose links end for `claimMs` of wall time, those that have waited longest first. They are taken apart: behind
 * the mails of a day they would have ended, and nobody could sign in; and anybody may have them sent, so the others do not
 * wait behind them either.
 */
export async function claimLinks(sql: Sql, time: Time, limit: number): Promise<ClaimedMail[]> {
  const rows = await sql.query<MailRow>(
    `WITH due AS (
       SELECT bucket, event_key, kind, to_address FROM mails
       WHERE state = 'waiting' AND due_at_ms <= $1 AND ${FREE} AND ${HAS_LINK}
       ORDER BY due_at_ms LIMIT $4 FOR UPDATE SKIP LOCKED)
     UPDATE mails SET claimed_until_wall_ms = $2, claim_fence = claim_fence + 1
     WHERE (bucket, event_key, kind, to_address) IN (TABLE due)
     RETURNING *`,
    [time.nowMs, time.wallMs + time.claimMs, time.wallMs, limit],
  )
  return rows.map(claimedMail)
}

/** `leftOff`: after which account to go on; empty when the turn is that of the first one. */
export type ClaimedTurn = { readonly mails: readonly ClaimedMail[]; readonly leftOff: string }

/**
 * Takes other due mails, of the accounts that come after `leftOff` one after another, of each those that have waited longest:
 * whoever has a thousand keeps nobody waiting. Accounts are jumped along, so that it costs as much whatever waits of one; and
 * none is looked at where nothing is due.
 */
export async function claimMails(sql: Sql, time: Time, limit: number, leftOff = ''): Promise<ClaimedTurn> {
  const lanes = await sql.query<{ account: string }>(
    `WITH RECURSIVE walk AS (
       SELECT $3::text AS account, false AS is_due, 0 AS number
       WHERE EXISTS (SELECT FROM mails WHERE ${WAITS_WITHOUT_LINK} AND due_at_ms <= $1)
       UNION ALL
       SELECT following.account, following.due_at_ms <= $1,
         walk.number + CASE WHEN following.due_at_ms <= $1 THEN 1 ELSE 0 END
       FROM walk CROSS JOIN LATERAL (
         SELECT ${ACCOUNT} AS account, due_at_ms FROM mails
         WHERE ${WAITS_WITHOUT_LINK} AND ${ACCOUNT} > walk.account
         ORDER BY ${ACCOUNT}, due_at_ms LIMIT 1) AS following
       WHERE walk.number < $2)
     SELECT account FROM walk WHERE is_due`,
    [time.nowMs, limit, leftOff],
  )
  if (lanes.length === 0) return { mails: [], leftOff: '' }
  const accounts = lanes.map(({ account }) => account)
  const rows = await sql.query<MailRow>(CLAIM_IN_TURN, [
    time.nowMs,
    time.wallMs + time.claimMs,
    time.wallMs,
    limit,
    accounts,
  ])
  return { mails: rows.map(claimedMail), leftOff: lanes.length < limit ? '' : (accounts.at(-1) ?? '') }
}

/** In the words of the index `mails_by_account`. */
const ACCOUNT = `coalesce(account_id, '-')`

/** At most one mail per order and address at a time; the next is taken when that is over. */
const CLAIM_IN_TURN = `
  WITH due AS (
    SELECT heads.*, row_number() OVER (PARTITION BY lane.account ORDER BY heads.due_at_ms) AS turn
    FROM unnest($5::text[]) AS lane (account) CROSS JOIN LATERAL (
      SELECT bucket, event_key, kind, to_address, due_at_ms FROM mails AS mail
      WHERE ${WAITS_WITHOUT_LINK} AND ${ACCOUNT} = lane.account AND due_at_ms <= $1 AND ${FREE}
        AND NOT EXISTS (
          SELECT FROM mails AS earlier
          WHERE earlier.bucket = mail.bucket AND earlier.order_id = mail.order_id
            AND earlier.sequence < mail.sequence AND earlier.to_address = mail.to_address
            AND earlier.state = 'waiting')
      ORDER BY due_at_ms LIMIT $4) AS heads),
  picked AS (SELECT bucket, event_key, kind, to_address FROM due ORDER BY turn, due_at_ms LIMIT $4)
  UPDATE mails SET claimed_until_wall_ms = $2, claim_fence = claim_fence + 1
  WHERE (bucket, event_key, kind, to_address) IN (
    SELECT bucket, event_key, kind, to_address FROM mails JOIN picked USING (bucket, event_key, kind, to_address)
    WHERE state = 'waiting' AND due_at_ms <= $1 AND ${FREE} FOR NO KEY UPDATE OF mails SKIP LOCKED)
  RETURNING *`

function claimedMail(row: MailRow): ClaimedMail {
  return {
    bucket: row.bucket,
    eventKey: row.event_key,
    content: { kind: row.kind, data: row.data } as MailContent,
    to: row.to_address,
    accountId: row.account_id,
    messageId: row.message_id,
    queuedAtMs: row.queued_at_ms,
    attempts: row.attempts + 1,
    fence: row.claim_fence,
  }
}

const IS_THIS = 'bucket = $1 AND event_key = $2 AND kind = $3 AND to_address = $4'

function keyOf({ bucket, eventKey, content, to }: ClaimedMail): readonly unknown[] {
  return [bucket, eventKey, content.kind, to]
}

/**
 * Counts an attempt, and holds the claim for it: from now on the mail may have been sent, should the worker die. False:
 * somebody else has taken it since, or it is over. What was claimed and did not get its turn was no attempt: the rest after
 * the first that fails would be that after many.
 */
export async function beginMail(sql: Sql, mail: ClaimedMail, untilWallMs: number): Promise<boolean> {
  const rows = await sql.query(
    `UPDATE mails SET claimed_until_wall_ms = $6, attempts = attempts + 1
     WHERE ${IS_THIS} AND claim_fence = $5 AND state = 'waiting' RETURNING kind`,
    [...keyOf(mail), mail.fence, untilWallMs],
  )
  return rows.length > 0
}

/** Holds a claim for longer. False: somebody else has taken it since, or it is over. */
export async function renewMailClaim(sql: Sql, mail: ClaimedMail, untilWallMs: number): Promise<boolean> {
  const rows = await sql.query(
    `UPDATE mails SET claimed_until_wall_ms = $6
     WHERE ${IS_THIS} AND claim_fence = $5 AND state = 'waiting' RETURNING kind`,
    [...keyOf(mail), mail.fence, untilWallMs],
  )
  return rows.length > 0
}

/** The mail server has it. That is true whoever holds the claim by now, and nobody need send it again. */
export async function noteMailSent(
  sql: Sql,
  mail: ClaimedMail,
  said: string,
  nowMs: InstantMs,
): Promise<void> {
  await sql.query(
    `UPDATE mails SET state = 'sent', data = '{}', last_answer = $5, over_at_ms = $6
     WHERE ${IS_THIS} AND state = 'waiting'`,
    [...keyOf(mail), keptText(said, SAID_LENGTH_MAX), nowMs],
  )
}

/** It will not be sent any more, and why. */
export async function endMail(
  sql: Sql,
  mail: ClaimedMail,
  end: { readonly state: 'refused' | 'given_up'; readonly why: string },
  nowMs: InstantMs,
): Promise<void> {
  await sql.query(
    `UPDATE mails SET state = $6, data = '{}', last_answer = $7, over_at_ms = $8
     WHERE ${IS_THIS} AND claim_fence = $5 AND state = 'waiting'`,
    [...keyOf(mail), mail.fence, end.state, keptText(end.why, SAID_LENGTH_MAX), nowMs],
  )
}

/**
 * Lets the claim go: when it is tried again, and what stood in its way. What waits behind it is due no sooner: else every
 * claim would go through all that is due and may not leave, which is most of a queue after a day without a mail server.
 * `leavesTurn`: nothing waits behind it from now on.
 */
export async function postponeMail(
  sql: Sql,
  mail: ClaimedMail,
  {
    dueAtMs,
    why,
    leavesTurn,
  }: { readonly dueAtMs: InstantMs; readonly why: string; readonly leavesTurn: boolean },
): Promise<void> {
  await sql.query(
    `WITH own AS (
       UPDATE mails SET claimed_until_wall_ms = 0, due_at_ms = $6, last_answer = $7,
         order_id = CASE WHEN $8 THEN NULL ELSE order_id END, sequence = CASE WHEN $8 THEN NULL ELSE sequence END
       WHERE ${IS_THIS} AND claim_fence = $5 AND state = 'waiting'
       RETURNING bucket, order_id, sequence, to_address)
     UPDATE mails AS later SET due_at_ms = $6 FROM own
     WHERE later.bucket = own.bucket AND later.order_id = own.order_id AND later.sequence > own.sequence
       AND later.to_address = own.to_address AND later.state = 'waiting' AND later.due_at_ms < $6`,
    [...keyOf(mail), mail.fence, dueAtMs, keptText(why, SAID_LENGTH_MAX), leavesTurn],
  )
}

/** A worker that stops before the end: the mail is as it was before it was claimed, and what was cut off was no attempt. */
export async function returnMail(sql: Sql, mail: ClaimedMail): Promise<void> {
  await sql.query(
    `UPDATE mails SET claimed_until_wall_ms = 0, attempts = $6
     WHERE ${IS_THIS} AND claim_fence = $5 AND state = 'waiting'`,
    [...keyOf(mail), mail.fence, mail.attempts - 1],
  )
}

/** In the words of the indexes `mails_links` and `mails_by_account`. */
const ENDS_WITH_CHANGE = `state = 'waiting' AND ${HAS_LINK} AND account_id = $1`
const LEAVES_ADDRESS = `${WAITS_WITHOUT_LINK} AND ${ACCOUNT} = $1 AND to_address = $2
  AND ($3::text IS NULL OR ${isOneOf(mailKindsThatFollow)})`

/**
 * What becomes of the mails that wait when an account gives up an address, in the transaction that takes it away: that holds the
 * account, so that nobody queues for the old address any more (`findMailReaders`). Links end, because what they are for does.
 * What is about orders and webhooks goes to the new address, where nobody has tried it yet; what warns of an act on the account
 * stays for whom it warns. Without a new address everything ends.
 *
 * Whoever has a mail in a conversation finds no such row afterwards, and notes nothing: if it arrives, it does at the old address,
 * and the new one is told all the same.
 */
export async function readdressMails(
  tx: Sql,
  {
    accountId,
    from,
    to,
    nowMs,
  }: {
    readonly accountId: string
    readonly from: string
    /** Null: it has none from now on. */
    readonly to: string | null
    readonly nowMs: InstantMs
  },
): Promise<void> {
  // An order's in their order, as `postponeMail` takes them: else each could wait for the other.
  const leaving = await tx.query<{ bucket: number; eventKey: string; kind: MailKind }>(
    `SELECT bucket, event_key AS "eventKey", kind FROM mails WHERE ${LEAVES_ADDRESS}
     ORDER BY bucket, order_id, sequence FOR UPDATE`,
    [accountId, from, to],
  )
  if (to !== null) {
    await tx.query(READDRESS, [
      from,
      to,
      leaving.map(({ bucket }) => bucket),
      leaving.map(({ eventKey }) => eventKey),
      leaving.map(({ kind }) => kind),
      leaving.map((mail) => messageIdOf({ ...mail, to })),
      nowMs,
    ])
  }
  const why = 'the account has left this address'
  await tx.query(`${giveUp('$4', '$5')} WHERE ${LEAVES_ADDRESS}`, [accountId, from, to, why, nowMs])
  await tx.query(`${giveUp('$2', '$3')} WHERE ${ENDS_WITH_CHANGE}`, [accountId, why, nowMs])
}

/** But where the account had the new address before, and was told there: one event is told once to an address. */
const READDRESS = `
  UPDATE mails SET to_address = $2, message_id = leaving.message_id, attempts = 0, last_answer = NULL,
    due_at_ms = least(due_at_ms, $7), claimed_until_wall_ms = 0, claim_fence = claim_fence + 1
  FROM unnest($3::smallint[], $4::text[], $5::text[], $6::text[]) AS leaving (bucket, event_key, kind, message_id)
  WHERE mails.bucket = leaving.bucket AND mails.event_key = leaving.event_key AND mails.kind = leaving.kind
    AND mails.to_address = $1 AND NOT EXISTS (
      SELECT FROM mails AS told
      WHERE told.bucket = leaving.bucket AND told.event_key = leaving.event_key AND told.kind = leaving.kind
        AND told.to_address = $2)`

function giveUp(why: string, nowMs: string): string {
  return `UPDATE mails SET state = 'given_up', data = '{}', last_answer = ${why}, over_at_ms = ${nowMs}`
}

/** Gives up what has waited since before `queuedBeforeMs`, where there is nobody to send it; answers how many. */
export async function giveUpMails(
  sql: Sql,
  queuedBeforeMs: InstantMs,
  nowMs: InstantMs,
  limit: number,
): Promise<number> {
  const rows = await sql.query(
    `${giveUp("'no mail server is configured'", '$2')}
     WHERE (bucket, event_key, kind, to_address) IN (
       SELECT bucket, event_key, kind, to_address FROM mails
       WHERE state = 'waiting' AND queued_at_ms < $1 LIMIT $3 FOR UPDATE SKIP LOCKED)
     RETURNING kind`,
    [queuedBeforeMs, nowMs, limit],
  )
  return rows.length
}

/** Forgets mails that were over before this; answers how many. */
export async function deleteMails(sql: Sql, overBeforeMs: InstantMs, limit: number): Promise<number> {
  const rows = await sql.query(
    `DELETE FROM mails WHERE (bucket, event_key, kind, to_address) IN (
       SELECT bucket, event_key, kind, to_address FROM mails
       WHERE state <> 'waiting' AND over_at_ms < $1 LIMIT $2)
     RETURNING kind`,
    [overBeforeMs, limit],
  )
  return rows.length
}
