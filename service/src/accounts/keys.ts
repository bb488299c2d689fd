import { randomBytes } from 'node:crypto'
import { type AuditAct, appendAudit, type By } from '../db/audit_log.ts'
import type { Sql } from '../db/database.ts'
import { assert } from '../domain/assert.ts'
import { accept, type Outcome, refuse } from '../domain/outcome.ts'
import { DAY_MS, type InstantMs } from '../domain/time.ts'
import { type AccountsPlace, findAccount } from './accounts.ts'
import { type Scope, scopes } from './api_key.ts'
import { parseIpRange } from './ip_range.ts'
import type { SecretBox } from './secret_box.ts'

export type KeysPlace = AccountsPlace & { readonly box: SecretBox }

export type NewKey = {
  readonly accountId: string
  readonly label: string
  readonly scopes: readonly string[]
  /** Addresses or CIDR ranges; empty means anywhere. */
  readonly ipAllow: readonly string[]
}

/** A key as somebody names it; to whoever is not its owner it does not exist. Null: the operator, who owns them all. */
export type OwnedKey = { readonly keyId: string; readonly accountId: string | null }

/** The only time that the secret is told: 64 hex digits, whose text (not the bytes it spells) is the HMAC key. */
export type ToldSecret = { readonly keyId: string; readonly secret: string }

export type KeySummary = {
  readonly keyId: string
  readonly accountId: string
  readonly accountName: string
  readonly label: string
  readonly scopes: readonly Scope[]
  readonly ipAllow: readonly string[]
  readonly createdAtMs: InstantMs
  readonly lastUsedAtMs: InstantMs | null
  readonly revokedAtMs: InstantMs | null
  /** Set while two secrets live: when the older one ends. */
  readonly oldSecretUntilMs: InstantMs | null
}

export const OVERLAP_MS_DEFAULT = DAY_MS
/** A week is time enough to roll a secret out, and not so long that two are forgotten. */
export const OVERLAP_MS_MAX = 7 * DAY_MS

export async function createKey(place: KeysPlace, by: By, wanted: NewKey): Promise<Outcome<ToldSecret>> {
  const checked = checkKey(wanted)
  if (!checked.ok) return checked
  if ((await findAccount(place, wanted.accountId)) === null) {
    return refuse({ code: 'account_not_found', message: `there is no account ${wanted.accountId}` })
  }
  const told = { keyId: `ck_${randomBytes(10).toString('hex')}`, secret: makeSecret() }
  await place.db.transaction(async (tx) => {
    const { accountId, label, scopes, ipAllow } = checked.value
    await insertKey(tx, place, told, checked.value)
    await noteKeyAct(
      tx,
      place,
      by,
      { act: 'key_created', accountId, keyId: told.keyId },
      {
        label,
        scopes: scopes.join(','),
        ip_allow: ipAllow.join(','),
      },
    )
  })
  return accept(told)
}

/** Making and revoking keys must not make the list longer for ever; the audit log has them all. */
const REVOKED_LISTED_MAX = 100

/**
 * Newest first; of an account's revoked keys too, those revoked last: who reads wants to know what became of them. Without an
 * account, of all accounts.
 */
export function listKeys(
  { db, wallMs }: AccountsPlace,
  accountId: string | null,
): Promise<readonly KeySummary[]> {
  const times = [wallMs()]
  return accountId === null
    ? db.query<KeySummary>(keysOf('accounts'), times)
    : db.query<KeySummary>(keysOf('(SELECT * FROM accounts WHERE account_id = $2)'), [...times, accountId])
}

const keysOf = (accounts: string) => `
  SELECT key_id AS "keyId", account.account_id AS "accountId", account.name AS "accountName", label, scopes,
    ip_allow AS "ipAllow", keys.created_at_ms AS "createdAtMs", last_used_at_ms AS "lastUsedAtMs",
    revoked_at_ms AS "revokedAtMs",
    (SELECT max(expires_at_ms) FROM api_key_secrets AS secret
     WHERE secret.key_id = keys.key_id AND expires_at_ms > $1) AS "oldSecretUntilMs"
  FROM ${accounts} AS account CROSS JOIN LATERAL (
    SELECT * FROM api_keys live WHERE live.account_id = account.account_id AND live.revoked_at_ms IS NULL
    UNION ALL
    (SELECT * FROM api_keys revoked
     WHERE revoked.account_id = account.account_id AND revoked.revoked_at_ms IS NOT NULL
     ORDER BY revoked.revoked_at_ms DESC, revoked.key_id LIMIT ${REVOKED_LISTED_MAX})) AS keys
  ORDER BY keys.created_at_ms DESC, key_id`

export async function countLiveKeys(sql: Sql, accountId: string): Promise<number> {
  const [live] = await sql.query<{ count: number }>(
    'SELECT count(*) AS count FROM api_keys WHERE account_id = $1 AND revoked_at_ms IS NULL',
    [accountId],
  )
  return live?.count ?? 0
}

/**
 * Makes a new secret; the one before lives on for `overlapMs`. While two live, a further rotation is refused,
 * unless `replacesNewest` says that the newest was never used (lost): it dies, and the older keeps its time.
 */
export async function rotateKey(
  place: KeysPlace,
  by: By,
  key: OwnedKey,
  options: { readonly overlapMs: number; readonly replacesNewest: boolean },
): Promise<Outcome<ToldSecret & { readonly oldSecretUntilMs: InstantMs }>> {
  const { overlapMs, replacesNewest } = options
  if (!(overlapMs >= 0 && overlapMs <= OVERLAP_MS_MAX)) {
    return refuse({ code: 'overlap_too_long', message: 'the old secret may live on for at most 7 days' })
  }
  return place.db.transaction(async (tx) => {
    const { keyId } = key
    const locked = await lockLiveKey(tx, key)
    if (!locked.ok) return locked
    const now = place.wallMs()
    const [newest, older] = await liveSecrets(tx, keyId, now)
    assert(newest !== undefined, `the live key ${keyId} has a live secret`)
    if (older !== undefined && !replacesNewest) {
      return refuse({
        code: 'rotation_under_way',
        message: `${keyId} has two live secrets until ${new Date(older.expiresAtMs ?? now).toISOString()}; rotate again after that, or replace the newest one if it was lost. Where the older one is in wrong hands, revoke the key, which ends both, and make another.`,
      })
    }
    // With two live, the newest makes room and the older keeps the time it was given.
    const isReplaced = older !== undefined
    const oldSecretUntilMs = older?.expiresAtMs ?? now + overlapMs
    if (!isReplaced) await setExpiry(tx, keyId, newest.slot, oldSecretUntilMs)
    const slot = isReplaced ? newest.slot : newest.slot === 1 ? 2 : 1
    const secret = makeSecret()
    await putSecret(tx, place, { keyId, secret }, slot)
    await noteKeyAct(
      tx,
      place,
      by,
      { act: 'key_rotated', keyId, accountId: locked.value },
      {
        old_secret_until: new Date(oldSecretUntilMs).toISOString(),
        ...(isReplaced && { replaced_newest: 'true' }),
      },
    )
    return accept({ keyId, secret, oldSecretUntilMs })
  })
}

/** Ends the key now (elsewhere within two seconds) and erases its secrets. Revoking twice is the same as once. */
export async function revokeKey(place: KeysPlace, by: By, key: OwnedKey): Promise<Outcome<null>> {
  const { keyId } = key
  return place.db.transaction(async (tx) => {
    const [found] = await tx.query<{ account_id: string; revoked_at_ms: number | null }>(
      'SELECT account_id, revoked_at_ms FROM api_keys WHERE key_id = $1 FOR UPDATE',
      [keyId],
    )
    if (found === undefined || !isOwned(key, found.account_id)) return noSuchKey(keyId)
    if (found.revoked_at_ms !== null) return accept(null)
    await tx.query('UPDATE api_keys SET revoked_at_ms = $2 WHERE key_id = $1', [keyId, place.wallMs()])
    await tx.query('DELETE FROM api_key_secrets WHERE key_id = $1', [keyId])
    await noteKeyAct(tx, place, by, { act: 'key_revoked', keyId, accountId: found.account_id }, {})
    return accept(null)
  })
}

/**
 * The account and key of the sandbox, the same across restarts, whatever was done to them in between. Not for
 * production: the caller names the secret. It is the same at every start, and so no act that is written down.
 */
export async function ensureAccount(
  place: KeysPlace,
  account: { readonly accountId: string; readonly name: string; readonly email?: string },
  key: ToldSecret,
): Promise<void> {
  await place.db.transaction(async (tx) => {
    await tx.query(
      `INSERT INTO accounts (account_id, name, created_at_ms, email) VALUES ($1, $2, $3, $4)
       ON CONFLICT (account_id) DO UPDATE SET email = coalesce(accounts.email, excluded.email)`,
      [account.accountId, account.name, place.wallMs(), account.email ?? null],
    )
    await tx.query('DELETE FROM api_key_secrets WHERE key_id = $1', [key.keyId])
    await insertKey(tx, place, key, { accountId: account.accountId, label: 'sandbox', scopes, ipAllow: [] })
  })
}

type CheckedKey = NewKey & { readonly scopes: readonly Scope[] }

function checkKey(wanted: NewKey): Outcome<CheckedKey> {
  const wrong = (message: string) => refuse({ code: 'key_malformed', message })
  // As the reference and the table count: to JavaScript some characters are two.
  if ([...wanted.label].length > 100) return wrong('a label has at most 100 characters')
  const chosen = scopes.filter((scope) => wanted.scopes.includes(scope))
  if (chosen.length === 0 || wanted.scopes.some((scope) => !scopes.includes(scope as Scope))) {
    return wrong(`scopes are one or more of ${scopes.join(', ')}`)
  }
  if (wanted.ipAllow.length > 50) return wrong('an IP list has at most 50 entries')
  const ranges = wanted.ipAllow.map(parseIpRange)
  const malformed = ranges.find((range) => !range.ok)
  if (malformed !== undefined && !malformed.ok) return malformed
  const ipAllow = [...new Set(ranges.flatMap((range) => (range.ok ? [range.value] : [])))]
  return accept({ ...wanted, scopes: chosen, ipAllow })
}

function makeSecret(): string {
  return randomBytes(32).toString('hex')
}

async function insertKey(tx: Sql, place: KeysPlace, told: ToldSecret, key: CheckedKey): Promise<void> {
  await tx.query(
    `INSERT INTO api_keys (key_id, account_id, label, scopes, ip_allow, created_at_ms)
     VALUES ($1, $2, $3, $4, $5, $6)
     ON CONFLICT (key_id) DO UPDATE SET scopes = excluded.scopes, ip_allow = excluded.ip_allow, revoked_at_ms = NULL`,
    [told.keyId, key.accountId, key.label, key.scopes, key.ipAllow, place.wallMs()],
  )
  await putSecret(tx, place, told, 1)
}

function putSecret(tx: Sql, { box, wallMs }: KeysPlace, told: ToldSecret, slot: number): Promise<unknown> {
  return tx.query(
    `INSERT INTO api_key_secrets (key_id, slot, sealed, created_at_ms) VALUES ($1, $2, $3, $4)
     ON CONFLICT (key_id, slot) DO UPDATE
     SET sealed = excluded.sealed, created_at_ms = excluded.created_at_ms, expires_at_ms = NULL`,
    [told.keyId, slot, box.seal(told.secret, told.keyId), wallMs()],
  )
}

/** Answers whose it is. */
async function lockLiveKey(tx: Sql, key: OwnedKey): Promise<Outcome<string>> {
  const { keyId } = key
  const [found] = await tx.query<{ account_id: string; revoked_at_ms: number | null }>(
    'SELECT account_id, revoked_at_ms FROM api_keys WHERE key_id = $1 FOR UPDATE',
    [keyId],
  )
  if (found === undefined || !isOwned(key, found.account_id)) return noSuchKey(keyId)
  if (found.revoked_at_ms === null) return accept(found.account_id)
  return refuse({ code: 'key_revoked', message: `${keyId} is revoked; create a new key instead` })
}

function isOwned({ accountId }: OwnedKey, ownerId: string): boolean {
  return accountId === null || accountId === ownerId
}

type KeyAct = { readonly act: AuditAct; readonly keyId: string; readonly accountId: string }

function noteKeyAct(
  tx: Sql,
  { wallMs }: KeysPlace,
  by: By,
  { act, keyId, accountId }: KeyAct,
  detail: Readonly<Record<string, string>>,
): Promise<void> {
  return appendAudit(tx, { chain: accountId, atMs: wallMs(), act, by, subject: keyId, detail })
}

type LiveSecret = { readonly slot: 1 | 2; readonly expiresAtMs: InstantMs | null }

/** The one without an end first. */
function liveSecrets(tx: Sql, keyId: string, nowMs: InstantMs): Promise<readonly LiveSecret[]> {
  return tx.query<LiveSecret>(
    `SELECT slot, expires_at_ms AS "expiresAtMs" FROM api_key_secrets
     WHERE key_id = $1 AND (expires_at_ms IS NULL OR expires_at_ms > $2)
     ORDER BY expires_at_ms DESC NULLS FIRST`,
    [keyId, nowMs],
  )
}

function setExpiry(tx: Sql, keyId: string, slot: number, expiresAtMs: InstantMs): Promise<unknown> {
  return tx.query('UPDATE api_key_secrets SET expires_at_ms = $3 WHERE key_id = $1 AND slot = $2', [
    keyId,
    slot,
    expiresAtMs,
  ])
}

function noSuchKey(keyId: string) {
  return refuse({ code: 'key_not_found', message: `there is no key ${keyId}` })
}
