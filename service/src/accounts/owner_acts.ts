import { type AuditAct, appendAudit, type By } from '../db/audit_log.ts'
import type { Sql } from '../db/database.ts'
import { queueMail } from '../db/mails.ts'
import { findEarlier, type RetrySlot, SlotTaken, takeRetrySlot } from '../db/retry_slots.ts'
import { within } from '../db/within.ts'
import { assert } from '../domain/assert.ts'
import type { MailPreferences } from '../domain/notifications/preferences.ts'
import { accept, type Outcome, refuse } from '../domain/outcome.ts'
import { refuseManyChanges, refuseManyKeyActs } from './ask_limit.ts'
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
 * What owners do to their keys and webhooks: each act with its row in the audit log, and with a mail where somebody else
 * may have done it, all in one transaction.
 */
export async function makeKey(
  place: OwnerPlace,
  owner: Owner,
  wanted: Omit<NewKey, 'accountId'>,
): Promise<Outcome<ToldSecret>> {
  const { accountId, email, by } = owner
  const flood = await refuseManyKeyActs(place, accountId)
  if (flood !== null) return refuse(flood)
  return place.db.transaction(async (tx) => {
    // Whoever makes another one at this moment waits: else all of them would count the same.
    await tx.query('SELECT 1 AS one FROM accounts WHERE account_id = $1 FOR NO KEY UPDATE', [accountId])
    if ((await countLiveKeys(tx, accountId)) >= KEYS_MAX) {
      return refuse({
        code: 'too_many_keys',
        message: `an account has at most ${KEYS_MAX} live keys: revoke one first`,
      })
    }
    const told = await createKey(inside(place, tx), by, { ...wanted, accountId })
    if (!told.ok || email === null) return told
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

export async function replaceSecret(
  place: OwnerPlace,
  owner: Owner,
  keyId: string,
  options: Parameters<typeof rotateKey>[3],
): ReturnType<typeof rotateKey> {
  const { accountId, by } = owner
  const flood = await refuseManyKeyActs(place, accountId)
  if (flood !== null) return refuse(flood)
  return place.db.transaction(async (tx) => {
    const told = await rotateKey(inside(place, tx), by, { keyId, accountId }, options)
    if (told.ok) {
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
  const { accountId, by } = owner
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
  const flood = await refuseManyChanges(place, accountId, by)
  if (flood !== null) return refuse(flood)
  const create = async (inner: OwnerPlace) => {
    const made = await createEndpoint(inner, accountId, url)
    if (made.ok) await fill(inner.db, made.value.value)
    return made
  }
  const subjectOf = ({ endpointId }: WebhookEndpoint) => endpointId
  return noted(place, owner, 'endpoint_created', create, { subjectOf, detail: { url } })
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
  const { accountId, by } = owner
  const known = await findEndpoint(place, accountId, endpointId)
  const isSo = isEnabled ? known?.disabledAtMs === null : known?.disabledBy === 'owner'
  if (known !== null && isSo) return accept(known)
  const flood = known !== null && isEnabled ? await refuseManyChanges(place, accountId, by) : null
  if (flood !== null) return refuse(flood)
  const turn = isEnabled ? enableEndpoint : disableEndpoint
  return noted(place, owner, 'endpoint_changed', (inner) => turn(inner, accountId, endpointId), {
    subjectOf: () => endpointId,
    detail: { enabled: String(isEnabled) },
  })
}

export function removeEndpoint(place: OwnerPlace, owner: Owner, endpointId: string): Promise<Outcome<null>> {
  const remove = async (inner: OwnerPlace) => {
    const removed = await deleteEndpoint(inner, owner.accountId, endpointId)
    return removed.ok ? accept({ value: null, isChanged: true }) : removed
  }
  return noted(place, owner, 'endpoint_deleted', remove, { subjectOf: () => endpointId, detail: {} })
}

export async function replaceWebhookSecret(
  place: OwnerPlace,
  { accountId, by }: Owner,
  options: { readonly overlapMs: number; readonly replacesNewest: boolean },
): Promise<Outcome<ToldWebhookSecret>> {
  const flood = await refuseManyChanges(place, accountId, by)
  return flood === null ? rotateWebhookSecret(place, by, accountId, options) : refuse(flood)
}

export async function choosePreferences(
  place: OwnerPlace,
  { accountId, by }: Owner,
  wanted: MailPreferences,
): Promise<Outcome<MailPreferences>> {
  if (arePreferencesSame(await readPreferences(place, accountId), wanted)) return accept(wanted)
  const flood = await refuseManyChanges(place, accountId, by)
  return flood === null ? accept(await savePreferences(place, by, accountId, wanted)) : refuse(flood)
}

/** An act that was refused is none, and neither is one that changed nothing. */
function noted<Value>(
  place: OwnerPlace,
  { accountId, by }: Owner,
  act: AuditAct,
  work: (inner: OwnerPlace) => Promise<Outcome<Changed<Value>>>,
  told: { subjectOf(value: Value): string; readonly detail: Readonly<Record<string, string>> },
): Promise<Outcome<Value>> {
  return place.db.transaction(async (tx) => {
    const done = await work(inside(place, tx))
    if (!done.ok) return done
    const { value, isChanged } = done.value
    const entry = { chain: accountId, atMs: place.wallMs(), act, by, detail: told.detail }
    if (isChanged) await appendAudit(tx, { ...entry, subject: told.subjectOf(value) })
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
