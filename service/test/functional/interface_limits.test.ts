import { beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { quickPair } from '../harness/orders.ts'
import { useTestSandbox } from '../harness/test_sandbox.ts'
import { type Answer, failureOf, makeKey, openWire, type Wire } from '../harness/wire.ts'

/**
 * What: RATE_LIMITED by the minute and by the second, per key and per address, told in headers and in the answer.
 * How: a service with small limits; each test spends the units of a key of its own.
 */
const limits = { unitsPerMinute: 160, burstPerSecond: 60, createUnits: 50 }
const given = useTestSandbox({ rateLimits: limits })
let wire: Wire
let body: string

beforeAll(async () => {
  wire = await openWire(given())
  const destination = await given().remote.freshAddress('BEP20')
  body = JSON.stringify({ ...quickPair, amount: 100, rate_type: 'float', destination })
})

const TARGET = '/v1/order/CB0000000000000000'
const POLICY = '"minute";q=160;w=60, "burst";q=60;w=1'

function expectLimited(answer: Answer, secondsMax: number): void {
  const { message, retry_after: seconds, ...rest } = answer.json
  expect([answer.status, rest]).toEqual([429, { error: true, error_code: 'RATE_LIMITED' }])
  expect(message).toContain(String(seconds))
  expect(seconds).toBeGreaterThanOrEqual(1)
  expect(seconds).toBeLessThanOrEqual(secondsMax)
  expect(answer.headers.get('retry-after')).toBe(String(seconds))
  expect(answer.headers.get('ratelimit-policy')).toBe(POLICY)
}

const left = ({ headers }: Answer) =>
  Number(/^"minute";r=(\d+);t=\d+$/.exec(headers.get('ratelimit') ?? '')?.[1])

/** However long a slow machine takes to answer all of them, they come in one second. Ends with `mockRestore`. */
function holdClock() {
  const { clock } = given().service.world
  const held = vi.spyOn(clock, 'wallMs').mockReturnValue(clock.wallMs())
  onTestFinished(() => held.mockRestore())
  return held
}

test('an order costs 50 units, everything else one, and what is left is told', async () => {
  const as = await makeKey(given())
  const create = () =>
    wire.signed('POST', '/v1/order/create', body, { as, headers: { 'Idempotency-Key': `k-${count++}` } })
  let count = 0
  for (const remaining of [110, 60, 10]) {
    const created = await create()
    expect([created.status, left(created)]).toEqual([200, remaining])
    expect(created.headers.get('ratelimit-policy')).toBe(POLICY)
    given().addSecret(created.json.data.token)
  }
  expectLimited(await create(), 60)
  // A create that is too dear leaves the units for looking at what one has.
  for (let remaining = 9; remaining >= 0; remaining -= 1) {
    const seen = await wire.signed('GET', TARGET, undefined, { as })
    expect([seen.status, left(seen)]).toEqual([404, remaining])
  }
  expectLimited(await wire.signed('GET', TARGET, undefined, { as }), 60)
  const other = await makeKey(given())
  expect((await wire.signed('GET', TARGET, undefined, { as: other })).status).toBe(404)
})

test('more than the burst within one second is refused for a second', async () => {
  const as = await makeKey(given())
  const headers = wire.headersFor('GET', TARGET, '', { as })
  const held = holdClock()
  const answers = await Promise.all(
    Array.from({ length: 150 }, () => wire.request('GET', TARGET, { headers })),
  )
  held.mockRestore()
  const limited = answers.filter(({ status }) => status === 429)
  expect(limited.length).toBe(150 - limits.burstPerSecond)
  expect(answers.filter(({ status }) => status === 404).length).toBe(limits.burstPerSecond)
  for (const answer of limited) {
    expectLimited(answer, 1)
    expect(answer.headers.get('ratelimit')).toBe('"burst";r=0;t=1')
  }
  await given().eventually('a second later all is well', async () => {
    expect((await wire.request('GET', TARGET, { headers })).status).toBe(404)
  })
})

test('the client waits as long as it is told and goes on by itself; asked to wait too long, it says so', async () => {
  const key = await makeKey(given())
  const retries: number[] = []
  const held = holdClock()
  const patient = wire.clientOf(key, {
    onRetry: ({ delayMs }) => {
      if (retries.push(delayMs) === 90 - limits.burstPerSecond) held.mockRestore()
    },
  })
  const codes = await Promise.all(
    Array.from({ length: 90 }, async () => (await failureOf(patient.getOrder('CB0000000000000000'))).code),
  )
  expect(new Set(codes)).toEqual(new Set(['ORDER_NOT_FOUND']))
  expect(retries.length).toBeGreaterThanOrEqual(90 - limits.burstPerSecond)
  expect(Math.min(...retries)).toBeGreaterThanOrEqual(1_000)
  const hasty = wire.clientOf(key, { retries: 0 })
  const outcomes = await Promise.all(
    Array.from({ length: 90 }, () => failureOf(hasty.getOrder('CB0000000000000000'))),
  )
  const limited = outcomes.find(({ code }) => code === 'RATE_LIMITED')
  expect(limited).toMatchObject({ status: 429 })
  expect(limited?.retryAfterMs).toBeGreaterThanOrEqual(1_000)
})

test('without a key, the address is limited; a wrong signature spends the address and not the key', async () => {
  const as = await makeKey(given())
  const forged = () =>
    wire.signed('GET', TARGET, undefined, { as, headers: { 'X-API-SIGN': '0'.repeat(64) } })
  for (const answer of await Promise.all(Array.from({ length: 20 }, forged))) expect(answer.status).toBe(401)
  expect(left(await forged())).toBeLessThan(limits.unitsPerMinute - 20)
  await given().eventually('the address has spent its minute', async () => {
    // Without credentials: an address may guess only so often.
    const answers = await Promise.all(Array.from({ length: 40 }, () => wire.request('GET', TARGET)))
    for (const answer of answers) expect([401, 429]).toContain(answer.status)
    const [spent] = answers.filter(({ headers }) => /^"minute";r=0;/.test(headers.get('ratelimit') ?? ''))
    expect(spent).toBeDefined()
  })
  for (const target of ['/v1/rate?from=BTC&to=ETH&amount=1', '/v1/currencies', `${TARGET}/qr`]) {
    expectLimited(await wire.request('GET', target), 60)
  }
  expectLimited(
    await wire.request('GET', `${TARGET.slice(0, 10)}12345678`, { headers: { 'X-ORDER-TOKEN': 'x' } }),
    60,
  )
  const seen = await wire.signed('GET', TARGET, undefined, { as })
  expect([seen.status, left(seen)]).toEqual([404, 159])
  // Nobody is locked out of these.
  for (const target of ['/healthz', '/readyz', '/metrics', '/openapi.json']) {
    expect([target, (await wire.request('GET', target)).status]).toEqual([target, 200])
  }
})
