import { createSecretKey, type KeyObject } from 'node:crypto'
import type { Sql } from '../db/database.ts'
import { BoundedMap } from '../domain/bounded_map.ts'
import { type InstantMs, MINUTE_MS } from '../domain/time.ts'
import type { ApiKey, ApiKeys, Scope } from './api_key.ts'
import type { SecretBox } from './secret_box.ts'

/** How long an answer is believed; a revocation holds everywhere after it. */
const CACHE_MS = 2_000
/** Kept apart, so that made-up key ids cannot push real keys out. */
const KNOWN_MAX = 10_000
const UNKNOWN_MAX = 10_000

export type ApiKeyStore = ApiKeys & {
  /** Resolves when no write of a last use is under way; for a clean shutdown. */
  settle(): Promise<void>
}

type Remembered = { readonly key: ApiKey | null; readonly fromMs: InstantMs; readonly untilMs: InstantMs }

/** `onTouchFailed` hears of a last use that could not be written: worth a log line, not a failed request. */
export function openApiKeys(place: {
  readonly db: Sql
  readonly box: SecretBox
  wallMs(): InstantMs
  onTouchFailed(error: unknown): void
}): ApiKeyStore {
  const known = new BoundedMap<string, Remembered>(KNOWN_MAX)
  const unknown = new BoundedMap<string, Remembered>(UNKNOWN_MAX)
  const loading = new Map<string, Promise<ApiKey | null>>()
  const touching = new Set<Promise<void>>()
  const lastUses = new WeakMap<ApiKey, InstantMs>()

  const load = async (keyId: string): Promise<ApiKey | null> => {
    const fromMs = place.wallMs()
    const row = await readKey(place.db, keyId, fromMs)
    const key = row === null ? null : openKey(row, place.box)
    // Counted from before the question, so that what was revoked since is out in time.
    const untilMs = Math.min(
      fromMs + CACHE_MS,
      ...(row?.secrets ?? []).map((each) => each.expiresAtMs ?? Infinity),
    )
    const [cache, other] = key === null ? [unknown, known] : [known, unknown]
    other.delete(keyId)
    // The oldest answer makes room: it is at most two seconds of work that is lost.
    cache.set(keyId, { key, fromMs, untilMs })
    if (key !== null) lastUses.set(key, row?.lastUsedAtMs ?? 0)
    return key
  }

  const touch = (keyId: string, atMs: InstantMs) => {
    const writing = writeLastUse(place.db, keyId, atMs)
      .catch(place.onTouchFailed)
      .finally(() => touching.delete(writing))
    touching.add(writing)
  }

  return {
    find: async (keyId) => {
      if (!/^ck_[0-9a-z]{8,32}$/.test(keyId)) return null
      const now = place.wallMs()
      const remembered = known.get(keyId) ?? unknown.get(keyId)
      // A wall clock that was set back must not prolong what was remembered.
      if (remembered !== undefined && now >= remembered.fromMs && now < remembered.untilMs)
        return remembered.key
      const underWay = loading.get(keyId)
      if (underWay !== undefined) return underWay
      const loaded = load(keyId).finally(() => loading.delete(keyId))
      loading.set(keyId, loaded)
      return loaded
    },
    noteUse: (key) => {
      const nowMs = place.wallMs()
      if ((lastUses.get(key) ?? 0) + MINUTE_MS > nowMs) return
      lastUses.set(key, nowMs)
      touch(key.keyId, nowMs)
    },
    settle: async () => {
      await Promise.all(touching)
    },
  }
}

type KeyRow = {
  readonly keyId: string
  readonly accountId: string
  readonly scopes: readonly Scope[]
  readonly ipAllow: readonly string[]
  readonly lastUsedAtMs: InstantMs | null
  readonly secrets: readonly { readonly sealedHex: string; readonly expiresAtMs: InstantMs | null }[]
}

/** Null for a revoked key too: to the caller it does not exist. */
async function readKey(db: Sql, keyId: string, nowMs: InstantMs): Promise<KeyRow | null> {
  const [row] = await db.query<KeyRow>(
    `SELECT key_id AS "keyId", account_id AS "accountId", scopes, ip_allow AS "ipAllow",
            last_used_at_ms AS "lastUsedAtMs",
            (SELECT coalesce(jsonb_agg(jsonb_build_object(
                      'sealedHex', encode(sealed, 'hex'), 'expiresAtMs', expires_at_ms)
                      ORDER BY expires_at_ms DESC NULLS FIRST), '[]')
             FROM api_key_secrets AS secret
             WHERE secret.key_id = api_keys.key_id AND (expires_at_ms IS NULL OR expires_at_ms > $2)) AS secrets
     FROM api_keys WHERE key_id = $1 AND revoked_at_ms IS NULL`,
    [keyId, nowMs],
  )
  return row ?? null
}

function openKey({ secrets: sealed, ...row }: KeyRow, box: SecretBox): ApiKey {
  const secrets: KeyObject[] = []
  let unopened: Error | undefined
  // The newest first: it is the one that most requests are signed with.
  for (const { sealedHex } of sealed) {
    try {
      const text = box.open(Buffer.from(sealedHex, 'hex'), row.keyId)
      secrets.push(createSecretKey(Buffer.from(text, 'utf8')))
    } catch (error) {
      // The other one is as good as ever: it may be what replaces the one that was sealed with a key that is lost.
      unopened = error as Error
    }
  }
  const { keyId, accountId, scopes, ipAllow } = row
  return Object.freeze({ keyId, accountId, scopes, ipAllow, secrets, ...(unopened && { unopened }) })
}

/** Several processes write it: the condition keeps it to one write a minute among them. */
async function writeLastUse(db: Sql, keyId: string, atMs: InstantMs): Promise<void> {
  await db.query(
    `UPDATE api_keys SET last_used_at_ms = $2
     WHERE key_id = $1 AND (last_used_at_ms IS NULL OR last_used_at_ms <= $2 - $3::bigint)`,
    [keyId, atMs, MINUTE_MS],
  )
}
