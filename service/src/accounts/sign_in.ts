import { randomBytes, timingSafeEqual } from 'node:crypto'
import { appendAudit, houseChain } from '../db/audit_log.ts'
import { isUniqueViolation, type Sql } from '../db/database.ts'
import { queueMail } from '../db/mails.ts'
import { accept, type Outcome, refuse } from '../domain/outcome.ts'
import { LINK_LIFETIME_MS } from '../domain/session_lifetimes.ts'
import { type InstantMs, inMinutes } from '../domain/time.ts'
import { type Account, insertAccount, nameAfter } from './accounts.ts'
import { type AskLimits, refuseFlood, type TooOften } from './ask_limit.ts'
import { type OwnerPlace, type Requester, visitor } from './owner_place.ts'
import { beginSession, endReplaced, type SignedIn } from './sessions.ts'
import { hashToken, isToken, makeToken } from './tokens.ts'

export type LinkAsked = {
  /** As `parseEmail` gives it. */
  readonly email: string
  /** What the browser that asks holds in a cookie: only there the link signs in. */
  readonly browserToken: string
  readonly requester: Requester
  /** The address as it is limited (IPv6 by /64). */
  readonly limitedAs: string
}

/**
 * Sends a link to the address, whether it is an account's or not: an account is made when somebody who can read its
 * mails signs in. So what is done here, and what is answered, is the same for both.
 */
export async function askForLink(
  place: OwnerPlace,
  limits: AskLimits,
  { email, browserToken, requester, limitedAs }: LinkAsked,
): Promise<Outcome<null, TooOften>> {
  const flood = await refuseFlood(place, [
    { what: `address:${limitedAs}`, max: limits.perAddress },
    { what: `email:${email}`, max: limits.perEmail },
  ])
  if (flood !== null) return refuse(flood)
  const token = makeToken()
  const linkId = `lnk_${randomBytes(8).toString('hex')}`
  const nowMs = place.wallMs()
  await place.db.transaction(async (tx) => {
    const account = await findByEmail(tx, email)
    await tx.query(
      `INSERT INTO sign_in_links (link_id, token_hash, browser_hash, email, created_at_ms, expires_at_ms)
       VALUES ($1, $2, $3, $4, $5, $6)`,
      [linkId, hashToken(token), hashToken(browserToken), email, nowMs, nowMs + LINK_LIFETIME_MS],
    )
    const link = `${place.baseUrl()}/account/sign-in#token=${token}`
    const data = { link, expires_at_ms: nowMs + LINK_LIFETIME_MS, ip: requester.address }
    const accountId = account?.accountId ?? null
    const mail = { eventKey: `sign_in:${linkId}`, orderId: null, accountId, to: email, nowMs: place.nowMs() }
    await queueMail(tx, { ...mail, kind: 'sign_in_link', data })
    const by = visitor(requester)
    const chain = accountId ?? houseChain(email)
    await appendAudit(tx, { chain, atMs: nowMs, act: 'sign_in_link_asked', by, subject: linkId, detail: {} })
  })
  return accept(null)
}

export type SignInAsked = {
  readonly token: string
  readonly browserToken: string | null
  /** Of the session that the browser has already. */
  readonly sessionToken: string | null
  readonly requester: Requester
}

type Link = {
  readonly linkId: string
  readonly email: string
  readonly browserHash: Buffer
  readonly expiresAtMs: InstantMs
  readonly usedAtMs: InstantMs | null
}

/** The same words for every reason: who holds the link learns nothing about it. */
const invalidLink = refuse({
  code: 'link_invalid',
  message: `the link does not sign in: it was used, it is older than ${inMinutes(LINK_LIFETIME_MS)}, or it was asked for in another browser; ask for a new one`,
})

/** Uses the link up and begins a session. Refusal: `link_invalid`. */
export async function signIn(
  place: OwnerPlace,
  asked: SignInAsked,
): Promise<Outcome<SignedIn & { readonly token: string }>> {
  const attempt = () => place.db.transaction((tx) => useLink(tx, place, asked))
  return attempt().catch((error: unknown) => {
    // Two links of an address without an account, used at the same moment: now it has one.
    if (isUniqueViolation(error)) return attempt()
    throw error
  })
}

async function useLink(tx: Sql, place: OwnerPlace, asked: SignInAsked) {
  const { token, requester } = asked
  const link = isToken(token) ? await lockLink(tx, token) : null
  if (link === null) return invalidLink
  const by = visitor(requester)
  const nowMs = place.wallMs()
  const known = await holdByEmail(tx, link.email)
  const wrong = whatIsWrong(link, asked.browserToken, nowMs)
  if (wrong !== null) {
    if (!(await noteFailure(tx, link, wrong))) return invalidLink
    const chain = known?.accountId ?? houseChain(link.email)
    const detail = { reason: wrong }
    await appendAudit(tx, { chain, atMs: nowMs, act: 'sign_in_failed', by, subject: link.linkId, detail })
    return invalidLink
  }
  await tx.query('UPDATE sign_in_links SET used_at_ms = $2 WHERE link_id = $1', [link.linkId, nowMs])
  await endReplaced(tx, place, by, asked.sessionToken)
  const { email } = link
  const account = known ?? (await insertAccount(tx, place, by, { name: nameAfter(email), email }))
  const begun = await beginSession(tx, place, account.accountId, requester)
  await appendAudit(tx, {
    chain: account.accountId,
    atMs: nowMs,
    act: 'signed_in',
    by,
    subject: begun.session.sessionId,
    detail: {
      link: link.linkId,
      ...(requester.userAgent !== null && { user_agent: requester.userAgent.slice(0, 200) }),
    },
  })
  return accept({ ...begun, account })
}

function whatIsWrong(
  { browserHash, expiresAtMs, usedAtMs }: Link,
  browserToken: string | null,
  nowMs: InstantMs,
): string | null {
  if (usedAtMs !== null) return 'used'
  if (expiresAtMs <= nowMs) return 'expired'
  if (browserToken === null || !timingSafeEqual(hashToken(browserToken), browserHash)) return 'other_browser'
  return null
}

/**
 * False: the audit log has this already. It is never cut, and whoever holds a link that is used up could lengthen it by as
 * much as they like.
 */
async function noteFailure(tx: Sql, { linkId }: Link, reason: string): Promise<boolean> {
  const rows = await tx.query(
    `UPDATE sign_in_links SET failed_for = array_append(failed_for, $2::text)
     WHERE link_id = $1 AND $2::text <> ALL (failed_for) RETURNING 1 AS one`,
    [linkId, reason],
  )
  return rows.length > 0
}

/** Whoever else uses the link at this moment waits, and finds it used. */
async function lockLink(tx: Sql, token: string): Promise<Link | null> {
  const [link] = await tx.query<Link>(
    `SELECT link_id AS "linkId", email, browser_hash AS "browserHash", expires_at_ms AS "expiresAtMs",
       used_at_ms AS "usedAtMs"
     FROM sign_in_links WHERE token_hash = $1 FOR UPDATE`,
    [hashToken(token)],
  )
  return link ?? null
}

const BY_EMAIL = `SELECT account_id AS "accountId", name, email, created_at_ms AS "createdAtMs" FROM accounts WHERE email = $1`

async function findByEmail(tx: Sql, email: string): Promise<Account | null> {
  const [account] = await tx.query<Account>(BY_EMAIL, [email])
  return account ?? null
}

/**
 * The account keeps this address until the transaction ends. Else one that is being taken from whoever has the address
 * would lose all sessions but the one that begins at this moment.
 */
async function holdByEmail(tx: Sql, email: string): Promise<Account | null> {
  const [account] = await tx.query<Account>(`${BY_EMAIL} FOR KEY SHARE`, [email])
  return account ?? null
}
