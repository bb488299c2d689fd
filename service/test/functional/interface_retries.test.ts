import type { CreatedOrder, CreateOrderRequest } from '@cambist/sdk'
import { CambistError } from '@cambist/sdk'
import { beforeAll, expect, test } from 'vitest'
import {
  createOrder,
  createUnderpaid,
  expectPaidOut,
  expectRefunded,
  payAndBury,
  quickPair,
} from '../harness/orders.ts'
import { useTestSandbox } from '../harness/test_sandbox.ts'
import { type Answer, failureOf, makeKey, openWire, type Wire } from '../harness/wire.ts'

/**
 * What: a POST that is sent again is done once and answered alike, whoever repeats it and however; an order's token
 * reads its order and nothing else.
 * How: the same bytes and other bytes over HTTP, many at once, and over a line that breaks after the service has acted.
 */
const given = useTestSandbox()
let wire: Wire

beforeAll(async () => {
  wire = await openWire(given())
})

async function requestOf(
  more: object = {},
): Promise<Omit<CreateOrderRequest, 'amount'> & { amount: number }> {
  const destination = await given().remote.freshAddress('BEP20')
  return { ...quickPair, amount: 432.1, rate_type: 'fixed', destination, ...more }
}

function create(body: object | string, key?: string): Promise<Answer> {
  const headers: Record<string, string> = key === undefined ? {} : { 'Idempotency-Key': key }
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  return wire.signed('POST', '/v1/order/create', text, { headers })
}

async function countOrders(): Promise<number> {
  return (await given().rows<{ count: number }>('SELECT count(*) AS count FROM orders'))[0]?.count ?? -1
}

function isReplay({ headers }: Answer): boolean {
  return headers.get('idempotent-replayed') === 'true'
}

test('same key, same body: the first answer again, token and all, and one order', async () => {
  const before = await countOrders()
  const body = await requestOf()
  const first = await create(body, 'same-1')
  expect([first.status, isReplay(first)]).toEqual([200, false])
  given().addSecret(first.json.data.token)
  for (let repeat = 0; repeat < 3; repeat += 1) {
    const again = await create(body, 'same-1')
    expect([again.status, isReplay(again), again.text]).toEqual([200, true, first.text])
  }
  expect(await countOrders()).toBe(before + 1)
})

test('a replay answers as the first time although the order went on and prices and clock moved', async () => {
  const sandbox = given()
  const body = JSON.stringify(await requestOf({ amount: 433.1 }))
  const first = await create(body, 'moved-1')
  const order = first.json.data as CreatedOrder
  sandbox.addSecret(order.token)
  await payAndBury(sandbox, order)
  await expectPaidOut(sandbox, order)
  await sandbox.remote.changePrice('USDC', '3')
  await sandbox.remote.advanceClock(3_600)
  const again = await create(body, 'moved-1')
  expect([isReplay(again), again.text]).toEqual([true, first.text])
})

test('same key, other body, other path or other digits of the same number: IDEMPOTENCY_CONFLICT', async () => {
  const body = await requestOf()
  const first = await create(body, 'other-1')
  given().addSecret(first.json.data.token)
  const stuck = await createUnderpaid(given(), quickPair, '300')
  const before = await countOrders()
  const others = [
    await create({ ...body, amount: 432.2 }, 'other-1'),
    await create({ ...body, refund_address: body.destination }, 'other-1'),
    await create(JSON.stringify(body).replace('432.1', '432.10'), 'other-1'),
    await wire.signed('POST', `/v1/order/${stuck.order_id}/emergency`, '{"action":"continue"}', {
      headers: { 'Idempotency-Key': 'other-1' },
    }),
  ]
  for (const other of others)
    expect([other.status, other.json.error_code]).toEqual([422, 'IDEMPOTENCY_CONFLICT'])
  expect(await countOrders()).toBe(before)
  expect((await wire.client.getOrder(stuck.order_id)).status).toBe('EMERGENCY')
})

test('another account may use the same key', async () => {
  const key = await makeKey(given())
  const body = JSON.stringify(await requestOf())
  const mine = await create(body, 'shared-1')
  const theirs = await wire.signed('POST', '/v1/order/create', body, {
    as: key,
    headers: { 'Idempotency-Key': 'shared-1' },
  })
  given().addSecret(mine.json.data.token)
  given().addSecret(theirs.json.data.token)
  expect([theirs.status, isReplay(theirs)]).toEqual([200, false])
  expect(theirs.json.data.order_id).not.toBe(mine.json.data.order_id)
})

test('without a key, the same signed POST is the same act; a newly signed one is a new one', async () => {
  const body = JSON.stringify(await requestOf())
  const timestamp = String(Math.floor(Date.now() / 1_000))
  const send = (at: string) => wire.signed('POST', '/v1/order/create', body, { timestamp: at })
  const first = await send(timestamp)
  const again = await send(timestamp)
  given().addSecret(first.json.data.token)
  expect([again.status, isReplay(again), again.text]).toEqual([200, true, first.text])
  const later = await send(String(Number(timestamp) + 1))
  given().addSecret(later.json.data.token)
  expect(isReplay(later)).toBe(false)
  expect(later.json.data.order_id).not.toBe(first.json.data.order_id)
})

test('a refusal is not kept: the same key succeeds once nothing is wrong any more', async () => {
  const body = await requestOf()
  const refused = await create({ ...body, destination: 'nowhere' }, 'mended-1')
  expect(refused.json.error_code).toBe('INVALID_ADDRESS')
  const mended = await create(body, 'mended-1')
  expect([mended.status, isReplay(mended)]).toEqual([200, false])
  given().addSecret(mended.json.data.token)
})

test.each(['with one key', 'signed once'])('twenty at the same moment, %s, make one order', async (how) => {
  const before = await countOrders()
  const body = JSON.stringify(await requestOf())
  const timestamp = String(Math.floor(Date.now() / 1_000))
  const headers: Record<string, string> = how === 'with one key' ? { 'Idempotency-Key': 'twenty' } : {}
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => wire.signed('POST', '/v1/order/create', body, { timestamp, headers })),
  )
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200))
  expect(new Set(answers.map(({ text }) => text)).size).toBe(1)
  expect(answers.filter((answer) => !isReplay(answer))).toHaveLength(1)
  given().addSecret(answers[0]?.json.data.token)
  expect(await countOrders()).toBe(before + 1)
})

test('a client whose answer was lost on the way repeats by itself and gets the one order', async () => {
  const before = await countOrders()
  let lost = 0
  const { api_key: keyId, api_secret: secret } = given().account
  const client = wire.clientOf(
    { keyId, secret },
    {
      fetch: async (...args) => {
        const response = await fetch(...args)
        lost += 1
        if (lost <= 2) throw new TypeError('the line broke after the service had acted')
        return response
      },
    },
  )
  const order = await client.createOrder({ ...(await requestOf()), amount: '434.5' })
  given().addSecret(order.token)
  expect(lost).toBe(3)
  expect(await countOrders()).toBe(before + 1)
})

test('an emergency action is replayed, by key and by signature, and not taken twice', async () => {
  const sandbox = given()
  const refund = await sandbox.remote.freshAddress('ERC20')
  const stuck = await createUnderpaid(sandbox, quickPair, '900', { refund_address: refund })
  const target = `/v1/order/${stuck.order_id}/emergency`
  const headers = { 'Idempotency-Key': 'refund-1' }
  const body = '{"action":"refund"}'
  const first = await wire.signed('POST', target, body, { headers })
  expect([first.status, isReplay(first)]).toEqual([200, false])
  const again = await wire.signed('POST', target, body, { headers })
  expect([again.status, isReplay(again), again.text]).toEqual([200, true, first.text])
  const other = await wire.signed('POST', target, '{"action":"continue"}', { headers })
  expect([other.status, other.json.error_code]).toEqual([422, 'IDEMPOTENCY_CONFLICT'])
  const refunded = await expectRefunded(sandbox, stuck)
  expect(refunded.refund?.address).toBe(refund)
  const late = await wire.signed('POST', target, body, { headers })
  expect([isReplay(late), late.text]).toEqual([true, first.text])
})

test('of twenty different actions at the same moment one wins, and every loser is told NOT_EMERGENCY', async () => {
  const sandbox = given()
  const stuck = await createUnderpaid(sandbox, quickPair, '910', {
    refund_address: await sandbox.remote.freshAddress('ERC20'),
  })
  const actions = ['continue', 'recalculate', 'refund'] as const
  const outcomes = await Promise.all(
    Array.from({ length: 20 }, (_, index) =>
      wire.client
        .chooseEmergencyAction(stuck.order_id, { action: actions[index % 3] ?? 'continue' })
        .then(() => 'won')
        .catch((error: unknown) => (error instanceof CambistError ? error.code : String(error))),
    ),
  )
  expect(outcomes.filter((outcome) => outcome === 'won')).toHaveLength(1)
  expect(outcomes.filter((outcome) => outcome === 'NOT_EMERGENCY')).toHaveLength(19)
  const outflows = await sandbox.rows('SELECT payout_id FROM outflows WHERE order_id = $1', [stuck.order_id])
  expect(outflows.length).toBeLessThanOrEqual(1)
})

const READS = [
  [
    'X-ORDER-TOKEN',
    (id: string, token: string) =>
      wire.request('GET', `/v1/order/${id}`, { headers: { 'X-ORDER-TOKEN': token } }),
  ],
  ['?token=', (id: string, token: string) => wire.request('GET', `/v1/order/${id}?token=${token}`)],
] as const

test.each(READS)('an order is read with its short id and %s, without any key', async (_name, read) => {
  const order = await createOrder(given(), quickPair)
  const seen = await read(order.short_id, order.token)
  const asOwner = await wire.signed('GET', `/v1/order/${order.order_id}`)
  expect([seen.status, seen.json]).toEqual([200, asOwner.json])
  expect('token' in seen.json.data).toBe(false)
  expect(seen.headers.get('cache-control')).toBe('no-store')
  const wrong = [
    await read(
      order.short_id,
      order.token.replace(/^./, (first) => (first === 'A' ? 'B' : 'A')),
    ),
    await read(order.short_id, order.token.slice(0, -1)),
    await read('00000000', order.token),
    await read('CB0000000000000000', order.token),
  ]
  for (const answer of wrong)
    expect([answer.status, answer.json.error_code]).toEqual([404, 'ORDER_NOT_FOUND'])
})

test('with its token an order may be named by its full id too', async () => {
  const order = await createOrder(given(), quickPair)
  const seen = await wire.client.getOrderByToken(order.order_id, order.token)
  expect(seen.order_id).toBe(order.order_id)
})

test('the token of one order does not read another, nor does it act', async () => {
  const mine = await createOrder(given(), quickPair)
  const other = await createUnderpaid(given(), quickPair, '920')
  const failure = await failureOf(wire.client.getOrderByToken(other.order_id.slice(-8), mine.token))
  expect(failure).toMatchObject({ code: 'ORDER_NOT_FOUND', status: 404 })
  const headers = { 'X-ORDER-TOKEN': mine.token, 'Content-Type': 'application/json' }
  const acted = await wire.request('POST', `/v1/order/${other.order_id}/emergency`, {
    headers,
    body: '{"action":"continue"}',
  })
  expect([acted.status, acted.json.error_code]).toEqual([401, 'UNAUTHORIZED'])
})

test('a token and a key together, or a token twice, is refused in words', async () => {
  const { order_id, short_id, token } = await createOrder(given(), quickPair)
  const both = await wire.signed('GET', `/v1/order/${order_id}`, undefined, {
    headers: { 'X-ORDER-TOKEN': token },
  })
  expect([both.status, both.json.error_code]).toEqual([401, 'UNAUTHORIZED'])
  const twice = await wire.request('GET', `/v1/order/${short_id}?token=${token}`, {
    headers: { 'X-ORDER-TOKEN': token },
  })
  expect([twice.status, twice.json.error_code]).toEqual([401, 'UNAUTHORIZED'])
  const malformed = await wire.request('GET', `/v1/order/${short_id}?token=a%20b`)
  expect([malformed.status, malformed.json.error_code]).toEqual([400, 'INVALID_PARAMETER'])
})

test('tokens are stored hashed only', async () => {
  const { order_id, token } = await createOrder(given(), quickPair)
  const [row] = await given().rows<object>('SELECT * FROM orders WHERE order_id = $1', [order_id])
  const stored = JSON.stringify(row, (_key, value) => (typeof value === 'bigint' ? String(value) : value))
  expect(stored).toContain(order_id)
  expect(stored).not.toContain(token)
})
