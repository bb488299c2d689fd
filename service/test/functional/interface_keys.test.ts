import { beforeAll, expect, test, vi } from 'vitest'
import { listKeys, revokeKey, rotateKey, type ToldSecret } from '../../src/accounts/keys.ts'
import { operator } from '../../src/db/audit_log.ts'
import { createOrder, quickPair } from '../harness/orders.ts'
import { stopWallClock } from '../harness/stopped_clock.ts'
import { useTestSandbox } from '../harness/test_sandbox.ts'
import { keysPlaceOf, makeKey, openWire, type Wire } from '../harness/wire.ts'

/**
 * What: API keys as an operator keeps them: scopes, IP lists, rotation with two secrets alive, revocation.
 * How: keys are made and changed in the running service's database, as `cambist keys` does; the service learns of it
 * by itself. Where it is about when, the clock stands still between two requests.
 */
const given = useTestSandbox()
let wire: Wire

beforeAll(async () => {
  wire = await openWire(given())
})

const TARGET = '/v1/order/CB0000000000000000'
/** What changes holds everywhere after so long. */
const KNOWN_WITHIN_MS = 2_000

/** 404: the key is good, there is only no such order. */
async function answerTo(as: ToldSecret): Promise<string> {
  const { status, json } = await wire.signed('GET', TARGET, undefined, { as })
  return `${status} ${json.error_code}`
}
const GOOD = '404 ORDER_NOT_FOUND'
const BAD = '401 INVALID_SIGNATURE'

test('a key with the scope read reads its account’s orders and may not trade; one with trade the other way', async () => {
  const place = keysPlaceOf(given())
  const owner = await makeKey(given())
  const accountId = (await listKeys(place, null)).find(({ keyId }) => keyId === owner.keyId)?.accountId ?? ''
  const reader = await makeKey(given(), { accountId, scopes: ['read'] })
  const trader = await makeKey(given(), { accountId, scopes: ['trade'] })
  const destination = await given().remote.freshAddress('BEP20')
  const wanted = { ...quickPair, amount: '99', rate_type: 'float', destination } as const
  const order = await wire.clientOf(trader).createOrder(wanted)
  given().addSecret(order.token)
  expect((await wire.clientOf(reader).getOrder(order.order_id)).order_id).toBe(order.order_id)
  await expect(wire.clientOf(reader).createOrder(wanted)).rejects.toMatchObject({
    code: 'FORBIDDEN',
    status: 403,
  })
  await expect(wire.clientOf(trader).getOrder(order.order_id)).rejects.toMatchObject({ code: 'FORBIDDEN' })
  await expect(
    wire.clientOf(reader).chooseEmergencyAction(order.order_id, { action: 'continue' }),
  ).rejects.toMatchObject({ code: 'FORBIDDEN' })
  await expect(
    wire.clientOf(trader).chooseEmergencyAction(order.order_id, { action: 'continue' }),
  ).rejects.toMatchObject({ code: 'NOT_EMERGENCY' })
})

test('an IP list lets in who is on it, as address or range, and nobody else', async () => {
  for (const ipAllow of [['127.0.0.1'], ['127.0.0.0/8'], ['203.0.113.9', '127.0.0.1']]) {
    expect([ipAllow, await answerTo(await makeKey(given(), { ipAllow }))]).toEqual([ipAllow, GOOD])
  }
  for (const ipAllow of [['203.0.113.9'], ['10.0.0.0/8'], ['::1']]) {
    expect([ipAllow, await answerTo(await makeKey(given(), { ipAllow }))]).toEqual([ipAllow, '403 FORBIDDEN'])
  }
})

test('while a secret is rotated both live; the old one ends at its time, the new one goes on', async () => {
  const place = keysPlaceOf(given())
  const old = await makeKey(given())
  const rotatedAtMs = stopWallClock()
  expect(await answerTo(old)).toBe(GOOD)
  const rotated = await rotateKey(
    place,
    operator,
    { keyId: old.keyId, accountId: null },
    { overlapMs: 3_000, replacesNewest: false },
  )
  if (!rotated.ok) throw new Error(rotated.rejection.message)
  const fresh = rotated.value
  given().addSecret(fresh.secret)
  expect(fresh.oldSecretUntilMs).toBe(rotatedAtMs + 3_000)
  vi.setSystemTime(rotatedAtMs + KNOWN_WITHIN_MS)
  expect(await answerTo(fresh)).toBe(GOOD)
  expect(await answerTo(old)).toBe(GOOD)
  const again = await rotateKey(
    place,
    operator,
    { keyId: old.keyId, accountId: null },
    { overlapMs: 0, replacesNewest: false },
  )
  expect(again).toMatchObject({ ok: false, rejection: { code: 'rotation_under_way' } })
  vi.setSystemTime(fresh.oldSecretUntilMs - 1)
  expect(await answerTo(old)).toBe(GOOD)
  vi.setSystemTime(fresh.oldSecretUntilMs)
  expect(await answerTo(old)).toBe(BAD)
  expect(await answerTo(fresh)).toBe(GOOD)
})

test('a revoked key ends within two seconds although it was in use, and does not come back', async () => {
  const place = keysPlaceOf(given())
  const key = await makeKey(given())
  const order = await createOrder(given(), quickPair)
  const revokedAtMs = stopWallClock()
  expect(await answerTo(key)).toBe(GOOD)
  const revoked = await revokeKey(place, operator, { keyId: key.keyId, accountId: null })
  expect(revoked.ok).toBe(true)
  vi.setSystemTime(revokedAtMs + KNOWN_WITHIN_MS)
  expect(await answerTo(key)).toBe(BAD)
  expect(await answerTo(key)).toBe(BAD)
  // The others are not concerned.
  expect((await wire.client.getOrder(order.order_id)).order_id).toBe(order.order_id)
})

test('a key that was unknown a moment ago works within two seconds of being made', async () => {
  const key = { keyId: 'ck_00112233445566778899', secret: 'a'.repeat(64) }
  expect(await answerTo(key)).toBe(BAD)
  const madeAtMs = stopWallClock()
  const made = await makeKey(given())
  vi.setSystemTime(madeAtMs + KNOWN_WITHIN_MS)
  expect(await answerTo(made)).toBe(GOOD)
})

test('the use of a key is noted, and secrets stand nowhere in the tables', async () => {
  const key = await makeKey(given())
  expect(await answerTo(key)).toBe(GOOD)
  await given().eventually('the last use is noted', async () => {
    const found = (await listKeys(keysPlaceOf(given()), null)).find(({ keyId }) => keyId === key.keyId)
    expect(found?.lastUsedAtMs).toBeGreaterThan(Date.now() - 60_000)
  })
  const rows = await given().rows<{ sealed: Buffer }>(
    'SELECT sealed FROM api_key_secrets WHERE key_id = $1',
    [key.keyId],
  )
  expect(rows).toHaveLength(1)
  expect(
    rows.map(({ sealed }) => sealed.includes(key.secret) || sealed.includes(Buffer.from(key.secret, 'hex'))),
  ).toEqual([false])
})
