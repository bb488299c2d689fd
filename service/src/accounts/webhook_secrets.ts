import { randomBytes } from 'node:crypto'
import { appendAudit, type By } from '../db/audit_log.ts'
import type { Sql } from '../db/database.ts'
import { assert } from '../domain/assert.ts'
import { accept, type Outcome, refuse } from '../domain/outcome.ts'
import type { InstantMs } from '../domain/time.ts'
import { type KeysPlace, OVERLAP_MS_DEFAULT, OVERLAP_MS_MAX } from './keys.ts'

/** What tells about a live secret of an account without telling it. */
export type WebhookSecretSummary = {
  readonly createdAtMs: InstantMs
  /** Set for the older one while two live. */
  readonly expiresAtMs: InstantMs | null
}

/** The only time that it is told: `whsec_` and the base64 of 24 bytes (Standard Webhooks 1.0). */
export type ToldWebhookSecret = {
  readonly secret: string
  /** Until when messages are signed with the one before as well; null where there was none. */
  readonly oldSecretUntilMs: InstantMs | null
}

/** The newest first. */
export async function listWebhookSecrets(
  { db, wallMs }: Pick<KeysPlace, 'db' | 'wallMs'>,
  accountId: string,
): Promise<readonly WebhookSecretSummary[]> {
  const live = await liveSecrets(db, accountId, wallMs())
  return live.map(({ createdAtMs, expiresAtMs }) => ({ createdAtMs, expiresAtMs }))
}

/** `onUnopened` hears of a secret that does not open: its key is not configured (any more), or it is not what was stored. */
type SigningPlace = KeysPlace & { onUnopened(accountId: string, error: unknown): void }

/**
 * The live secrets that open, newest first, for signing. An account that has none gets one: nobody has seen it, so that its
 * owner has to make another one before they can check a signature, but no message goes out unsigned meanwhile. Empty where
 * there are some and none opens: a new one in their place would be one that the receiver does not know.
 */
export async function openWebhookSecrets(place: SigningPlace, accountId: string): Promise<readonly string[]> {
  const live = await liveSecrets(place.db, accountId, place.wallMs())
  if (live.length > 0) return openThose(place, accountId, live)
  await place.db.query(
    `INSERT INTO webhook_secrets (account_id, slot, sealed, created_at_ms) VALUES ($1, 1, $2, $3)
     ON CONFLICT DO NOTHING`,
    [accountId, place.box.seal(makeSecret(), contextOf(accountId)), place.wallMs()],
  )
  // Of two who make the first one at once, both sign with what is stored.
  const made = await liveSecrets(place.db, accountId, place.wallMs())
  assert(made.length > 0, 'an account has a live webhook secret after one was made')
  return openThose(place, accountId, made)
}

function openThose(
  { box, onUnopened }: SigningPlace,
  accountId: string,
  secrets: readonly LiveSecret[],
): readonly string[] {
  return secrets.flatMap(({ sealed }) => {
    try {
      return [box.open(sealed, contextOf(accountId))]
    } catch (error) {
      onUnopened(accountId, error)
      return []
    }
  })
}

/**
 * Makes the first secret, or a new one beside which the old one lives on for `overlapMs`. While two live, a further
 * rotation is refused, unless `replacesNewest` says that the newest was never used: it dies, and the older keeps its
 * time.
 */
export async function rotateWebhookSecret(
  place: KeysPlace,
  by: By,
  accountId: string,
  options: { readonly overlapMs?: number; readonly replacesNewest?: boolean } = {},
): Promise<Outcome<ToldWebhookSecret>> {
  const { overlapMs = OVERLAP_MS_DEFAULT, replacesNewest = false } = options
  if (!(overlapMs >= 0 && overlapMs <= OVERLAP_MS_MAX)) {
    return refuse({ code: 'overlap_too_long', message: 'the old secret may live on for at most 7 days' })
  }
  return place.db.transaction(async (tx) => {
    const [account] = await tx.query(
      'SELECT 1 AS one FROM accounts WHERE account_id = $1 FOR NO KEY UPDATE',
      [accountId],
    )
    if (account === undefined) {
      return refuse({ code: 'account_not_found', message: `there is no account ${accountId}` })
    }
    const now = place.wallMs()
    const [newest, older] = await liveSecrets(tx, accountId, now)
    if (older !== undefined && !replacesNewest) {
      return refuse({
        code: 'rotation_under_way',
        message: `there are two live secrets until ${new Date(older.expiresAtMs ?? now).toISOString()}; rotate again after that, or replace the newest one if it was lost. Nothing ends the older one sooner: where it is in wrong hands, let receivers take only what is signed with the newest, as every message is.`,
      })
    }
    const oldSecretUntilMs = older?.expiresAtMs ?? (newest === undefined ? null : now + overlapMs)
    if (newest !== undefined && older === undefined) await endSecret(tx, accountId, newest, oldSecretUntilMs)
    const slot = older !== undefined ? newest?.slot : newest?.slot === 1 ? 2 : 1
    assert(slot !== undefined, 'with an older secret there is a newer one')
    const secret = makeSecret()
    await putSecret(tx, place, accountId, { slot, secret })
    const entry = { chain: accountId, atMs: now, act: 'webhook_secret_rotated', by } as const
    await appendAudit(tx, { ...entry, subject: accountId, detail: {} })
    return accept({ secret, oldSecretUntilMs })
  })
}

/** The secret of the sandbox's account, the same across restarts. Not for production: the caller names it. */
export async function ensureWebhookSecret(
  place: KeysPlace,
  accountId: string,
  secret: string,
): Promise<void> {
  await place.db.transaction(async (tx) => {
    await tx.query('DELETE FROM webhook_secrets WHERE account_id = $1', [accountId])
    await putSecret(tx, place, accountId, { slot: 1, secret })
  })
}

function makeSecret(): string {
  return `whsec_${randomBytes(24).toString('base64')}`
}

/** What a sealed secret is bound to. */
function contextOf(accountId: string): string {
  return `webhooks of ${accountId}`
}

type LiveSecret = WebhookSecretSummary & { readonly slot: 1 | 2; readonly sealed: Buffer }

function liveSecrets(sql: Sql, accountId: string, nowMs: InstantMs): Promise<readonly LiveSecret[]> {
  return sql.query<LiveSecret>(
    `SELECT slot, sealed, created_at_ms AS "createdAtMs", expires_at_ms AS "expiresAtMs" FROM webhook_secrets
     WHERE account_id = $1 AND (expires_at_ms IS NULL OR expires_at_ms > $2)
     ORDER BY expires_at_ms DESC NULLS FIRST`,
    [accountId, nowMs],
  )
}

function endSecret(
  tx: Sql,
  accountId: string,
  { slot }: LiveSecret,
  expiresAtMs: InstantMs | null,
): Promise<unknown> {
  return tx.query('UPDATE webhook_secrets SET expires_at_ms = $3 WHERE account_id = $1 AND slot = $2', [
    accountId,
    slot,
    expiresAtMs,
  ])
}

function putSecret(
  tx: Sql,
  { box, wallMs }: KeysPlace,
  accountId: string,
  { slot, secret }: { readonly slot: 1 | 2; readonly secret: string },
): Promise<unknown> {
  return tx.query(
    `INSERT INTO webhook_secrets (account_id, slot, sealed, created_at_ms) VALUES ($1, $2, $3, $4)
     ON CONFLICT (account_id, slot) DO UPDATE
     SET sealed = excluded.sealed, created_at_ms = excluded.created_at_ms, expires_at_ms = NULL`,
    [accountId, slot, box.seal(secret, contextOf(accountId)), wallMs()],
  )
}
