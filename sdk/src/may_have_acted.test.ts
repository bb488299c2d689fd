import { afterEach, expect, test, vi } from 'vitest'
import { type ClientOptions, createClient, type PostOptions } from './client.ts'
import { problem, type Reply, startTestServer, success, type TestServer } from './testing/answering_server.ts'
import { failure, order } from './testing/calls.ts'

/**
 * What: the error of a POST says whether the call may have been acted on, whatever its last attempt was answered.
 * How: a real HTTP server on loopback that answers each attempt as the test tells it.
 */
const servers: TestServer[] = []

afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.close()))
})

/** Each attempt gets the next answer, and is repeated as long as there are more. */
async function start(replies: readonly Reply[], options: Partial<ClientOptions> = {}) {
  const server = await startTestServer(
    (_request, index) => replies[Math.min(index, replies.length - 1)] as Reply,
  )
  servers.push(server)
  const { baseUrl, received } = server
  const retries = replies.length - 1
  const client = createClient({ baseUrl, apiKey: 'ck_test', apiSecret: 'cs_test', retries, ...options })
  return { client, received }
}

async function failureOf(replies: readonly Reply[], options?: Partial<ClientOptions>, given?: PostOptions) {
  const { client, received } = await start(replies, options)
  const error = await failure(client.createOrder(order, given))
  expect(received, 'every answer was given').toHaveLength(replies.length)
  return error
}

const page = (status: number): Reply => ({ status, body: '<html>a proxy</html>' })
const now = { 'Retry-After': '0' }
const limited = problem(429, 'RATE_LIMITED', {}, now)
const fault = problem(500, 'INTERNAL_ERROR', {}, now)

const untold: readonly (readonly [string, Reply])[] = [
  ['a line that was cut', 'cut'],
  ['a fault of the service', fault],
  ['a 5xx that this client does not know', problem(503, 'SOMETHING_NEW', {}, now)],
  ["a proxy's 502", page(502)],
  ["a proxy's 504", page(504)],
  ["a proxy's 408", page(408)],
]

test.each(untold)('%s alone may have been acted on', async (_what, reply) => {
  expect(await failureOf([reply])).toMatchObject({ mayHaveActed: true })
})

test.each([
  ['a page in place of the answer', page(200)],
  ['a redirect', { status: 307, headers: { Location: 'http://127.0.0.1:1/' } }],
  ["a proxy's 403", page(403)],
] satisfies [string, Reply][])('%s says nothing of what was done behind it', async (_what, reply) => {
  expect(await failureOf([reply])).toMatchObject({ code: 'UNEXPECTED_ANSWER', mayHaveActed: true })
})

test('silence may have been acted on', async () => {
  const { client } = await start(['silence'], { timeoutMs: 50 })
  const error = await failure(client.createOrder(order))
  expect(error).toMatchObject({ code: 'TIMEOUT', mayHaveActed: true })
})

const refusals: readonly (readonly [string, Reply])[] = [
  ['RATE_LIMITED', limited],
  ['INVALID_SIGNATURE', problem(401, 'INVALID_SIGNATURE')],
  ['TIMESTAMP_EXPIRED', problem(401, 'TIMESTAMP_EXPIRED')],
  ['FORBIDDEN', problem(403, 'FORBIDDEN')],
  ['INVALID_PARAMETER', problem(400, 'INVALID_PARAMETER')],
  ['REQUEST_TIMEOUT', problem(408, 'REQUEST_TIMEOUT', {}, now)],
  ['RATE_EXPIRED', problem(409, 'RATE_EXPIRED')],
  ['RATE_UNAVAILABLE', problem(503, 'RATE_UNAVAILABLE', {}, now)],
  ['MAINTENANCE', problem(503, 'MAINTENANCE', {}, now)],
]

test.each(refusals)('%s alone says that nothing was done', async (code, reply) => {
  expect(await failureOf([reply])).toMatchObject({ code, mayHaveActed: false })
  const repeated = await failureOf([limited, problem(503, 'MAINTENANCE', {}, now), reply])
  expect(repeated).toMatchObject({ code, mayHaveActed: false })
})

test.each(refusals)(
  '%s to a repetition does not say what became of the attempt before',
  async (code, reply) => {
    for (const [what, first] of untold) {
      const error = await failureOf([first, reply], {}, { idempotencyKey: 'mine' })
      expect(error, what).toMatchObject({ code, mayHaveActed: true, idempotencyKey: 'mine' })
    }
    expect(await failureOf(['cut', limited, reply])).toMatchObject({ code, mayHaveActed: true })
  },
)

test('a page in place of the answer to a repetition says nothing either', async () => {
  expect(await failureOf([limited, page(200)])).toMatchObject({ mayHaveActed: true })
})

test('a key that belongs to another request lets no attempt of this one act', async () => {
  const conflict = problem(422, 'IDEMPOTENCY_CONFLICT')
  for (const replies of [[conflict], ['cut', conflict]] as const) {
    const error = await failureOf(replies, {}, { idempotencyKey: 'used' })
    expect(error).toMatchObject({ code: 'IDEMPOTENCY_CONFLICT', mayHaveActed: false })
  }
})

test('what happened to one call is not told of the next', async () => {
  const { client } = await start(['cut', limited, success({ order_id: 'CB1' }), limited], { retries: 1 })
  const failed = await failure(client.createOrder(order))
  const { idempotencyKey = '', mayHaveActed } = failed
  expect(mayHaveActed).toBe(true)
  expect(await client.createOrder(order, { idempotencyKey })).toEqual({ order_id: 'CB1' })
  expect(await failure(client.createOrder(order))).toMatchObject({ mayHaveActed: false })
})

test('what asks only, and what was never sent, has not acted', async () => {
  const { client } = await start(['cut'])
  expect(await failure(client.getOrder('CB1'))).toMatchObject({ code: 'NETWORK_ERROR', mayHaveActed: false })
  const { client: keyless, received } = await start(['cut'], { apiSecret: undefined })
  const error = await failure(keyless.createOrder(order))
  expect(error).toMatchObject({ code: 'NO_CREDENTIALS', mayHaveActed: false })
  expect(received).toHaveLength(0)
})

test('who is told of a repetition is told what is known by then', async () => {
  const told: boolean[] = []
  const onRetry: ClientOptions['onRetry'] = ({ error }) => told.push(error.mayHaveActed)
  await failureOf([limited, 'cut', limited, limited], { onRetry })
  expect(told).toEqual([false, true, true])
})

test('an aborted call rejects with the reason alone, and is repeated under the key that its caller brought', async () => {
  const { client, received } = await start(['silence', success({ order_id: 'CB1' })], { retries: 0 })
  const idempotencyKey = 'kept-before'
  const stop = new AbortController()
  const reason = new Error('enough')
  const aborted = expect(client.createOrder(order, { idempotencyKey, signal: stop.signal })).rejects.toBe(
    reason,
  )
  await vi.waitFor(() => expect(received).toHaveLength(1), { timeout: 60_000 })
  stop.abort(reason)
  await aborted
  expect(await client.createOrder(order, { idempotencyKey })).toEqual({ order_id: 'CB1' })
  expect(received.map(({ headers }) => headers['idempotency-key'])).toEqual([idempotencyKey, idempotencyKey])
})
