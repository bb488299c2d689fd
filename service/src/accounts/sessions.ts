import { randomBytes } from 'node:crypto'
import { appendAudit, type By } from '../db/audit_log.ts'
import type { Sql } from '../db/database.ts'
import { accept, type Outcome, refuse } from '../domain/outcome.ts'
import { SESSION_IDLE_MS, SESSION_MS_MAX } from '../domain/session_lifetimes.ts'
import { type InstantMs, MINUTE_MS } from '../domain/time.ts'
import type { Account, AccountsPlace } from './accounts.ts'
import type { Requester } from './owner_place.ts'
import { hashToken, isToken, makeToken } from './tokens.ts'

export type Session = {
  readonly sessionId: string
  readonly createdAtMs: InstantMs
  readonly lastUsedAtMs: InstantMs
  /** When it ends if it is not used any more. */
  readonly expiresAtMs: InstantMs
  readonly address: string
  readonly userAgent: string | null
}

export type SignedIn = { readonly session: Session; readonly account: Account }

type SessionRow = Omit<Session, 'expiresAtMs'> & { readonly endsAtMs: InstantMs }

const COLUMNS = `session_id AS "sessionId", sessions.created_at_ms AS "createdAtMs", last_used_at_ms AS "lastUsedAtMs",
  ends_at_ms AS "endsAtMs", address, user_agent AS "userAgent"`

/** In a statement on sessions: it lives at the time of `$2`. */
const LIVES = `ends_at_ms > $2 AND last_used_at_ms > $2 - ${SESSION_IDLE_MS}`

/** Whose session it is that has this token, and notes that it was used. Null: none that lives. */
export async function findSession(
  { db, wallMs }: AccountsPlace,
  token: string | null,
): Promise<SignedIn | null> {
  if (token === null || !isToken(token)) return null
  const nowMs = wallMs()
  const [row] = await db.query<
    SessionRow & { accountId: string; name: string; email: string | null; since: number }
  >(
    `SELECT ${COLUMNS}, account_id AS "accountId", name, email, accounts.created_at_ms AS since
     FROM sessions JOIN accounts USING (account_id) WHERE token_hash = $1 AND ${LIVES}`,
    [hashToken(token), nowMs],
  )
  if (row === undefined) return null
  const isTouched = row.lastUsedAtMs + MINUTE_MS <= nowMs
  if (isTouched) await touch(db, row.sessionId, nowMs)
  const { accountId, name, email, since } = row
  // What asks is a use, too: from now on it lives as long as that says.
  const session = sessionOf(isTouched ? { ...row, lastUsedAtMs: nowMs } : row)
  return { session, account: { accountId, name, email, createdAtMs: since } }
}

/** A session that was ended meanwhile stays ended. */
async function touch(db: Sql, sessionId: string, nowMs: InstantMs): Promise<void> {
  await db.query(
    'UPDATE sessions SET last_used_at_ms = greatest(last_used_at_ms, $2) WHERE session_id = $1',
    [sessionId, nowMs],
  )
}

function sessionOf(row: SessionRow): Session {
  const { sessionId, createdAtMs, lastUsedAtMs, endsAtMs, address, userAgent } = row
  const expiresAtMs = Math.min(lastUsedAtMs + SESSION_IDLE_MS, endsAtMs)
  return { sessionId, createdAtMs, lastUsedAtMs, expiresAtMs, address, userAgent }
}

const USER_AGENT_LENGTH_MAX = 200

/** `token` is for the cookie and is told nobody else. */
export async function beginSession(
  tx: Sql,
  { wallMs }: Pick<AccountsPlace, 'wallMs'>,
  accountId: string,
  { address, userAgent }: Requester,
): Promise<{ readonly session: Session; readonly token: string }> {
  const token = makeToken()
  const nowMs = wallMs()
  const [row] = await tx.query<SessionRow>(
    `INSERT INTO sessions (session_id, token_hash, account_id, created_at_ms, last_used_at_ms, ends_at_ms, address, user_agent)
     VALUES ($1, $2, $3, $4, $4, $5, $6, $7) RETURNING ${COLUMNS}`,
    [
      `ses_${randomBytes(8).toString('hex')}`,
      hashToken(token),
      accountId,
      nowMs,
      nowMs + SESSION_MS_MAX,
      address,
      userAgent?.slice(0, USER_AGENT_LENGTH_MAX).toWellFormed() ?? null,
    ],
  )
  if (row === undefined) throw new Error('a session that was stored comes back')
  return { session: sessionOf(row), token }
}

/** Those that live, the last used first. */
export async function listSessions(
  { db, wallMs }: AccountsPlace,
  accountId: string,
): Promise<readonly Session[]> {
  const rows = await db.query<SessionRow>(
    `SELECT ${COLUMNS} FROM sessions WHERE account_id = $1 AND ${LIVES} ORDER BY last_used_at_ms DESC, session_id`,
    [accountId, wallMs()],
  )
  return rows.map(sessionOf)
}

/** At once, everywhere. Refusal: `session_not_found`, also for another account's. */
export function endSession(
  { db, wallMs }: AccountsPlace,
  by: By,
  accountId: string,
  sessionId: string,
): Promise<Outcome<null>> {
  return db.transaction(async (tx) => {
    const ended = await tx.query(
      'DELETE FROM sessions WHERE account_id = $1 AND session_id = $2 RETURNING session_id',
      [accountId, sessionId],
    )
    if (ended.length === 0) {
      return refuse({ code: 'session_not_found', message: `there is no session ${sessionId}` })
    }
    const entry = { chain: accountId, atMs: wallMs(), act: 'session_ended', by } as const
    await appendAudit(tx, { ...entry, subject: sessionId, detail: {} })
    return accept(null)
  })
}

/** Every session of the account, also the one that asks. Answers how many lived. */
export function endAllSessions({ db, wallMs }: AccountsPlace, by: By, accountId: string): Promise<number> {
  return db.transaction(async (tx) => {
    const ended = await tx.query('DELETE FROM sessions WHERE account_id = $1 RETURNING session_id', [
      accountId,
    ])
    const detail = { count: String(ended.length) }
    const entry = { chain: accountId, atMs: wallMs(), act: 'sessions_ended', by } as const
    await appendAudit(tx, { ...entry, subject: accountId, detail })
    return ended.length
  })
}

/** The session that this browser had before it signed in again: its cookie is about to be overwritten. */
export async function endReplaced(
  tx: Sql,
  { wallMs }: Pick<AccountsPlace, 'wallMs'>,
  by: By,
  token: string | null,
): Promise<void> {
  if (token === null || !isToken(token)) return
  const [ended] = await tx.query<{ session_id: string; account_id: string }>(
    'DELETE FROM sessions WHERE token_hash = $1 RETURNING session_id, account_id',
    [hashToken(token)],
  )
  if (ended === undefined) return
  const entry = { chain: ended.account_id, atMs: wallMs(), act: 'session_ended', by } as const
  await appendAudit(tx, { ...entry, subject: ended.session_id, detail: { replaced: 'true' } })
}
