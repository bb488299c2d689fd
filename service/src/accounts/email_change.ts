import { randomBytes } from 'node:crypto'
import { type AuditAct, appendAudit, type By } from '../db/audit_log.ts'
import type { Sql } from '../db/database.ts'
import { queueMail, readdressMails } from '../db/mails.ts'
import { accept, type Outcome, type Rejection, refuse } from '../domain/outcome.ts'
import { EMAIL_CHANGE_LIFETIME_MS } from '../domain/session_lifetimes.ts'
import type { InstantMs } from '../domain/time.ts'
import { type Account, refuseTaken, replaceEmail } from './accounts.ts'
import { type AskLimits, refuseFlood, type TooOften } from './ask_limit.ts'
import type { OwnerPlace } from './owner_place.ts'
import { hashToken, isToken, makeToken } from './tokens.ts'

/** A change of an account's address that waits for one of both, or both. */
export type EmailChange = {
  readonly newEmail: string
  readonly hasOldAgreed: boolean
  readonly hasNewAgreed: boolean
  readonly expiresAtMs: InstantMs
}

type ChangeRow = EmailChange & {
  readonly changeId: string
  readonly accountId: string
  readonly oldEmail: string
  /** Whose token was shown. */
  readonly side: 'old' | 'new'
}

const COLUMNS = `change_id AS "changeId", account_id AS "accountId", old_email AS "oldEmail", new_email AS "newEmail",
  old_agreed_at_ms IS NOT NULL AS "hasOldAgreed", new_agreed_at_ms IS NOT NULL AS "hasNewAgreed",
  expires_at_ms AS "expiresAtMs"`

export async function findEmailChange(
  { db, wallMs }: OwnerPlace,
  accountId: string,
): Promise<EmailChange | null> {
  const [change] = await db.query<EmailChange>(
    `SELECT ${COLUMNS} FROM email_changes WHERE account_id = $1 AND expires_at_ms > $2`,
    [accountId, wallMs()],
  )
  return change ?? null
}

/**
 * Asks the old address and the new one, in place of what was asked before; until both have agreed the old one holds.
 * Whether the new one is another account's is found out only by who can read its mails.
 */
export async function askEmailChange(
  place: OwnerPlace,
  by: By,
  account: Account,
  /** As `parseEmail` gives it. */
  newEmail: string,
  limits: AskLimits,
): Promise<Outcome<EmailChange, Rejection | TooOften>> {
  const { accountId, email: oldEmail } = account
  if (oldEmail === null || oldEmail === newEmail) {
    return refuse({ code: 'email_unchanged', message: 'this is the address that the account has' })
  }
  const flood = await refuseFlood(place, [
    { what: `email_change:${accountId}`, max: limits.perEmail },
    { what: `email:${newEmail}`, max: limits.perEmail },
  ])
  if (flood !== null) return refuse(flood)
  const tokens = { old: makeToken(), new: makeToken() }
  const changeId = `emc_${randomBytes(8).toString('hex')}`
  const nowMs = place.wallMs()
  const expiresAtMs = nowMs + EMAIL_CHANGE_LIFETIME_MS
  return place.db.transaction(async (tx) => {
    if (!(await holdsEmail(tx, accountId, oldEmail))) {
      const message = 'the address of the account was changed at this moment: look at it again'
      return refuse({ code: 'email_changed', message })
    }
    await tx.query(
      `INSERT INTO email_changes (account_id, change_id, old_email, new_email, old_token_hash, new_token_hash,
         created_at_ms, expires_at_ms)
       VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
       ON CONFLICT (account_id) DO UPDATE SET change_id = excluded.change_id, old_email = excluded.old_email,
         new_email = excluded.new_email, old_token_hash = excluded.old_token_hash,
         new_token_hash = excluded.new_token_hash, old_agreed_at_ms = NULL, new_agreed_at_ms = NULL,
         created_at_ms = excluded.created_at_ms, expires_at_ms = excluded.expires_at_ms`,
      [
        accountId,
        changeId,
        oldEmail,
        newEmail,
        hashToken(tokens.old),
        hashToken(tokens.new),
        nowMs,
        expiresAtMs,
      ],
    )
    const linkOf = (token: string) => `${place.baseUrl()}/account/confirm-email#token=${token}`
    const more = { expires_at_ms: expiresAtMs, ...(by.address !== null && { ip: by.address }) }
    const mail = { eventKey: `email_change:${changeId}`, orderId: null, accountId, nowMs: place.nowMs() }
    const old = { new_email: newEmail, link: linkOf(tokens.old), ...more }
    await queueMail(tx, { ...mail, to: oldEmail, kind: 'email_change_old', data: old })
    await queueMail(tx, {
      ...mail,
      to: newEmail,
      kind: 'email_change_new',
      data: { link: linkOf(tokens.new), ...more },
    })
    const entry = { chain: accountId, atMs: nowMs, act: 'email_change_asked', by } as const
    await appendAudit(tx, { ...entry, subject: changeId, detail: { from: oldEmail, to: newEmail } })
    return accept({ newEmail, hasOldAgreed: false, hasNewAgreed: false, expiresAtMs })
  })
}

/**
 * Whether the account has this address, until the transaction ends. Who asks was signed in a moment ago: what an address
 * that the account has left agrees to must not move it.
 */
async function holdsEmail(tx: Sql, accountId: string, email: string): Promise<boolean> {
  const rows = await tx.query(
    'SELECT 1 AS one FROM accounts WHERE account_id = $1 AND email = $2 FOR KEY SHARE',
    [accountId, email],
  )
  return rows.length > 0
}

const invalidLink = refuse({
  code: 'link_invalid',
  message: 'the link holds no more: it is too old, or the change was made, replaced or stopped',
})

export type Agreed = { readonly newEmail: string; readonly isChanged: boolean }

/**
 * Who shows a token can read the mails of its address, and agrees. Agreeing twice is the same as once. When both have,
 * the address is changed. Refusals: `link_invalid`, `email_taken`.
 */
export function agreeToEmailChange(place: OwnerPlace, by: By, token: string): Promise<Outcome<Agreed>> {
  let newEmail: string | null = null
  const work = place.db.transaction(async (tx) => {
    const change = await lockChange(tx, token, place.wallMs())
    if (change === null) return invalidLink
    newEmail = change.newEmail
    const hasAgreed = change.side === 'old' ? change.hasOldAgreed : change.hasNewAgreed
    if (!hasAgreed) {
      const column = change.side === 'old' ? 'old_agreed_at_ms' : 'new_agreed_at_ms'
      await tx.query(`UPDATE email_changes SET ${column} = $2 WHERE account_id = $1`, [
        change.accountId,
        place.wallMs(),
      ])
    }
    const isChanged = change.side === 'old' ? change.hasNewAgreed : change.hasOldAgreed
    if (isChanged) await changeEmail(tx, place, change)
    if (!hasAgreed) await note(tx, place, by, change, 'email_change_agreed')
    if (isChanged) await note(tx, place, by, change, 'email_changed')
    return accept({ newEmail: change.newEmail, isChanged })
  })
  return work.catch((error: unknown) => refuseTaken(error, newEmail))
}

/**
 * Links that were sent to the old address do not sign in any more, and every session ends, that of whoever asked as well: the
 * address may be left because somebody else reads its mails, and he would stay signed in for two weeks.
 */
async function changeEmail(tx: Sql, place: OwnerPlace, change: ChangeRow): Promise<void> {
  const { accountId, oldEmail, newEmail, changeId } = change
  await replaceEmail(tx, accountId, newEmail)
  await readdressMails(tx, { accountId, from: oldEmail, to: newEmail, nowMs: place.nowMs() })
  await tx.query('DELETE FROM email_changes WHERE account_id = $1', [accountId])
  await tx.query('DELETE FROM sessions WHERE account_id = $1', [accountId])
  await tx.query('DELETE FROM sign_in_links WHERE email = $1 AND used_at_ms IS NULL', [oldEmail])
  for (const to of [oldEmail, newEmail]) {
    await queueMail(tx, {
      eventKey: `email_changed:${changeId}`,
      orderId: null,
      accountId,
      to,
      nowMs: place.nowMs(),
      kind: 'security_notice',
      data: {
        what: 'The email address of your account was changed. Nobody is signed in to it any more.',
        details: [{ label: 'New address', value: newEmail }],
        ...(to === oldEmail && { is_former: true as const }),
      },
    })
  }
}

/** Either address may stop it. Refusal: `link_invalid`. */
export function stopEmailChange(place: OwnerPlace, by: By, token: string): Promise<Outcome<null>> {
  return place.db.transaction(async (tx) => {
    const change = await lockChange(tx, token, place.wallMs())
    if (change === null) return invalidLink
    await tx.query('DELETE FROM email_changes WHERE account_id = $1', [change.accountId])
    await note(tx, place, by, change, 'email_change_cancelled')
    return accept(null)
  })
}

/** By who is signed in. Nothing under way is no mistake. */
export async function cancelEmailChange(place: OwnerPlace, by: By, accountId: string): Promise<void> {
  await place.db.transaction(async (tx) => {
    const [change] = await tx.query<ChangeRow>(
      `DELETE FROM email_changes WHERE account_id = $1 RETURNING ${COLUMNS}`,
      [accountId],
    )
    if (change !== undefined) await note(tx, place, by, change, 'email_change_cancelled')
  })
}

async function lockChange(tx: Sql, token: string, nowMs: InstantMs): Promise<ChangeRow | null> {
  if (!isToken(token)) return null
  const [change] = await tx.query<ChangeRow>(
    `SELECT ${COLUMNS}, CASE WHEN old_token_hash = $1 THEN 'old' ELSE 'new' END AS side FROM email_changes
     WHERE (old_token_hash = $1 OR new_token_hash = $1) AND expires_at_ms > $2 FOR UPDATE`,
    [hashToken(token), nowMs],
  )
  return change ?? null
}

function note(
  tx: Sql,
  { wallMs }: OwnerPlace,
  by: By,
  { accountId, changeId, oldEmail, newEmail, side }: Omit<ChangeRow, 'side'> & { side?: ChangeRow['side'] },
  act: AuditAct,
): Promise<void> {
  const detail = { from: oldEmail, to: newEmail, ...(side !== undefined && { proven: `${side} address` }) }
  return appendAudit(tx, { chain: accountId, atMs: wallMs(), act, by, subject: changeId, detail })
}
