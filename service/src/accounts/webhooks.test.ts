import { createSecretKey, randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Postgres, removePostgres } from '@cambist/devnet'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startMigratedPostgres } from '../../test/harness/migrated_postgres.ts'
import { openTestDatabase } from '../../test/harness/test_database.ts'
import { systemClock } from '../clock.ts'
import { operator } from '../db/audit_log.ts'
import type { Database } from '../db/database.ts'
import type { OrderEvent } from '../db/events.ts'
import { findLoggedEndpoints } from '../db/webhook_receivers.ts'
import type { Outcome } from '../domain/outcome.ts'
import { relayToWebhooks } from '../engine/notify/relay_webhooks.ts'
import { createAccount } from './accounts.ts'
import { ASK_WINDOW_MS } from './ask_limit.ts'
import { createKey, revokeKey } from './keys.ts'
import {
  addEndpoint,
  addEndpointOnce,
  choosePreferences,
  makeKey,
  ownerByKey,
  removeEndpoint,
  replaceSecret,
  replaceWebhookSecret,
  switchEndpoint,
} from './owner_acts.ts'
import type { OwnerPlace } from './owner_place.ts'
import { createSecretBox } from './secret_box.ts'
import { findUnopenable } from './unopenable_secrets.ts'
import {
  createEndpoint,
  deleteEndpoint,
  disableEndpoint,
  enableEndpoint,
  listEndpoints,
} from './webhook_endpoints.ts'
import {
  ensureWebhookSecret,
  listWebhookSecrets,
  openWebhookSecrets,
  rotateWebhookSecret,
} from './webhook_secrets.ts'

/**
 * What: an account's webhook secrets and endpoints are made, rotated, listed and ended.
 * How: a real PostgreSQL with the service's own migrations; only the clock is ours.
 */
const folder = mkdtempSync(join(tmpdir(), 'cambist-webhooks-'))
const dataDir = join(folder, 'postgres')
let server: Postgres
let db: Database
let place: OwnerPlace & { onUnopened(accountId: string, error: unknown): void }
const unopened: string[] = []
let now = 1_700_000_000_000

beforeAll(async () => {
  server = await startMigratedPostgres(dataDir)
  db = openTestDatabase(server.url, 'webhooks.test')
  const box = createSecretBox([createSecretKey(randomBytes(32))])
  const nowMs = () => now
  place = {
    db,
    box,
    wallMs: nowMs,
    nowMs,
    baseUrl: () => '',
    loopbackAllowed: false,
    changeLimits: { keys: 20, settings: 60 },
    onUnopened: (accountId, error) => void unopened.push(`${accountId} ${error}`),
  }
})

afterAll(async () => {
  await db?.close()
  await server?.stop()
  removePostgres(dataDir)
  rmSync(folder, { recursive: true, force: true })
})

async function actsOf(account: string): Promise<readonly string[]> {
  const rows = await db.query<{ act: string }>(
    'SELECT act FROM audit_log WHERE chain = $1 ORDER BY sequence',
    [account],
  )
  return rows.map(({ act }) => act)
}

async function makeAccount(): Promise<string> {
  return accepted(await createAccount(place, operator, { name: 'My shop', email: null })).accountId
}

function accepted<Value>(outcome: Outcome<Value>): Value {
  if (!outcome.ok) throw new Error(outcome.rejection.message)
  return outcome.value
}

const codeOf = (outcome: Outcome<unknown>) => (outcome.ok ? 'accepted' : outcome.rejection.code)

test('an account that never made a secret signs with one all the same, and always with that one', async () => {
  const account = await makeAccount()
  const made = await Promise.all([1, 2, 3, 4].map(() => openWebhookSecrets(place, account)))
  expect(made[0]).toEqual([expect.stringMatching(/^whsec_[A-Za-z0-9+/]{32}$/)])
  expect(new Set(made.flat()).size).toBe(1)
  expect(await openWebhookSecrets(place, account)).toEqual(made[0])
})

test('while rotating, two secrets sign; after the overlap only the new one does', async () => {
  const account = await makeAccount()
  const first = accepted(await rotateWebhookSecret(place, operator, account))
  expect(first.oldSecretUntilMs).toBeNull()
  const second = accepted(await rotateWebhookSecret(place, operator, account, { overlapMs: 60_000 }))
  expect(second.oldSecretUntilMs).toBe(now + 60_000)
  expect(await openWebhookSecrets(place, account)).toEqual([second.secret, first.secret])
  expect(await listWebhookSecrets(place, account)).toEqual([
    { createdAtMs: now, expiresAtMs: null },
    { createdAtMs: now, expiresAtMs: now + 60_000 },
  ])
  for (const options of [{}, { overlapMs: 0 }])
    expect(codeOf(await rotateWebhookSecret(place, operator, account, options))).toBe('rotation_under_way')
  const third = accepted(await rotateWebhookSecret(place, operator, account, { replacesNewest: true }))
  expect(third.oldSecretUntilMs).toBe(second.oldSecretUntilMs)
  expect(await openWebhookSecrets(place, account)).toEqual([third.secret, first.secret])
  now += 60_000
  expect(await openWebhookSecrets(place, account)).toEqual([third.secret])
  const fourth = accepted(await rotateWebhookSecret(place, operator, account, { overlapMs: 0 }))
  expect(await openWebhookSecrets(place, account)).toEqual([fourth.secret])
})

test('of rotations at the same moment one wins, and nonsense is refused', async () => {
  const account = await makeAccount()
  await rotateWebhookSecret(place, operator, account)
  const outcomes = await Promise.all([1, 2, 3, 4].map(() => rotateWebhookSecret(place, operator, account)))
  expect(outcomes.filter(({ ok }) => ok)).toHaveLength(1)
  expect(codeOf(await rotateWebhookSecret(place, operator, account, { overlapMs: 8 * 24 * 3_600_000 }))).toBe(
    'overlap_too_long',
  )
  expect(codeOf(await rotateWebhookSecret(place, operator, 'acc_0000000000000000'))).toBe('account_not_found')
})

test('the database does not hold a secret in the clear, and a row moved to another account does not open', async () => {
  const [mine, other] = [await makeAccount(), await makeAccount()]
  const { secret } = accepted(await rotateWebhookSecret(place, operator, mine))
  const [row] = await db.query<{ sealed: Buffer }>(
    'SELECT sealed FROM webhook_secrets WHERE account_id = $1',
    [mine],
  )
  expect(row?.sealed.includes(secret.slice('whsec_'.length))).toBe(false)
  await openWebhookSecrets(place, other)
  await db.query('UPDATE webhook_secrets SET sealed = $2 WHERE account_id = $1', [other, row?.sealed])
  expect(await openWebhookSecrets(place, other)).toEqual([])
  expect(unopened.splice(0)).toEqual([expect.stringContaining(other)])
})

test('what was sealed with a key that is not configured any more is left out, told of, and counted at the start', async () => {
  const [oldKey, newKey] = [createSecretKey(randomBytes(32)), createSecretKey(randomBytes(32))]
  const before = { ...place, box: createSecretBox([oldKey]) }
  const after = { ...place, box: createSecretBox([newKey]) }
  const [one, other] = [await makeAccount(), await makeAccount()]
  for (const account of [one, other]) accepted(await rotateWebhookSecret(before, operator, account))
  const fresh = accepted(await rotateWebhookSecret(after, operator, one, { overlapMs: 60_000 }))
  const key = { accountId: one, label: '', scopes: ['read'], ipAllow: [] }
  const { keyId } = accepted(await createKey(before, operator, key))

  expect(await openWebhookSecrets(after, one)).toEqual([fresh.secret])
  expect(await openWebhookSecrets(after, other)).toEqual([])
  const notOpened = expect.stringMatching(/was sealed with account key [0-9a-f]{16}, which is not configured/)
  expect(unopened.splice(0)).toEqual([notOpened, notOpened])

  const both = { ...place, box: createSecretBox([newKey, oldKey]) }
  const lost = async (box: typeof both.box) => {
    const known = new Set((await findUnopenable(both)).map((each) => each.accountKey))
    return (await findUnopenable({ ...place, box })).filter(({ accountKey }) => !known.has(accountKey))
  }
  const accountKey = expect.stringMatching(/^[0-9a-f]{16}$/)
  expect(await lost(after.box)).toEqual([{ accountKey, apiSecrets: 1, webhookSecrets: 2 }])
  expect(await lost(before.box)).toEqual([{ accountKey, apiSecrets: 0, webhookSecrets: 1 }])
  expect(await lost(both.box)).toEqual([])
  accepted(await revokeKey(before, operator, { keyId, accountId: null }))
  now += 60_000
  expect(await lost(after.box), 'of those that live').toEqual([
    { accountKey, apiSecrets: 0, webhookSecrets: 1 },
  ])
})

test('the sandbox has the secret that it names, whatever was there before', async () => {
  const account = await makeAccount()
  await rotateWebhookSecret(place, operator, account)
  await rotateWebhookSecret(place, operator, account)
  const secret = `whsec_${randomBytes(24).toString('base64')}`
  await ensureWebhookSecret(place, account, secret)
  expect(await openWebhookSecrets(place, account)).toEqual([secret])
})

test('endpoints are made once for a URL, disabled, enabled and deleted', async () => {
  const account = await makeAccount()
  const url = 'https://shop.example/hooks'
  const changed = <Value>(value: Value) => ({ value, isChanged: true })
  const asItWas = <Value>(value: Value) => ({ value, isChanged: false })
  const { value: made } = accepted(await createEndpoint(place, account, url))
  expect(made).toEqual({
    endpointId: expect.stringMatching(/^we_[0-9a-f]{16}$/),
    url,
    createdAtMs: now,
    disabledAtMs: null,
    disabledBy: null,
  })
  now += 1_000
  const disabled = { ...made, disabledAtMs: now, disabledBy: 'owner' }
  expect(accepted(await disableEndpoint(place, account, made.endpointId))).toEqual(changed(disabled))
  now += 1_000
  expect(accepted(await disableEndpoint(place, account, made.endpointId))).toEqual(asItWas(disabled))
  expect(accepted(await enableEndpoint(place, account, made.endpointId))).toEqual(changed(made))
  expect(accepted(await enableEndpoint(place, account, made.endpointId))).toEqual(asItWas(made))
  await disableEndpoint(place, account, made.endpointId)
  expect(accepted(await createEndpoint(place, account, url))).toEqual(changed(made))
  expect(accepted(await createEndpoint(place, account, url))).toEqual(asItWas(made))
  expect(await listEndpoints(place, account)).toEqual([made])
  expect(codeOf(await deleteEndpoint(place, account, made.endpointId))).toBe('accepted')
  expect(await listEndpoints(place, account)).toEqual([])
})

test('an endpoint that answered 410 is its owner’s to disable, and nothing is written down for it from then on', async () => {
  const account = await makeAccount()
  const owner = { accountId: account, email: null, by: operator }
  const { endpointId } = accepted(await addEndpoint(place, owner, 'https://shop.example/gone'))
  await db.query(
    `UPDATE webhook_endpoints SET disabled_at_ms = 1, disabled_by = 'receiver' WHERE endpoint_id = $1`,
    [endpointId],
  )
  expect(await findLoggedEndpoints(db, [account])).toHaveLength(1)
  for (let index = 0; index < 2; index += 1) {
    const disabled = accepted(await switchEndpoint(place, owner, endpointId, false))
    expect(disabled).toMatchObject({ disabledAtMs: 1, disabledBy: 'owner' })
  }
  expect(await actsOf(account)).toEqual(['account_created', 'endpoint_created', 'endpoint_changed'])
  expect(await findLoggedEndpoints(db, [account])).toEqual([])
  const event = {
    accountId: account,
    callbackUrl: null,
    orderId: 'CB0000000000000101',
    sequence: 1,
  } as OrderEvent
  await db.transaction((tx) => relayToWebhooks(systemClock())(tx, [event]))
  expect(await db.query('SELECT 1 FROM webhook_lines WHERE account_id = $1', [account])).toEqual([])
  expect(accepted(await switchEndpoint(place, owner, endpointId, true)).disabledBy).toBeNull()
})

test('the request that made an endpoint makes none when it arrives once more, also after the endpoint was deleted', async () => {
  const account = await makeAccount()
  const owner = ownerByKey({ keyId: 'ck_shop', accountId: account }, '127.0.0.1')
  const url = 'https://shop.example/late'
  const add = (bodyHash: string, slot = 'sign:one') => addEndpointOnce(place, owner, url, { slot, bodyHash })
  const made = accepted(await add('same'))
  expect(made.isReplay).toBe(false)
  await removeEndpoint(place, owner, made.endpoint.endpointId)
  expect(accepted(await add('same'))).toEqual({ endpoint: made.endpoint, isReplay: true })
  expect(codeOf(await add('other'))).toBe('IDEMPOTENCY_CONFLICT')
  expect(await listEndpoints(place, account)).toEqual([])
  expect(await actsOf(account)).toEqual(['account_created', 'endpoint_created', 'endpoint_deleted'])
  expect(accepted(await add('same', 'sign:two')).isReplay).toBe(false)
  expect(await listEndpoints(place, account)).toHaveLength(1)
})

test('the same request many times at once makes one endpoint, and another one under its key is refused', async () => {
  const account = await makeAccount()
  const owner = ownerByKey({ keyId: 'ck_shop', accountId: account }, '127.0.0.1')
  const add = (path: string) =>
    addEndpointOnce(place, owner, `https://shop.example/${path}`, { slot: 'key:one', bodyHash: path })
  const told = (await Promise.all(['a', 'a', 'a', 'b', 'b'].map(add))).map((outcome) =>
    outcome.ok ? outcome.value.isReplay : outcome.rejection.code,
  )
  expect(told.filter((each) => each === false)).toHaveLength(1)
  expect(new Set(told)).toEqual(new Set([false, true, 'IDEMPOTENCY_CONFLICT']))
  expect(await listEndpoints(place, account)).toHaveLength(1)
  expect(await actsOf(account)).toEqual(['account_created', 'endpoint_created'])
})

test('a refusal fills no slot: the request is judged afresh', async () => {
  const account = await makeAccount()
  const owner = ownerByKey({ keyId: 'ck_shop', accountId: account }, '127.0.0.1')
  for (let index = 0; index < 10; index += 1)
    await createEndpoint(place, account, `https://shop.example/${index}`)
  const add = () =>
    addEndpointOnce(place, owner, 'https://shop.example/10', { slot: 'key:one', bodyHash: 'same' })
  expect(codeOf(await add())).toBe('too_many_endpoints')
  const [first] = await listEndpoints(place, account)
  await deleteEndpoint(place, account, first?.endpointId ?? '')
  expect(accepted(await add()).isReplay).toBe(false)
})

test('an endpoint is nobody else’s', async () => {
  const [mine, other] = [await makeAccount(), await makeAccount()]
  const { endpointId } = accepted(await createEndpoint(place, mine, 'https://shop.example/')).value
  for (const state of ['enabled', 'disabled']) {
    if (state === 'disabled') accepted(await disableEndpoint(place, mine, endpointId))
    const before = await listEndpoints(place, mine)
    const codes = await Promise.all(
      [disableEndpoint, enableEndpoint, deleteEndpoint].map((act) => act(place, other, endpointId)),
    )
    expect(codes.map(codeOf), state).toEqual(new Array(3).fill('endpoint_not_found'))
    expect(await listEndpoints(place, mine), state).toEqual(before)
  }
})

test('URLs that nobody may be sent to are refused, as callback_url is, and there are at most ten', async () => {
  const account = await makeAccount()
  const create = (url: string, loopbackAllowed = false) =>
    createEndpoint({ ...place, loopbackAllowed }, account, url)
  for (const url of [
    'http://shop.example/',
    'http://127.0.0.1:9000/',
    'https://127.0.0.1/',
    'https://u@shop.example/',
    'https:x',
  ]) {
    expect(codeOf(await create(url)), url).toBe('url_malformed')
  }
  expect(codeOf(await create('http://127.0.0.1:9000/', true))).toBe('accepted')
  expect(codeOf(await create('https://[::1]/', true))).toBe('url_malformed')
  for (let index = 1; index < 10; index += 1) await create(`https://shop.example/${index}`)
  expect(codeOf(await create('https://shop.example/10'))).toBe('too_many_endpoints')
  expect(codeOf(await create('https://shop.example/9'))).toBe('accepted')
  // Also one of the ten that is disabled.
  for (const { endpointId } of await listEndpoints(place, account))
    await disableEndpoint(place, account, endpointId)
  expect(codeOf(await create('https://shop.example/9'))).toBe('accepted')
  expect(codeOf(await createEndpoint(place, 'acc_0000000000000000', 'https://shop.example/'))).toBe(
    'account_not_found',
  )
})

test('what changes nothing is no act, however often it is asked for', async () => {
  const account = await makeAccount()
  const owner = { accountId: account, email: null, by: operator }
  const byKey = ownerByKey({ keyId: 'ck_shop', accountId: account }, '127.0.0.1')
  const url = 'https://shop.example/hooks'
  const made = accepted(await addEndpoint(place, owner, url))
  for (let index = 0; index < 100; index += 1) {
    expect(accepted(await addEndpoint(place, owner, url))).toEqual(made)
    const retry = { slot: `key:${index}`, bodyHash: 'same' }
    expect(accepted(await addEndpointOnce(place, byKey, url, retry))).toEqual({
      endpoint: made,
      isReplay: false,
    })
    expect(accepted(await addEndpointOnce(place, byKey, url, retry)).isReplay).toBe(true)
    expect(accepted(await switchEndpoint(place, owner, made.endpointId, true))).toEqual(made)
    expect(codeOf(await choosePreferences(place, owner, { emails: 'all', muted: [] }))).toBe('accepted')
  }
  const off = { emails: 'off', muted: [] } as const
  for (let index = 0; index < 100; index += 1) {
    expect(accepted(await choosePreferences(place, owner, off))).toEqual(off)
    const { disabledBy } = accepted(await switchEndpoint(place, owner, made.endpointId, false))
    expect(disabledBy).toBe('owner')
  }
  expect(await actsOf(account)).toEqual([
    'account_created',
    'endpoint_created',
    'notifications_changed',
    'endpoint_changed',
  ])
})

test('a URL that is there already is answered while somebody else holds the account', async () => {
  const account = await makeAccount()
  const owner = { accountId: account, email: null, by: operator }
  const url = 'https://shop.example/hooks'
  const made = accepted(await addEndpoint(place, owner, url))
  await db.transaction(async (tx) => {
    await tx.query('SELECT 1 AS one FROM accounts WHERE account_id = $1 FOR UPDATE', [account])
    expect(accepted(await addEndpoint(place, owner, url))).toEqual(made)
  })
})

test('the same new URL many times at once is one act', async () => {
  const account = await makeAccount()
  const owner = { accountId: account, email: null, by: operator }
  const url = 'https://shop.example/hooks'
  const made = await Promise.all([1, 2, 3, 4].map(() => addEndpoint(place, owner, url)))
  expect(new Set(made.map((each) => accepted(each).endpointId)).size).toBe(1)
  expect(await actsOf(account)).toEqual(['account_created', 'endpoint_created'])
})

test('settings are changed 60 times within a quarter of an hour, keys counted apart, and ending is never refused', async () => {
  now += ASK_WINDOW_MS - (now % ASK_WINDOW_MS)
  const account = await makeAccount()
  const owner = { accountId: account, email: null, by: operator }
  const byKey = ownerByKey({ keyId: 'ck_shop', accountId: account }, '127.0.0.1')
  const url = 'https://shop.example/hooks'
  const outcomes: string[] = []
  let { endpointId } = accepted(await addEndpoint(place, byKey, url))
  for (let index = 0; index < 59; index += 1) {
    accepted(await removeEndpoint(place, byKey, endpointId))
    endpointId = accepted(await addEndpoint(place, byKey, url)).endpointId
  }
  accepted(await switchEndpoint(place, byKey, endpointId, false))
  const refused = await switchEndpoint(place, byKey, endpointId, true)
  expect(refused).toMatchObject({
    rejection: { code: 'asked_too_often', retryAfterSeconds: expect.any(Number) },
  })
  expect(codeOf(await addEndpoint(place, byKey, `${url}/other`))).toBe('asked_too_often')
  accepted(await removeEndpoint(place, byKey, endpointId))
  const lost = { overlapMs: 60_000, replacesNewest: true }
  const choose = (index: number) =>
    choosePreferences(place, owner, { emails: index % 2 === 0 ? 'off' : 'all', muted: [] })
  for (let index = 0; index < 31; index += 1) {
    outcomes.push(codeOf(await choose(index)), codeOf(await replaceWebhookSecret(place, owner, lost)))
  }
  expect(outcomes).toEqual([...new Array(60).fill('accepted'), 'asked_too_often', 'asked_too_often'])
  expect(await actsOf(account)).toHaveLength(1 + 60 + 60 + 1 + 60)
  now += ASK_WINDOW_MS
  expect(codeOf(await addEndpoint(place, byKey, url))).toBe('accepted')
})

test('what is refused uses up none of the changes that an account may make', async () => {
  const account = await makeAccount()
  const byKey = ownerByKey({ keyId: 'ck_shop', accountId: account }, '127.0.0.1')
  const urlOf = (index: number) => `https://shop.example/hooks/${index}`
  const made = await Promise.all(
    Array.from({ length: 10 }, (_, index) => addEndpoint(place, byKey, urlOf(index))),
  )
  const rotate = () => replaceWebhookSecret(place, byKey, { overlapMs: 60_000, replacesNewest: false })
  accepted(await rotate())
  accepted(await rotate())
  for (let index = 0; index < 61; index += 1) {
    expect(codeOf(await addEndpoint(place, byKey, urlOf(10)))).toBe('too_many_endpoints')
    const retry = { slot: `key:eleventh ${index}`, bodyHash: 'same' }
    expect(codeOf(await addEndpointOnce(place, byKey, urlOf(10), retry))).toBe('too_many_endpoints')
    expect(codeOf(await addEndpoint(place, byKey, 'ftp://shop.example/'))).toBe('url_malformed')
    expect(codeOf(await switchEndpoint(place, byKey, 'we_nobody0000', true))).toBe('endpoint_not_found')
    expect(codeOf(await rotate())).toBe('rotation_under_way')
  }
  const [first] = made
  if (first === undefined) throw new Error('there are ten')
  accepted(await removeEndpoint(place, byKey, accepted(first).endpointId))
  expect(codeOf(await addEndpoint(place, byKey, urlOf(10)))).toBe('accepted')
})

test('keys that are refused, and new secrets of keys, use up none of those that an account may make', async () => {
  const account = await makeAccount()
  const owner = { accountId: account, email: null, by: operator }
  const wanted = { label: '', scopes: ['read'], ipAllow: [] }
  const { keyId } = accepted(await makeKey(place, owner, wanted))
  const lost = { overlapMs: 60_000, replacesNewest: false }
  accepted(await replaceSecret(place, owner, keyId, lost))
  for (let index = 0; index < 21; index += 1) {
    expect(codeOf(await makeKey(place, owner, { ...wanted, ipAllow: ['not an address'] }))).toMatch(
      /malformed/,
    )
    expect(codeOf(await replaceSecret(place, owner, keyId, lost))).toBe('rotation_under_way')
    expect(codeOf(await replaceSecret(place, owner, 'ck_nobodys', lost))).toBe('key_not_found')
  }
  expect(codeOf(await makeKey(place, owner, wanted))).toBe('accepted')
  expect(codeOf(await replaceSecret(place, owner, keyId, { ...lost, replacesNewest: true }))).toBe('accepted')
})

test('of acts at once as many are done as may be, and of what is one too many nothing stays', async () => {
  now += ASK_WINDOW_MS - (now % ASK_WINDOW_MS)
  const account = await makeAccount()
  const owner = { accountId: account, email: 'owner@example.com', by: operator }
  const wanted = { label: '', scopes: ['read'], ipAllow: [] }
  const { keyId } = accepted(await makeKey(place, owner, wanted))
  const lost = { overlapMs: 60_000, replacesNewest: true }
  const both = () => [makeKey(place, owner, wanted), replaceSecret(place, owner, keyId, lost)]
  const outcomes = (await Promise.all(Array.from({ length: 15 }, both).flat())).map(codeOf)
  const done = new Array(19).fill('accepted')
  expect(outcomes.toSorted()).toEqual([...done, ...new Array(11).fill('asked_too_often')])
  expect(await actsOf(account)).toHaveLength(1 + 20)
  const made = outcomes.filter((code, index) => code === 'accepted' && index % 2 === 0).length
  expect(await db.query('SELECT 1 AS one FROM api_keys WHERE account_id = $1', [account])).toHaveLength(
    1 + made,
  )
  expect(
    await db.query(`SELECT 1 AS one FROM mails WHERE account_id = $1 AND kind = 'key_created'`, [account]),
  ).toHaveLength(1 + made)
  const urls = Array.from({ length: 10 }, (_, index) => `https://shop.example/${index}`)
  const limit = { ...place, changeLimits: { keys: 20, settings: 7 } }
  const added = (await Promise.all(urls.map((url) => addEndpoint(limit, owner, url)))).map(codeOf)
  expect(added.filter((code) => code === 'accepted')).toHaveLength(7)
  expect(await listEndpoints(place, account)).toHaveLength(7)
})
