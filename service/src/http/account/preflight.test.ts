import { afterAll, beforeAll, expect, test } from 'vitest'
import { fakeDesk, ORDER_ID, ORDER_TOKEN, orderView } from '../testing/fake_desk.ts'
import { type Harness, startHttp } from '../testing/harness.ts'

/**
 * What: a browser lets a page of another origin read an order with its token in the header, and nothing that is signed.
 * How: what a browser asks before such a request.
 */
let http: Harness
beforeAll(async () => {
  http = await startHttp()
})
afterAll(() => http.close())

const preflight = (target: string, method: string, headers: string) =>
  http.request('OPTIONS', target, {
    headers: {
      Origin: 'https://shop.example',
      'Access-Control-Request-Method': method,
      'Access-Control-Request-Headers': headers,
    },
  })

test.each(['/v1/order/77160542', `/v1/order/${ORDER_ID}`, '/v1/order/77160542/events'])(
  'a page of another origin may read %s with the token in its header',
  async (target) => {
    const { status, headers } = await preflight(target, 'GET', 'last-event-id,x-order-token')
    expect(status).toBe(204)
    expect(headers.get('access-control-allow-origin')).toBe('*')
    const allowed = headers.get('access-control-allow-headers')?.toLowerCase().split(', ')
    expect(allowed).toEqual(['x-order-token', 'last-event-id'])
    expect(headers.has('access-control-allow-credentials')).toBe(false)
  },
)

test('a page of another origin may read that nothing more comes: its browser would ask for ever', async () => {
  const desk = fakeDesk({ findOrder: async () => ({ ...orderView, status: 'DONE' }) })
  const ended = await startHttp({ desk })
  const target = `/v1/order/${ORDER_ID}/events`
  const byToken = await ended.request('GET', `${target}?token=${ORDER_TOKEN}`, {
    headers: { Origin: 'https://shop.example' },
  })
  expect([byToken.status, byToken.headers.get('access-control-allow-origin')]).toEqual([204, '*'])
  expect(byToken.headers.has('content-length'), 'RFC 9110 8.6: not with 204').toBe(false)
  const byKey = await ended.signed('GET', target)
  expect([byKey.status, byKey.headers.has('access-control-allow-origin')]).toEqual([204, false])
  await ended.close()
})

test.each([
  ['/v1/order/create', 'POST'],
  [`/v1/order/${ORDER_ID}/emergency`, 'POST'],
  [`/v1/order/${ORDER_ID}`, 'DELETE'],
  ['/v1/orders', 'GET'],
  ['/account', 'GET'],
])('a page of another origin may not ask %s with %s', async (target, method) => {
  const { status, json } = await preflight(target, method, 'x-api-sign')
  expect([status, json.error_code]).toEqual([405, 'METHOD_NOT_ALLOWED'])
})

test('OPTIONS without a browser behind it is refused, body and all', async () => {
  const refused = await http.request('OPTIONS', `/v1/order/${ORDER_ID}`, { body: '{' })
  expect([refused.status, refused.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
})
