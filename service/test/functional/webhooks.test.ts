import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type OrderEvent, verifyWebhook } from '@cambist/sdk'
import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { createOrder, expectPaidOut, payAndBury, quickPair } from '../harness/orders.ts'
import { useTestSandbox } from '../harness/test_sandbox.ts'
import { openWire, type Wire } from '../harness/wire.ts'

/**
 * What: a receiver is told every change of an order's status, signed with the secret of sandbox.json, again until it
 * takes it, and again on request.
 * How: a real order on a real chain, a real receiver on this machine; only the service's clock is moved.
 */
const given = useTestSandbox()
let wire: Wire
let server: Server
let base = ''
type Received = {
  readonly id: string
  readonly path: string
  readonly event: OrderEvent
  readonly text: string
}
const received: Received[] = []
const wrong: unknown[] = []
let statusOf: (path: string) => number = () => 200

beforeAll(async () => {
  wire = await openWire(given())
  server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const text = Buffer.concat(chunks).toString()
    const secret = given().account.webhook_secret
    try {
      const event = (await verifyWebhook({ headers: request.headers, body: text, secret })) as OrderEvent
      new Webhook(secret).verify(text, request.headers as Record<string, string>)
      received.push({ id: String(request.headers['webhook-id']), path: request.url ?? '', event, text })
    } catch (error) {
      wrong.push(error)
    }
    response.writeHead(statusOf(request.url ?? '')).end('heard')
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  base = `http://localhost:${(server.address() as AddressInfo).port}`
})

beforeEach(() => {
  received.length = 0
  statusOf = () => 200
})

afterAll(() => {
  expect(wrong).toEqual([])
  server?.closeAllConnections()
  server?.close()
})

const statusesAt = (path: string) =>
  received.filter((one) => one.path === path).map(({ event }) => event.data.status)

const deliveries = '/v1/account/webhooks/deliveries'
const signed = async (method: string, target: string, body?: object) => {
  const answer = await wire.signed(method, target, body === undefined ? undefined : JSON.stringify(body))
  expect(answer.status, answer.text).toBe(200)
  return answer.json.data
}

test('an order tells its callback_url and the account’s endpoints every status, frozen and in order', async () => {
  const endpoint = await signed('POST', '/v1/account/webhooks/endpoints', { url: `${base}/all` })
  const order = await createOrder(given(), quickPair, { callback_url: `${base}/one` })
  await payAndBury(given(), order)
  await expectPaidOut(given(), order)
  const whole = ['NEW', 'PENDING', 'EXCHANGE', 'WITHDRAW', 'DONE']
  await given().eventually('both have heard of all of it', () => {
    expect(statusesAt('/one')).toEqual(whole)
    expect(statusesAt('/all')).toEqual(whole)
  })
  const told = received.filter(({ path }) => path === '/one')
  expect(told.map(({ id }) => id)).toEqual(whole.map((_, index) => `evt_${order.order_id}_${index + 1}`))
  expect(told.map(({ event }) => event.data.previous_status)).toEqual([null, ...whole.slice(0, -1)])
  const { json } = await wire.signed('GET', `/v1/order/${order.order_id}`)
  const last = told.at(-1)?.event
  expect(last).toEqual({
    type: 'order.status_changed',
    timestamp: last?.data.updated_at,
    data: { ...json.data, sequence: 5, previous_status: 'WITHDRAW' },
  })
  expect(told[0]?.event.data).toMatchObject({ deposit_received: 0, deposit_tx_hash: null })
  await signed('DELETE', `/v1/account/webhooks/endpoints/${endpoint.id}`)
})

test('what a receiver does not take is sent again when it is due, and the next event waits for it', async () => {
  statusOf = (path) => (path === '/late' ? 503 : 200)
  const order = await createOrder(given(), quickPair, { callback_url: `${base}/late` })
  await given().eventually('it was tried', () => expect(statusesAt('/late')[0]).toBe('NEW'))
  await given().remote.pay(order.order_id)
  await given().waitForStatus(order.order_id, 'PENDING')
  const countAttempts = async (): Promise<number> => {
    const { deliveries: found } = await signed('GET', `${deliveries}?order_id=${order.order_id}`)
    expect(found).toMatchObject([
      { sequence: 2, state: 'waiting', attempts: [] },
      { sequence: 1, state: 'waiting' },
    ])
    const refused = { outcome: 'answered', http_status: 503, response: 'heard' }
    for (const attempt of found[1].attempts) expect(attempt).toMatchObject(refused)
    return found[1].attempts.length
  }
  // On a machine that is busy the second attempt, after five seconds, may have come by itself; the third does not.
  await given().eventually('it is in the log, and the second event waits', async () => {
    expect(await countAttempts()).toBeGreaterThanOrEqual(1)
  })
  await given().remote.advanceClock(6)
  await given().eventually('the second attempt', async () => expect(await countAttempts()).toBe(2))
  statusOf = () => 204
  await given().remote.advanceClock(331)
  await given().eventually('both are told', () =>
    expect(statusesAt('/late')).toEqual(['NEW', 'NEW', 'NEW', 'PENDING']),
  )
  expect(
    new Set(received.filter(({ event }) => event.data.status === 'NEW').map(({ text }) => text)).size,
  ).toBe(1)
})

test('one delivery, or all since a time, are sent again on request; the same request twice does it once', async () => {
  const since = new Date(given().service.world.clock.nowMs()).toISOString()
  const order = await createOrder(given(), quickPair, { callback_url: `${base}/again` })
  await given().eventually('it is told', async () => {
    const { deliveries: found } = await signed(
      'GET',
      `${deliveries}?order_id=${order.order_id}&state=delivered`,
    )
    expect(found).toHaveLength(1)
  })
  const id = `${order.order_id}-1-callback`
  expect(await signed('POST', `${deliveries}/${id}/redeliver`, {})).toMatchObject({
    id,
    webhook_id: `evt_${order.order_id}_1`,
  })
  await given().eventually('it is told again', async () => {
    const { deliveries: found } = await signed('GET', `${deliveries}?order_id=${order.order_id}`)
    expect(found).toMatchObject([
      { state: 'delivered', attempts: [{ http_status: 200 }, { http_status: 200 }] },
    ])
  })
  const body = JSON.stringify({ since, state: 'delivered' })
  const target = '/v1/account/webhooks/redeliver'
  const headers = { 'Idempotency-Key': 'again-1' }
  const first = await wire.signed('POST', target, body, { headers })
  expect([first.status, first.json.data]).toEqual([200, { redelivered: 1 }])
  const second = await wire.signed('POST', target, body, { headers })
  expect([second.status, second.json.data]).toEqual([200, { redelivered: 1 }])
  expect(second.headers.get('idempotent-replayed')).toBe('true')
  await given().eventually('it is told once more', () => expect(statusesAt('/again')).toHaveLength(3))
  expect(
    (await wire.signed('POST', `${deliveries}/${order.order_id}-9-callback/redeliver`, '{}')).status,
  ).toBe(404)
})

test('a callback_url that leads to this machine over https, or into a private network, is refused', async () => {
  for (const callback_url of [
    'https://127.0.0.1/',
    'https://[::1]/',
    'https://10.0.0.1/',
    'https://localhost/',
    'http://10.0.0.1/',
  ]) {
    await expect(createOrder(given(), quickPair, { callback_url })).rejects.toThrow(/callback_url/)
  }
})
