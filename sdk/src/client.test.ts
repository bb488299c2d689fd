import { createHmac } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { afterEach, expect, test, vi } from 'vitest'
import { idempotencyKeyRule } from './check_option.ts'
import { type ClientOptions, createClient } from './client.ts'
import { createSigner } from './sign.ts'
import {
  problem,
  type Received,
  type Reply,
  startTestServer,
  success,
  type TestServer,
} from './testing/answering_server.ts'
import { failure, order } from './testing/calls.ts'
import type { Order } from './types.ts'

/**
 * What: the client says the right bytes and reads every kind of answer.
 * How: a real HTTP server on loopback that answers as each test tells it.
 */
const API_SECRET = '0123456789abcdef'.repeat(4)
const servers: TestServer[] = []

afterEach(async () => {
  vi.restoreAllMocks()
  await Promise.all(servers.splice(0).map((server) => server.close()))
})

async function start(
  reply: (request: Received, index: number) => Reply,
  options: Partial<ClientOptions> = {},
) {
  const server = await startTestServer(reply)
  servers.push(server)
  const client = createClient({
    baseUrl: server.baseUrl,
    apiKey: 'ck_test',
    apiSecret: API_SECRET,
    ...options,
  })
  return { client, received: server.received, baseUrl: server.baseUrl }
}

/** Answers the first calls as listed, and every later one as the last. */
const inTurn =
  (...replies: Reply[]) =>
  (_request: Received, index: number) =>
    replies[Math.min(index, replies.length - 1)] as Reply

/** The signature as docs/api.md defines it, made of what arrived. */
function expectedSignature(request: Received): string {
  const signed = `${request.headers['x-api-timestamp']}\n${request.method}\n${request.target}\n${request.body}`
  return createHmac('sha256', API_SECRET).update(signed).digest('hex')
}

test('a signature is the HMAC-SHA256 of timestamp, method, target and body', async () => {
  const sign = createSigner('secret')
  // printf '1700000000\nGET\n/v1/order/CB1\n' | openssl dgst -sha256 -hmac secret
  expect(await sign({ timestamp: '1700000000', method: 'GET', target: '/v1/order/CB1', body: '' })).toBe(
    '5489a5d27986badff2c5ba7b64d236a565983f6356368696877c450842f077d3',
  )
  // printf '1700000000\nPOST\n/v1/order/create\n{"amount":0.10,"note":"é"}' | openssl dgst -sha256 -hmac secret
  expect(
    await sign({
      timestamp: '1700000000',
      method: 'POST',
      target: '/v1/order/create',
      body: '{"amount":0.10,"note":"é"}',
    }),
  ).toBe('35d1fec1d7feb3443e62d7c522653942ca5cdb8376d639e9cede161235f1234d')
})

test('requests are signed over what is on the wire, below a base path too', async () => {
  const { received, baseUrl } = await start(() => success({}))
  const client = createClient({ baseUrl: `${baseUrl}/exchange/`, apiKey: 'ck_test', apiSecret: API_SECRET })
  await client.getOrder('CB1')
  await client.createOrder({ ...order, destination_tag: 'tag "é" \n' })
  await client.chooseEmergencyAction("CB1/..'(x)", { action: 'refund', refund_address: 'bc1q' })
  expect(received.map(({ method, target }) => `${method} ${target}`)).toEqual([
    'GET /exchange/v1/order/CB1',
    'POST /exchange/v1/order/create',
    "POST /exchange/v1/order/CB1%2F..'(x)/emergency",
  ])
  for (const request of received) {
    expect(request.headers['x-api-sign']).toBe(expectedSignature(request))
    expect(request.headers['x-api-key']).toBe('ck_test')
  }
})

test('an amount keeps its digits and is a JSON number; what is undefined is left out', async () => {
  const { client, received } = await start(() => success({}))
  await client.createOrder({ ...order, amount: '0.10000000', rate_id: undefined })
  await client.createOrder({ ...order, amount: 1e-7 })
  expect(received[0]?.body).toContain('"amount":0.10000000}')
  expect(JSON.parse(received[0]?.body ?? '')).toEqual({ ...order, amount: 0.1 })
  expect(received[1]?.body).toContain('"amount":0.0000001}')
  await expect(client.createOrder({ ...order, amount: '1,"to":"ETH"' })).rejects.toThrow(TypeError)
  expect(received).toHaveLength(2)
})

test('a call whose fields come in another order has the same body, so that it may be repeated from a store', async () => {
  const { client, received } = await start(() => success({}))
  const reversed = <Given extends object>(given: Given) =>
    Object.fromEntries(Object.entries(given).reverse()) as Given
  const creation = { ...order, refund_address: 'bc1q', destination_tag: null, rate_id: undefined }
  await client.createOrder(creation)
  await client.createOrder(reversed(creation))
  const action = { action: 'refund', refund_address: 'bc1q' } as const
  await client.chooseEmergencyAction('CB1', action)
  await client.chooseEmergencyAction('CB1', reversed(action))
  const bodies = received.map(({ body }) => body)
  expect(bodies).toEqual([bodies[0], bodies[0], bodies[2], bodies[2]])
  expect(bodies.slice(1, 3).map((body) => JSON.parse(body))).toEqual([
    { ...order, amount: 0.1, refund_address: 'bc1q', destination_tag: null },
    action,
  ])
})

test('a rate is asked without credentials, and numbers come back as numbers', async () => {
  const { client, received } = await start(() => ({
    body: '{"success":true,"data":{"rate":64123.5,"fee":0.1}}',
  }))
  expect(await client.getRate({ from: 'BTC', to: 'USDT', to_network: 'ERC20', amount: '0.5' })).toEqual({
    rate: 64123.5,
    fee: 0.1,
  })
  expect(received[0]?.target).toBe('/v1/rate?from=BTC&to=USDT&to_network=ERC20&amount=0.5')
  expect(received[0]?.headers['x-api-key']).toBeUndefined()
})

test('orders are listed over all pages, each fetched when it is needed', async () => {
  const page = (ids: string[], next: string | null) =>
    success({ orders: ids.map((order_id) => ({ order_id })), next_cursor: next })
  const { client, received } = await start(inTurn(page(['CB3', 'CB2'], 'Mg'), page(['CB1'], null)))
  const listed = client.listOrders({ status: ['NEW', 'DONE'], created_after: new Date(0) })
  expect(received).toHaveLength(0)
  expect((await listed.next()).value).toEqual({ order_id: 'CB3' })
  expect(received).toHaveLength(1)
  const rest: string[] = []
  for await (const { order_id } of listed) rest.push(order_id)
  expect(rest).toEqual(['CB2', 'CB1'])
  const query = 'status=NEW%2CDONE&created_after=1970-01-01T00%3A00%3A00.000Z&limit=100'
  expect(received.map(({ target }) => target)).toEqual([
    `/v1/orders?${query}`,
    `/v1/orders?${query}&cursor=Mg`,
  ])
  for (const request of received) expect(request.headers['x-api-sign']).toBe(expectedSignature(request))
})

test('an order is read with its token and no key', async () => {
  const { baseUrl, received } = await start(() => success({ order_id: 'CB1' }))
  const client = createClient({ baseUrl })
  expect(await client.getOrderByToken('12345678', 'the-token')).toEqual({ order_id: 'CB1' })
  expect(received[0]).toMatchObject({
    target: '/v1/order/12345678',
    headers: { 'x-order-token': 'the-token' },
  })
  // A browser would ask whether it may send that, and may not.
  expect(received[0]?.headers).not.toHaveProperty('content-type')
  expect((await failure(client.getOrder('CB1'))).code).toBe('NO_CREDENTIALS')
  expect(received).toHaveLength(1)
})

test('a QR image comes as its bytes, or as a data URI', async () => {
  const image = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0, 255])
  const { client, received } = await start(({ target }) =>
    target.includes('base64')
      ? success({ qr_code: 'data:image/png;base64,AA', format: 'png' })
      : { body: image, headers: { 'Content-Type': 'image/png' } },
  )
  expect(Buffer.from(await client.getQr('CB1', { size: 512, include_amount: false })).equals(image)).toBe(
    true,
  )
  expect(await client.getQrDataUri('CB1')).toEqual({ qr_code: 'data:image/png;base64,AA', format: 'png' })
  expect(received.map(({ target }) => target)).toEqual([
    '/v1/order/CB1/qr?size=512&include_amount=false',
    '/v1/order/CB1/qr?format=base64',
  ])
})

test('what is no image is not given as a QR code', async () => {
  const { client } = await start(() => ({
    body: '<html>Sign in to the network</html>',
    headers: { 'Content-Type': 'text/html' },
  }))
  expect(await failure(client.getQr('CB1'))).toMatchObject({
    code: 'UNEXPECTED_ANSWER',
    message: expect.stringContaining('HTTP 200 with text/html in place of an image'),
  })
})

test('a POST keeps its Idempotency-Key and body over repetitions; the next call has another', async () => {
  const retries: string[] = []
  const { client, received } = await start(
    inTurn('cut', problem(503, 'MAINTENANCE', {}, { 'Retry-After': '0' }), success({ order_id: 'CB1' })),
    {
      onRetry: ({ attempt, method, path, error }) =>
        retries.push(`${attempt} ${method} ${path} ${error.code}`),
    },
  )
  expect(await client.createOrder(order)).toEqual({ order_id: 'CB1' })
  await client.createOrder(order)
  await client.createOrder(order, { idempotencyKey: 'mine' })
  const keys = received.map(({ headers }) => headers['idempotency-key'])
  expect(keys[0]).toMatch(/^[A-Za-z0-9_-]{20,64}$/)
  expect(keys.slice(0, 3)).toEqual([keys[0], keys[0], keys[0]])
  expect(keys[3]).not.toBe(keys[0])
  expect(keys[4]).toBe('mine')
  expect(new Set(received.map(({ body }) => body)).size).toBe(1)
  expect(retries).toEqual(['1 POST /v1/order/create NETWORK_ERROR', '2 POST /v1/order/create MAINTENANCE'])
})

test('a POST that fails tells its key, under which the same call may be repeated', async () => {
  const { client, received } = await start(inTurn('cut', 'cut', success({ order_id: 'CB1' })), { retries: 1 })
  const failed = await failure(client.createOrder(order))
  expect(failed.code).toBe('NETWORK_ERROR')
  await client.createOrder(order, { idempotencyKey: failed.idempotencyKey ?? '' })
  expect(new Set(received.map(({ headers }) => headers['idempotency-key']))).toEqual(
    new Set([failed.idempotencyKey]),
  )
  const unsigned = createClient({ baseUrl: 'http://127.0.0.1:1', retries: 0 })
  expect((await failure(unsigned.getCurrencies())).idempotencyKey).toBeUndefined()
})

test('a key that the service does not take is refused before anything is sent', async () => {
  const onRetry = vi.fn()
  const { client, received } = await start(() => success({ order_id: 'CB1' }), { onRetry })
  const wrong = ['Bestellung 17 ✓', 'a b', '', 'k'.repeat(65), 'mine\n', null, 17] as readonly string[]
  for (const idempotencyKey of wrong) {
    await expect(client.createOrder(order, { idempotencyKey }), idempotencyKey).rejects.toThrow(TypeError)
    const choice = client.chooseEmergencyAction('CB1', { action: 'refund' }, { idempotencyKey })
    await expect(choice, idempotencyKey).rejects.toThrow(TypeError)
  }
  expect(received).toHaveLength(0)
  expect(onRetry).not.toHaveBeenCalled()
  await client.createOrder(order, { idempotencyKey: 'Az-9_'.padEnd(64, 'k') })
  expect(received).toHaveLength(1)
})

test("the rule of a key is the interface's", () => {
  const { paths } = JSON.parse(readFileSync(new URL('../openapi.json', import.meta.url), 'utf8'))
  const parameters: readonly { name: string; schema: object }[] = paths['/v1/order/create'].post.parameters
  const key = parameters.find(({ name }) => name === 'Idempotency-Key')
  expect(key?.schema).toEqual({ type: 'string', pattern: idempotencyKeyRule.source })
})

test('what no header can carry is a mistake of the program, and not a line that failed', async () => {
  const onRetry = vi.fn()
  const { client, received } = await start(() => success({}), { onRetry, apiKey: 'ck_…' })
  await expect(client.createOrder(order)).rejects.toThrow(TypeError)
  await expect(client.getOrderByToken('12345678', 'a\nb')).rejects.toThrow(TypeError)
  expect(received).toHaveLength(0)
  expect(onRetry).not.toHaveBeenCalled()
})

test('Retry-After is honoured, in seconds or as a date', async () => {
  const reason = new Error('seen enough')
  const stop = new AbortController()
  const delays: number[] = []
  const toldAtMs: number[] = []
  const soon = () => new Date(Date.now() + 30_000).toUTCString()
  const { client } = await start(
    (_request, index) =>
      index === 0
        ? problem(429, 'RATE_LIMITED', { retry_after: 1 }, { 'Retry-After': '1' })
        : problem(429, 'RATE_LIMITED', {}, { 'Retry-After': soon() }),
    {
      onRetry: ({ delayMs }) => {
        delays.push(delayMs)
        toldAtMs.push(performance.now())
        if (delays.length === 2) stop.abort(reason)
      },
    },
  )
  await expect(client.getCurrencies({ signal: stop.signal })).rejects.toBe(reason)
  const [firstMs = 0, secondMs = 0] = delays
  const [fromMs = 0, toMs = 0] = toldAtMs
  expect(firstMs).toBeGreaterThanOrEqual(1_000)
  expect(firstMs).toBeLessThan(1_500)
  expect(toMs - fromMs, 'it was waited').toBeGreaterThanOrEqual(firstMs - 50)
  // Longer than it would be if nobody had asked, and shorter by what went by until the answer was read.
  expect(secondMs).toBeGreaterThan(3_000)
  expect(secondMs).toBeLessThan(31_000)
})

test('asked to wait longer than the cap, the call fails and says how long', async () => {
  const { client, received } = await start(() => problem(429, 'RATE_LIMITED', { retry_after: 3600 }))
  expect(await failure(client.getCurrencies())).toMatchObject({
    code: 'RATE_LIMITED',
    retryAfterMs: 3_600_000,
  })
  expect(received).toHaveLength(1)
})

test('the longest wait that is accepted is waited, which is what the service asks for while it is in maintenance', async () => {
  const reason = new Error('seen enough')
  const stop = new AbortController()
  const delays: number[] = []
  const { client } = await start(() => problem(503, 'MAINTENANCE', {}, { 'Retry-After': '60' }), {
    onRetry: ({ delayMs }) => {
      delays.push(delayMs)
      stop.abort(reason)
    },
  })
  await expect(client.getCurrencies({ signal: stop.signal })).rejects.toBe(reason)
  expect(delays).toEqual([expect.closeTo(60_000, -3)])
  expect(delays[0]).toBeGreaterThanOrEqual(60_000)
})

test('repetitions end after `retries`, and refusals are not repeated', async () => {
  const busy = await start(() => ({ status: 502, body: '<html>bad gateway</html>' }), { retries: 2 })
  expect(await failure(busy.client.getCurrencies())).toMatchObject({ code: 'UNEXPECTED_ANSWER', status: 502 })
  expect(busy.received).toHaveLength(3)
  for (const [status, code] of [
    [400, 'INVALID_PAIR'],
    [401, 'INVALID_SIGNATURE'],
    [409, 'RATE_EXPIRED'],
  ] as const) {
    const refusing = await start(() => problem(status, code))
    expect((await failure(refusing.client.createOrder(order))).code).toBe(code)
    expect(refusing.received).toHaveLength(1)
  }
})

test('a fault of the service is repeated: a GET, and a POST under one key', async () => {
  const fault = problem(500, 'INTERNAL_ERROR')
  const failsOver = await start(inTurn(fault, success({ order_id: 'CB1' }), fault, success({})))
  expect(await failsOver.client.createOrder(order)).toEqual({ order_id: 'CB1' })
  await failsOver.client.getOrder('CB1')
  const [first, second] = failsOver.received.map(({ headers }) => headers['idempotency-key'])
  expect(second).toBe(first)
  expect(failsOver.received.map(({ method }) => method)).toEqual(['POST', 'POST', 'GET', 'GET'])
})

test('a request that did not arrive in time is sent again, under one key', async () => {
  const { client, received } = await start(
    inTurn(problem(408, 'REQUEST_TIMEOUT'), success({ order_id: 'CB1' })),
  )
  expect(await client.createOrder(order)).toEqual({ order_id: 'CB1' })
  const [first, second] = received.map(({ headers }) => headers['idempotency-key'])
  expect(received).toHaveLength(2)
  expect(second).toBe(first)
})

test('a fault of the service that stays is told after `retries`, with the id of the last request', async () => {
  const { client, received } = await start(
    (_request, index) => problem(500, 'INTERNAL_ERROR', {}, { 'X-Request-Id': `r${index}` }),
    { retries: 2 },
  )
  const calls = [
    () => client.createOrder(order),
    () => client.chooseEmergencyAction('CB1', { action: 'refund' }),
  ]
  for (const call of calls) {
    const last = `r${received.length + 2}`
    expect(await failure(call())).toMatchObject({ code: 'INTERNAL_ERROR', status: 500, requestId: last })
  }
  expect(received).toHaveLength(6)
  const keys = received.map(({ headers }) => headers['idempotency-key'])
  expect(keys.slice(0, 3)).toEqual([keys[0], keys[0], keys[0]])
  expect(keys.slice(3)).toEqual([keys[3], keys[3], keys[3]])
  expect(new Set(keys).size, 'every POST has a key').toBe(2)
})

test('an error carries everything the service said', async () => {
  const { client } = await start(() =>
    problem(
      400,
      'AMOUNT_OUT_OF_RANGE',
      {
        min_amount: 0.001,
        max_amount: 2.5,
        currency: 'BTC',
        details: [{ field: 'amount', message: 'is too small' }],
      },
      { 'X-Request-Id': 'abc-1' },
    ),
  )
  const error = await failure(client.createOrder(order))
  expect(error).toMatchObject({
    name: 'CambistError',
    message: 'AMOUNT_OUT_OF_RANGE: about AMOUNT_OUT_OF_RANGE (HTTP 400, request abc-1)',
    status: 400,
    requestId: 'abc-1',
    minAmount: 0.001,
    maxAmount: 2.5,
    currency: 'BTC',
    details: [{ field: 'amount', message: 'is too small' }],
  })
})

test.each([
  ['an HTML page with status 200', { body: '<html>' }],
  ['JSON without the envelope', { body: { hello: 1 } }],
  ['an empty answer', { body: '' }],
  ['a JSON null', { body: 'null' }],
  ['an error without a code', { status: 404, body: { error: true } }],
])('%s is an error of its own', async (_what, reply) => {
  const { client } = await start(() => reply, { retries: 0 })
  expect(['UNEXPECTED_ANSWER', 'NETWORK_ERROR']).toContain((await failure(client.getOrder('CB1'))).code)
})

test('a redirect is not followed, because nobody else is to see what we sign, and is told where it leads', async () => {
  const elsewhere = await start(() => success({}))
  const { client, received } = await start(() => ({
    status: 307,
    headers: { Location: `${elsewhere.baseUrl}/v1/order/create` },
  }))
  expect(await failure(client.createOrder(order))).toMatchObject({
    code: 'UNEXPECTED_ANSWER',
    status: 307,
    message: expect.stringContaining(elsewhere.baseUrl),
  })
  expect([received.length, elsewhere.received.length]).toEqual([1, 0])
})

test('a clock that is wrong is corrected once, for later calls too', async () => {
  const aheadSeconds = 86_400
  const { client, received } = await start(({ headers }) => {
    const serverTime = Math.floor(Date.now() / 1_000) + aheadSeconds
    const isLate = Math.abs(Number(headers['x-api-timestamp']) - serverTime) > 300
    return isLate ? problem(401, 'TIMESTAMP_EXPIRED', { server_time: serverTime }) : success({})
  })
  await client.createOrder(order)
  await client.getOrder('CB1')
  expect(received).toHaveLength(3)
  expect(received[0]?.headers['idempotency-key']).toBe(received[1]?.headers['idempotency-key'])
  for (const request of received) expect(request.headers['x-api-sign']).toBe(expectedSignature(request))
})

test('a clock that stays wrong is an error, not a loop', async () => {
  const { client, received } = await start(() => problem(401, 'TIMESTAMP_EXPIRED', { server_time: 1 }))
  expect(await failure(client.getOrder('CB1'))).toMatchObject({ code: 'TIMESTAMP_EXPIRED', serverTime: 1 })
  expect(received).toHaveLength(2)
})

test('silence ends in TIMEOUT, a closed port in NETWORK_ERROR with its reason', async () => {
  const silent = await start(() => 'silence', { retries: 0, timeoutMs: 50 })
  expect((await failure(silent.client.getCurrencies())).code).toBe('TIMEOUT')
  const refusing = createClient({ baseUrl: 'http://127.0.0.1:1', retries: 0 })
  expect(await failure(refusing.getCurrencies())).toMatchObject({ code: 'NETWORK_ERROR', status: 0 })
})

test('what is no time, or no number of times, is refused before anything is asked', async () => {
  const baseUrl = 'http://127.0.0.1:1'
  for (const timeoutMs of [Number.NaN, 0, -1]) {
    expect(() => createClient({ baseUrl, timeoutMs })).toThrow(
      `timeoutMs must be a number of milliseconds, above 0, not ${timeoutMs}`,
    )
  }
  for (const retries of [Number.NaN, -1, 0.5]) {
    expect(() => createClient({ baseUrl, retries })).toThrow(`retries must be a whole number, 0 or more`)
  }
  expect(() => createClient({ baseUrl, retryDelayMsMax: Number.NaN })).toThrow('0 or more, not NaN')
  const everyLimit = { timeoutMs: 1, retries: Number.POSITIVE_INFINITY, retryDelayMsMax: 0 }
  expect(() => createClient({ baseUrl, ...everyLimit })).not.toThrow()
  const { client, received } = await start(() => success({ order_id: 'CB1', status: 'NEW' }))
  for (const options of [{ pollMs: Number.NaN }, { timeoutMs: Number.NaN }])
    await expect(client.waitForStatus('CB1', ['DONE'], options)).rejects.toThrow(TypeError)
  expect(received).toHaveLength(0)
})

test('without a limit in time an answer is waited for', async () => {
  const patient = await start(() => success({}), { retries: 0, timeoutMs: Number.POSITIVE_INFINITY })
  expect(await patient.client.getCurrencies()).toEqual({})
})

test("the caller's signal ends a call and a wait, with the caller's reason", async () => {
  const reason = new Error('enough')
  const silent = await start(() => 'silence')
  const stop = new AbortController()
  const call = silent.client.getCurrencies({ signal: stop.signal })
  await vi.waitFor(() => expect(silent.received).toHaveLength(1), { timeout: 60_000 })
  stop.abort(reason)
  await expect(call).rejects.toBe(reason)

  const stopWaiting = new AbortController()
  const busy = await start(() => problem(503, 'MAINTENANCE', {}, { 'Retry-After': '30' }), {
    onRetry: () => stopWaiting.abort(reason),
  })
  await expect(busy.client.getCurrencies({ signal: stopWaiting.signal })).rejects.toBe(reason)
  expect(busy.received).toHaveLength(1)
})

const seen = (status: string, more: object = {}) => success({ order_id: 'CB1', status, ...more })

test('waiting for a status sees each change once and ends with the order', async () => {
  const { client } = await start(
    inTurn(
      seen('NEW'),
      seen('NEW'),
      seen('PENDING', { deposit_confirmations: 0 }),
      seen('PENDING', { deposit_confirmations: 1 }),
      seen('REFUND', { refund: { tx_hash: null } }),
      seen('REFUND', { refund: { tx_hash: 'ab' } }),
      seen('DONE'),
    ),
  )
  const changes: string[] = []
  const onChange = (each: Order) => changes.push(`${each.status} ${each.deposit_confirmations ?? '-'}`)
  const found = await client.waitForStatus('CB1', ['DONE', 'EMERGENCY'], { pollMs: 1, onChange })
  expect(found.status).toBe('DONE')
  expect(changes).toEqual(['NEW -', 'PENDING 0', 'PENDING 1', 'REFUND -', 'REFUND -', 'DONE -'])
})

test('waiting ends in time where the next look would come later', async () => {
  const { client } = await start(() => seen('NEW'))
  const waited = failure(client.waitForStatus('CB1', ['DONE'], { pollMs: 600_000, timeoutMs: 20 }))
  expect((await waited).code).toBe('WAIT_TIMEOUT')
})

/** How waiting for DONE ends. The first look has a second for it, and a busy machine may take longer: then whoever asks waits anew. */
async function waitFrom(reply: (request: Received, index: number) => Reply) {
  const { client, received } = await start(reply)
  const error = await failure(client.waitForStatus('CB1', ['DONE'], { pollMs: 5, timeoutMs: 20 }))
  return { code: error.code, message: error.message, asked: received.length }
}

test('waiting ends when the time is up, when the order ended otherwise, or when told', async () => {
  await expect
    .poll(() => waitFrom(() => seen('NEW')))
    .toMatchObject({
      code: 'WAIT_TIMEOUT',
      message: expect.stringContaining('order CB1 is NEW, not DONE'),
    })
  const refunded = await start(() => seen('REFUNDED'))
  expect((await failure(refunded.client.waitForStatus('CB1', ['DONE']))).code).toBe('STATUS_UNREACHABLE')
  const open = await start(() => seen('NEW'))
  const stop = new AbortController()
  const reason = new Error('enough')
  const waiting = open.client.waitForStatus('CB1', ['DONE'], {
    signal: stop.signal,
    onChange: () => stop.abort(reason),
  })
  await expect(waiting).rejects.toBe(reason)
})

test('waiting ends in time though the service says nothing, or asks to come back later than that', async () => {
  await expect
    .poll(() => waitFrom(inTurn(seen('PENDING'), 'silence')))
    .toMatchObject({
      code: 'WAIT_TIMEOUT',
      message: expect.stringContaining('order CB1 is PENDING, not DONE'),
    })
  await expect
    .poll(() => waitFrom(() => problem(503, 'MAINTENANCE', {}, { 'Retry-After': '60' })))
    .toEqual({
      code: 'WAIT_TIMEOUT',
      message: expect.stringContaining('order CB1 was not seen'),
      asked: 1,
    })
})
