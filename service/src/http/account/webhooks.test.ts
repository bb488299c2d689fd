import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ApiKey } from '../../accounts/api_key.ts'
import { refuse } from '../../domain/outcome.ts'
import { orderView } from '../testing/fake_desk.ts'
import { deliveryView, endpointView, fakeWebhooks } from '../testing/fake_webhooks.ts'
import { fullKey, type Harness, startHttp } from '../testing/harness.ts'
import { writeOrderEvent } from './order_event.ts'

const readOnly: ApiKey = { ...fullKey, keyId: 'ck_read', scopes: ['read'] }
const fakes = fakeWebhooks()

let http: Harness
beforeAll(async () => {
  const { webhooks, endpoints } = fakes
  http = await startHttp({ keys: [fullKey, readOnly], parts: { webhooks, endpoints } })
})
afterAll(() => http.close())

const deliveries = '/v1/account/webhooks/deliveries'
const redeliver = `${deliveries}/${deliveryView.id}/redeliver`
const since = '/v1/account/webhooks/redeliver'
const endpoints = '/v1/account/webhooks/endpoints'

test('an event is the order as GET shows it, and its place in the history', async () => {
  const event = { sequence: 3, previousStatus: 'NEW', snapshot: orderView, atMs: 1_790_000_000_000 }
  const written = JSON.parse(writeOrderEvent(event))
  const { json } = await http.signed('GET', `/v1/order/${orderView.order_id}`)
  expect(written).toEqual({
    type: 'order.status_changed',
    timestamp: new Date(1_790_000_000_000).toISOString(),
    data: { ...json.data, sequence: 3, previous_status: 'NEW' },
  })
  expect(JSON.parse(writeOrderEvent({ ...event, previousStatus: null })).data.previous_status).toBeNull()
})

test('deliveries are listed as asked, and the cursor leads to where the page ended', async () => {
  const { json } = await http.signed('GET', deliveries)
  expect(json.data.deliveries).toEqual([
    {
      ...deliveryView,
      event_at: '2026-09-21T14:13:20.000Z',
      next_attempt_at: '2026-09-21T14:13:25.000Z',
      attempts: [
        {
          began_at: '2026-09-21T14:13:20.010Z',
          ended_at: '2026-09-21T14:13:20.020Z',
          outcome: 'answered',
          http_status: 500,
          response: 'a "b" \\',
        },
        {
          began_at: '2026-09-21T14:13:25.010Z',
          ended_at: null,
          outcome: 'unknown',
          http_status: null,
          response: null,
        },
      ],
    },
  ])
  expect(fakes.asked.at(-1)).toEqual([
    'account-1',
    { orderId: null, state: null },
    { after: null, limit: 50 },
  ])
  const query = `order_id=${orderView.order_id}&state=exhausted&limit=7&cursor=${json.data.next_cursor}`
  await http.signed('GET', `${deliveries}?${query}`)
  const after = {
    eventAtMs: 1_790_000_000_000,
    orderId: orderView.order_id,
    receiver: 'callback',
    sequence: 2,
  }
  expect(fakes.asked.at(-1)?.slice(1)).toEqual([
    { orderId: orderView.order_id, state: 'exhausted' },
    { after, limit: 7 },
  ])
})

test.each([
  ['order_id=CB1', 'order_id'],
  ['state=done', 'state'],
  ['limit=0', 'limit'],
  ['limit=101', 'limit'],
  ['cursor=', 'cursor'],
  ['cursor=eA', 'cursor'],
  ['account_id=acc_other', 'account_id'],
])('a list with %s is refused', async (query, field) => {
  const { status, json } = await http.signed('GET', `${deliveries}?${query}`)
  expect([status, json.error_code, json.details?.[0].field]).toEqual([400, 'INVALID_PARAMETER', field])
})

test('one delivery is delivered again, and one that is not there is not', async () => {
  const { status, json } = await http.signed('POST', redeliver, '{}')
  expect([status, json.data.id, json.data.state]).toEqual([200, deliveryView.id, 'waiting'])
  expect(fakes.asked.at(-1)?.slice(0, 2)).toEqual(['account-1', deliveryView.id])
  for (const id of ['CB4821093377160542-3-callback', 'x', '..%2f']) {
    const missing = await http.signed('POST', `${deliveries}/${id}/redeliver`, '{}')
    expect([missing.status, missing.json.error_code], id).toEqual([404, 'NOT_FOUND'])
  }
})

test('everything since a time is delivered again, and a repetition says so', async () => {
  const body = JSON.stringify({ since: '2026-01-31T12:00:00.5Z', state: 'exhausted' })
  const { json, headers } = await http.signed('POST', since, body)
  expect(json.data).toEqual({ redelivered: 7 })
  expect(headers.get('idempotent-replayed')).toBe('true')
  expect(fakes.asked.at(-1)?.[1]).toEqual({
    sinceMs: Date.UTC(2026, 0, 31, 12) + 500,
    state: 'exhausted',
  })
  for (const wrong of [
    {},
    { since: '2026-02-30T12:00:00Z' },
    { since: 1 },
    { since: '2026-01-31T12:00:00Z', state: 'waiting' },
  ]) {
    expect((await http.signed('POST', since, JSON.stringify(wrong))).status).toBe(400)
  }
})

test('endpoints are listed, made and deleted; their URL is checked as callback_url is', async () => {
  const { json, headers } = await http.signed('GET', endpoints)
  expect(headers.get('cache-control')).toBe('no-store')
  expect(json.data.endpoints).toEqual([
    {
      id: endpointView.endpointId,
      url: endpointView.url,
      created_at: '2026-09-21T14:13:20.000Z',
      disabled_at: '2026-09-21T14:13:21.000Z',
      disabled_by: 'receiver',
    },
  ])
  const made = await http.signed('POST', endpoints, JSON.stringify({ url: 'https://shop.example/b' }))
  expect(made.json.data).toMatchObject({ url: 'https://shop.example/b', disabled_at: null })
  for (const url of [
    'http://shop.example/',
    'https://127.0.0.1/',
    'https://2130706433/',
    'https://a.localhost/',
  ]) {
    const refused = await http.signed('POST', endpoints, JSON.stringify({ url }))
    expect([refused.status, refused.json.details?.[0].field], url).toEqual([400, 'url'])
  }
  const full = await http.signed('POST', endpoints, JSON.stringify({ url: 'https://eleventh.example/' }))
  expect([full.status, full.json]).toEqual([
    409,
    {
      ...{ error: true, error_code: 'CONFLICT' },
      message: 'an account has at most 10 endpoints: delete one first',
    },
  ])
  const gone = await http.signed('DELETE', `${endpoints}/${endpointView.endpointId}`)
  expect(gone.json.data).toEqual({ id: endpointView.endpointId })
  expect((await http.signed('DELETE', `${endpoints}/we_nobody`)).status).toBe(404)
})

test('a repeated request for an endpoint is told from a new one, and another one under its key is refused', async () => {
  const make = (path: string) =>
    http.signed('POST', endpoints, JSON.stringify({ url: `https://shop.example/${path}` }))
  const made = await make('once')
  expect([made.status, made.headers.get('idempotent-replayed')]).toEqual([200, null])
  const slot = expect.stringMatching(/^sign:[0-9a-f]{64}$/)
  const bodyHash = expect.stringMatching(/^[0-9a-f]{64}$/)
  expect(fakes.asked.at(-1)).toEqual(['https://shop.example/once', { slot, bodyHash }])
  const again = await make('again')
  expect([again.status, again.headers.get('idempotent-replayed')]).toEqual([200, 'true'])
  const other = await make('conflict')
  expect([other.status, other.json.error_code]).toEqual([422, 'IDEMPOTENCY_CONFLICT'])
})

test('a key that may only read may look, and change nothing', async () => {
  const key = { key: readOnly.keyId }
  expect((await http.signed('GET', deliveries, undefined, key)).status).toBe(200)
  expect((await http.signed('GET', endpoints, undefined, key)).status).toBe(200)
  for (const [method, target, body] of [
    ['POST', redeliver, '{}'],
    ['POST', since, '{"since":"2026-01-31T12:00:00Z"}'],
    ['POST', endpoints, '{"url":"https://shop.example/"}'],
    ['DELETE', `${endpoints}/${endpointView.endpointId}`, undefined],
  ] as const) {
    expect((await http.signed(method, target, body, key)).status, target).toBe(403)
  }
})

test.each([deliveries, endpoints])('nobody looks at %s without a signature', async (target) => {
  expect((await http.request('GET', target)).json.error_code).toBe('UNAUTHORIZED')
})

test.each([
  ['a new endpoint', endpoints, '{"url":"https://shop.example/b"}'],
  ['delivering all again', since, '{"since":"2026-01-31T12:00:00Z"}'],
])('%s costs as much as creating an order', async (_what, target, body) => {
  const limited = await startHttp({ limits: { unitsPerMinute: 60, createUnits: 50 } })
  const made = await limited.signed('POST', target, body)
  expect([made.status, made.headers.get('ratelimit')]).toEqual([200, '"minute";r=10;t=60'])
  await limited.close()
})

test('what an account may change too often is told with when to come again', async () => {
  const often = { code: 'asked_too_often', message: 'too often', retryAfterSeconds: 7 }
  const limited = await startHttp({
    parts: { endpoints: { ...fakes.endpoints, create: async () => refuse(often) } },
  })
  const { status, json, headers } = await limited.signed('POST', endpoints, '{"url":"https://shop.example/"}')
  expect([status, json.error_code, headers.get('retry-after')]).toEqual([429, 'RATE_LIMITED', '7'])
  await limited.close()
})

test('redeliveries of an account have turns of their own', async () => {
  const ended = Promise.withResolvers<void>()
  let underWay = 0
  const webhooks: typeof fakes.webhooks = {
    ...fakes.webhooks,
    redeliver: async (...given) => {
      underWay += 1
      await ended.promise
      return fakes.webhooks.redeliver(...given)
    },
    redeliverSince: async (...given) => {
      underWay += 1
      await ended.promise
      return fakes.webhooks.redeliverSince(...given)
    },
  }
  const busy = await startHttp({ parts: { webhooks } })
  const body = '{"since":"2026-01-31T12:00:00Z"}'
  const asked = [1, 2, 3].flatMap(() => [
    busy.signed('POST', redeliver, '{}'),
    busy.signed('POST', since, body),
  ])
  await expect.poll(() => underWay).toBe(2)
  const made = await busy.signed('POST', endpoints, '{"url":"https://shop.example/b"}')
  expect([made.status, underWay]).toEqual([200, 2])
  ended.resolve()
  expect((await Promise.all(asked)).map(({ status }) => status)).toEqual(new Array(6).fill(200))
  await busy.close()
})

test('however many keys an account has, few of its acts are under way at once, and a hundred wait', async () => {
  const keys = Array.from({ length: 11 }, (_, n): ApiKey => ({ ...fullKey, keyId: `ck_key_no_${n}` }))
  const ended = Promise.withResolvers<void>()
  let underWay = 0
  const create: typeof fakes.endpoints.create = async (...given) => {
    underWay += 1
    await ended.promise
    return fakes.endpoints.create(...given)
  }
  const busy = await startHttp({ keys, parts: { endpoints: { ...fakes.endpoints, create } } })
  const statuses: number[] = []
  const asked = keys.flatMap(({ keyId }) =>
    Array.from({ length: 10 }, async (_, n) => {
      const body = JSON.stringify({ url: `https://shop.example/${n}` })
      statuses.push((await busy.signed('POST', endpoints, body, { key: keyId })).status)
    }),
  )
  await expect.poll(() => statuses).toEqual(new Array(8).fill(429))
  expect(underWay).toBe(2)
  ended.resolve()
  await Promise.all(asked)
  expect(statuses.filter((status) => status === 200)).toHaveLength(102)
  await busy.close()
})
