import { type AuditAct, appendAudit, type By } from '../db/audit_log.ts'
import type { Sql } from '../db/database.ts'
import { queueMail } from '../db/mails.ts'
import { findEarlier, type RetrySlot, SlotTaken, takeRetrySlot } from '../db/retry_slots.ts'
import { within } from '../db/within.ts'
import { assert } from '../domain/assert.ts'
import type { MailPreferences } from '../domain/notifications/preferences.ts'
import { accept, type Outcome, refuse } from '../domain/outcome.ts'
import { refuseManyChanges, refuseManyKeyActs, type TooOften } from './ask_limit.ts'
import { countLiveKeys, createKey, type NewKey, revokeKey, rotateKey, type ToldSecret } from './keys.ts'
import { arePreferencesSame, readPreferences, savePreferences } from './notifications.ts'
import type { OwnerPlace, Requester } from './owner_place.ts'
import type { SignedIn } from './sessions.ts'
import {
  type Changed,
  createEndpoint,
  deleteEndpoint,
  disableEndpoint,
  enableEndpoint,
  findEndpoint,
  listEndpoints,
  type WebhookEndpoint,
} from './webhook_endpoints.ts'
import { rotateWebhookSecret, type ToldWebhookSecret } from './webhook_secrets.ts'

/** The owner of an account, signed in. */
export type Owner = { readonly accountId: string; readonly email: string | null; readonly by: By }

export function ownerOf({ account, session }: SignedIn, { address }: Requester): Owner {
  const { accountId, email } = account
  return { accountId, email, by: { actor: 'owner', address, sessionId: session.sessionId } }
}

/** Whoever holds a key acts for its owner, and is written down as the key. */
export function ownerByKey(
  { keyId, accountId }: { readonly keyId: string; readonly accountId: string },
  address: string,
): Owner {
  return { accountId, email: null, by: { actor: 'key', address, sessionId: null, keyId } }
}

/** Enough for every program its own, and not for filling a table. */
const KEYS_MAX = 100

/**
 * What owners do to their keys and webhooks: each act with its row in the audit log, with a mail where somebody else
 * may have done it, and counted where there is a limit, all in one transaction.
 */
export async function makeKey(
  place: OwnerPlace,
  owner: Owner,
  wanted: Omit<NewKey, 'accountId'>,
): Promise<Outcome<ToldSecret>> {
  const { accountId, email, by } = owner
  return withinLimit(place, async (tx) => {
    // Whoever makes another one at this moment waits: else all of them would count the same.
    await tx.query('SELECT 1 AS one FROM accounts WHERE account_id = $1 FOR NO KEY UPDATE', [accountId])
    if ((await countLiveKeys(tx, accountId)) >= KEYS_MAX) {
      return refuse({
        code: 'too_many_keys',
        message: `an account has at most ${KEYS_MAX} live keys: revoke one first`,
      })
    }
    const told = await createKey(inside(place, tx), by, { ...wanted, accountId })
    if (!told.ok) return told
    undoTooMany(await refuseManyKeyActs(inside(place, tx), accountId))
    if (email === null) return told
    const { keyId } = told.value
    await queueMail(tx, {
      eventKey: `key_created:${keyId}`,
      orderId: null,
      accountId,
      to: email,
      nowMs: place.nowMs(),
      kind: 'key_created',
      data: { key_id: keyId, label: wanted.label, scopes: wanted.scopes, ...ipOf(by) },
    })
    return told
  })
}

export function replaceSecret(
  place: OwnerPlace,
  owner: Owner,
  keyId: string,
  options: Parameters<typeof rotateKey>[3],
): ReturnType<typeof rotateKey> {
  const { accountId, by } = owner
  return withinLimit(place, async (tx) => {
    const told = await rotateKey(inside(place, tx), by, { keyId, accountId }, options)
    if (told.ok) {
      undoTooMany(await refuseManyKeyActs(inside(place, tx), accountId))
      const details = [{ label: 'Key', value: keyId }]
      await notify(tx, place, owner, `key_rotated:${keyId}:${place.wallMs()}`, {
        what: 'An API key of your account got a new secret.',
        details,
      })
    }
    return told
  })
}

export function endKey(place: OwnerPlace, { accountId, by }: Owner, keyId: string): Promise<Outcome<null>> {
  return revokeKey(place, by, { keyId, accountId })
}

export function addEndpoint(place: OwnerPlace, owner: Owner, url: string): Promise<Outcome<WebhookEndpoint>> {
  return add(place, owner, url, null)
}

export type AddedEndpoint = { readonly endpoint: WebhookEndpoint; readonly isReplay: boolean }

/**
 * The same for a request that may arrive again: it acts once, and a repeat hears of the endpoint as it was made, whatever
 * became of it since. Refusals as of `createEndpoint`, and `IDEMPOTENCY_CONFLICT`.
 */
export async function addEndpointOnce(
  place: OwnerPlace,
  owner: Owner,
  url: string,
  retry: RetrySlot,
): Promise<Outcome<AddedEndpoint>> {
  const { accountId } = owner
  const earlier = await earlierOf(place, accountId, retry)
  if (earlier !== null) return earlier
  try {
    const made = await add(place, owner, url, retry)
    return made.ok ? accept({ endpoint: made.value, isReplay: false }) : made
  } catch (error) {
    if (!(error instanceof SlotTaken)) throw error
    const first = await earlierOf(place, accountId, retry)
    assert(first !== null, 'a slot is kept for longer than a request takes')
    return first
  }
}

async function add(
  place: OwnerPlace,
  owner: Owner,
  url: string,
  retry: RetrySlot | null,
): Promise<Outcome<WebhookEndpoint>> {
  const { accountId } = owner
  const fill = async (db: Sql, answer: WebhookEndpoint) => {
    if (retry === null) return
    await takeRetrySlot(db, accountId, retry, { orderId: '', answer }, place.wallMs())
  }
  // Whoever asks for what is there waits for nobody, and nobody for them.
  const known = (await listEndpoints(place, accountId)).find((endpoint) => endpoint.url === url)
  if (known?.disabledAtMs === null) {
    await fill(place.db, known)
    return accept(known)
  }
  const create = async (inner: OwnerPlace) => {
    const made = await createEndpoint(inner, accountId, url)
    if (made.ok) await fill(inner.db, made.value.value)
    return made
  }
  const subjectOf = ({ endpointId }: WebhookEndpoint) => endpointId
  return noted(place, owner, 'endpoint_created', create, { subjectOf, detail: { url }, isLimited: true })
}

/** What was answered the first time; null when there was none. */
async function earlierOf(
  { db }: OwnerPlace,
  accountId: string,
  retry: RetrySlot,
): Promise<Outcome<AddedEndpoint> | null> {
  const earlier = await findEarlier(db, accountId, retry)
  if (!earlier?.ok) return earlier
  return accept({ endpoint: earlier.value.answer as WebhookEndpoint, isReplay: true })
}

export async function switchEndpoint(
  place: OwnerPlace,
  owner: Owner,
  endpointId: string,
  isEnabled: boolean,
): Promise<Outcome<WebhookEndpoint>> {
  const { accountId } = owner
  const known = await findEndpoint(place, accountId, endpointId)
  const isSo = isEnabled ? known?.disabledAtMs === null : known?.disabledBy === 'owner'
  if (known !== null && isSo) return accept(known)
  const turn = isEnabled ? enableEndpoint : disableEndpoint
  return noted(place, owner, 'endpoint_changed', (inner) => turn(inner, accountId, endpointId), {
    subjectOf: () => endpointId,
    detail: { enabled: String(isEnabled) },
    isLimited: isEnabled,
  })
}

export function removeEndpoint(place: OwnerPlace, owner: Owner, endpointId: string): Promise<Outcome<null>> {
  const remove = async (inner: OwnerPlace) => {
    const removed = await deleteEndpoint(inner, owner.accountId, endpointId)
    return removed.ok ? accept({ value: null, isChanged: true }) : removed
  }
  return noted(place, owner, 'endpoint_deleted', remove, {
    subjectOf: () => endpointId,
    detail: {},
    isLimited: false,
  })
}

export function replaceWebhookSecret(
  place: OwnerPlace,
  { accountId, by }: Owner,
  options: { readonly overlapMs: number; readonly replacesNewest: boolean },
): Promise<Outcome<ToldWebhookSecret>> {
  return withinLimit(place, async (tx) => {
    const told = await rotateWebhookSecret(inside(place, tx), by, accountId, options)
    if (told.ok) undoTooMany(await refuseManyChanges(inside(place, tx), accountId, by))
    return told
  })
}

export async function choosePreferences(
  place: OwnerPlace,
  { accountId, by }: Owner,
  wanted: MailPreferences,
): Promise<Outcome<MailPreferences>> {
  if (arePreferencesSame(await readPreferences(place, accountId), wanted)) return accept(wanted)
  return withinLimit(place, async (tx) => {
    const chosen = await savePreferences(inside(place, tx), by, accountId, wanted)
    undoTooMany(await refuseManyChanges(inside(place, tx), accountId, by))
    return accept(chosen)
  })
}

/** Thrown where an act turns out to be one too many, so that its transaction ends without it. */
class TooMany extends Error {
  readonly flood: TooOften
  constructor(flood: TooOften) {
    super(flood.message)
    this.flood = flood
  }
}

function undoTooMany(flood: TooOften | null): void {
  if (flood !== null) throw new TooMany(flood)
}

/**
 * For an act that counts itself once it is done: what is refused for another reason uses nothing up, and of many at once those
 * that are done are as many as may be.
 */
async function withinLimit<Value>(
  { db }: OwnerPlace,
  work: (tx: Sql) => Promise<Outcome<Value>>,
): Promise<Outcome<Value>> {
  try {
    return await db.transaction(work)
  } catch (error) {
    if (error instanceof TooMany) return refuse(error.flood)
    throw error
  }
}

/** An act that was refused is none, and neither is one that changed nothing. */
function noted<Value>(
  place: OwnerPlace,
  { accountId, by }: Owner,
  act: AuditAct,
  work: (inner: OwnerPlace) => Promise<Outcome<Changed<Value>>>,
  told: {
    subjectOf(value: Value): string
    readonly detail: Readonly<Record<string, string>>
    readonly isLimited: boolean
  },
): Promise<Outcome<Value>> {
  return withinLimit(place, async (tx) => {
    const done = await work(inside(place, tx))
    if (!done.ok) return done
    const { value, isChanged } = done.value
    if (!isChanged) return accept(value)
    const entry = { chain: accountId, atMs: place.wallMs(), act, by, detail: told.detail }
    await appendAudit(tx, { ...entry, subject: told.subjectOf(value) })
    if (told.isLimited) undoTooMany(await refuseManyChanges(inside(place, tx), accountId, by))
    return accept(value)
  })
}

function inside(place: OwnerPlace, tx: Sql): OwnerPlace {
  return { ...place, db: within(tx) }
}

async function notify(
  tx: Sql,
  place: OwnerPlace,
  { accountId, email, by }: Owner,
  eventKey: string,
  data: { readonly what: string; readonly details: readonly { label: string; value: string }[] },
): Promise<void> {
  if (email === null) return
  const mail = { eventKey, orderId: null, accountId, to: email, nowMs: place.nowMs() }
  await queueMail(tx, { ...mail, kind: 'security_notice', data: { ...data, ...ipOf(by) } })
}

function ipOf({ address }: By) {
  return address === null ? {} : { ip: address }
}
