import { randomInt } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { insertAddresses } from '../../db/addresses.ts'
import type { Database } from '../../db/database.ts'
import { findOrder } from '../../db/orders.ts'
import { insertRateLocks } from '../../db/rate_locks.ts'
import { saveComparison } from '../../db/reconciliations.ts'

import { type AssetId, assetOf, assets } from '../../domain/catalog/assets.ts'

import type { AddressFamily } from '../../domain/catalog/networks.ts'
import { amountOf } from '../../domain/money/amount.ts'
import { rateBetween } from '../../domain/money/rate.ts'
import { accept } from '../../domain/outcome.ts'
import { shareOf } from '../../domain/quotes/quote.ts'
import { marketBoard } from '../market.ts'
import type { Policy } from '../policy.ts'
import { type BooksStage, openBooksStage } from '../testing/books_stage.ts'
import type { DeskWorld } from '../world.ts'
import type { CreateRequest, Desk } from './desk.ts'
import { openDesk } from './desks.ts'

/**
 * What: orders that are created together share a statement and nothing else: each exists wholly or not at all, and is
 * created once whatever is lost on the way.
 * How: the real desk on a real PostgreSQL, many creations at once; the test stands between desk and database.
 */
let stage: BooksStage

beforeAll(async () => {
  stage = await openBooksStage('open-order')
})

beforeEach(async () => {
  await stage.reset()
  for (const { id } of assets) {
    await stage.db.query('INSERT INTO reserves VALUES ($1, 1000000000000000000000000, 1, 0)', [id])
  }
  await addAddresses('bitcoin', 0, 100)
  await addAddresses('evm', 0, 100)
})

afterAll(() => stage?.stop())

function addAddresses(family: AddressFamily, from: number, count: number): Promise<void> {
  const named = Array.from({ length: count }, (_, index) => `${family}-${from + index}`)
  return insertAddresses(stage.db, family, 'deposit', from, named)
}

type Query = Database['query']

/**
 * The desk, with every statement going through `line`; `sizes` are how many orders each creating statement carried. All
 * that the catalogue has is configured, but for what is `without`.
 */
async function openStageDesk(
  line: (next: Query) => Query = (next) => next,
  {
    without = [],
    changes = {},
    clock = stage.world.clock,
    prices = stage.world.prices,
  }: {
    readonly without?: readonly AssetId[]
    readonly changes?: Partial<Policy>
    readonly clock?: DeskWorld['clock']
    readonly prices?: DeskWorld['prices']
  } = {},
) {
  const sizes: number[] = []
  const query: Query = (text, values) => {
    if (text.includes('INSERT INTO orders')) sizes.push(JSON.parse(String(values?.[1])).length)
    return stage.db.query(text, values)
  }
  const { chains } = stage.world
  const policy: Policy = { ...stage.world.policy, ...changes }
  const db: Database = { ...stage.db, query: line(query) }
  const configured = new Set(assets.map(({ id }) => id).filter((id) => !without.includes(id)))
  const market = marketBoard({ db, clock, prices, policy, assets: configured })
  await market.refresh()
  const world: DeskWorld = {
    ...stage.world,
    clock,
    prices,
    db,
    market,
    policy,
    chains: new Map([...chains].map(([id, chain]) => [id, { ...chain, parseAddress: accept }])),
    seal: ({ orderId }) => `seal of ${orderId}`,
    tokenOf: (orderId) => `token of ${orderId}`,
    randomDigits: (count) => String(randomInt(10 ** count)).padStart(count, '0'),
    randomId: () => 'an_id',
  }
  return { desk: openDesk(world), sizes, world }
}

const btcToEth: CreateRequest = {
  from: 'BTC',
  fromNetwork: 'BTC',
  to: 'ETH',
  toNetwork: 'ETH',
  amount: '0.5',
  rateType: 'float',
  destination: 'outside',
  destinationTag: null,
  refundAddress: null,
  callbackUrl: null,
  rateId: null,
}

function create(desk: Desk, key: string, more: Partial<CreateRequest> = {}) {
  const request = { ...btcToEth, ...more }
  return desk.createOrder('acc', request, { slot: `key:${key}`, bodyHash: JSON.stringify(request) })
}

/** `new`, `replay`, or the code of the refusal. */
function toldBy(outcome: Awaited<ReturnType<Desk['createOrder']>>): string {
  if (!outcome.ok) return outcome.rejection.code
  return outcome.value.isReplay ? 'replay' : 'new'
}

function numbered(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `n${index}`)
}

function rows<Row extends object>(sql: string): Promise<Row[]> {
  return stage.db.query<Row>(sql)
}

/** How many rows each table holds: of an order there is one in each, or none in any. */
async function counted(): Promise<object> {
  const [counts] =
    await rows(`SELECT (SELECT count(*) FROM orders) AS orders, (SELECT count(*) FROM facts) AS facts,
    (SELECT count(*) FROM events) AS events, (SELECT count(*) FROM retry_slots) AS slots,
    (SELECT count(*) FROM addresses WHERE assigned_at_ms IS NOT NULL) AS addresses`)
  return counts ?? {}
}

const each = (count: number) => ({
  orders: count,
  facts: count,
  events: count,
  slots: count,
  addresses: count,
})

test('while addresses are given the pool is woken now and then, though there are more', async () => {
  const { desk, world } = await openStageDesk()
  const asleep = world.alarms.of('pool').signal
  for (const key of numbered(20)) await create(desk, key)
  expect(asleep.aborted, 'a few are no reason').toBe(false)
  for (const key of numbered(10)) await create(desk, `later ${key}`)
  expect(asleep.aborted).toBe(true)
})

test('many at once share a few statements, and each has its own address, event, fact and slot', async () => {
  const { desk, sizes } = await openStageDesk()
  const answers = await Promise.all(numbered(50).map((key) => create(desk, key)))
  expect(answers.map(toldBy)).toEqual(answers.map(() => 'new'))
  expect(sizes.reduce((sum, size) => sum + size)).toBe(50)
  expect(sizes.length).toBeLessThan(10)
  expect(await counted()).toEqual(each(50))

  const stored = await rows<{ order_id: string; snapshot: object }>(
    `SELECT o.order_id, e.snapshot FROM orders o JOIN events e USING (bucket, order_id)
     JOIN facts f USING (bucket, order_id) JOIN retry_slots s USING (order_id)
     JOIN addresses a ON a.order_id = o.order_id AND a.address = o.deposit_address AND a.chain = 'BTC'
     WHERE e.sequence = 1 AND e.fact_key = 'created' AND f.fact_key = 'created' AND o.status = 'NEW'
       AND o.seal = 'seal of ' || o.order_id AND o.token_hash = sha256(convert_to('token of ' || o.order_id, 'UTF8'))`,
  )
  const told = answers.map((answer) => answer.ok && answer.value.order)
  const byId = new Map(stored.map(({ order_id, snapshot }) => [order_id, snapshot]))
  for (const order of told) expect(order && byId.get(order.order_id)).toEqual(order)
  expect(byId.size).toBe(50)
})

test('where tags tell deposits apart, an order, its first event and a look have the account', async () => {
  await insertAddresses(stage.db, 'xrp', 'reserve', 0, ['account+4294967295', 'account'])
  await insertAddresses(stage.db, 'xrp', 'deposit', 0, ['account+0', 'account+1', 'account+2'])
  const { world } = await openStageDesk()
  const accountOf = (address: string) => address.replace(/\+\d+$/, '')
  const chains = new Map(world.chains)
  chains.set('XRP', { ...stage.chain('XRP'), parseAddress: accept, accountOf })
  const desk = openDesk({ ...world, chains })
  const xrpToEth = { from: 'XRP', fromNetwork: 'XRP', amount: '50' }
  const answers = await Promise.all(numbered(2).map((key) => create(desk, key, xrpToEth)))
  const made = [...answers, await create(desk, 'later', xrpToEth)]
  const tags = new Set(made.map((answer) => answer.ok && answer.value.order.deposit_tag))
  expect(tags).toEqual(new Set(['0', '1', '2']))
  for (const answer of made) {
    const order = answer.ok ? answer.value.order : null
    expect(order).toMatchObject({
      deposit_address: `account+${order?.deposit_tag}`,
      deposit_account: 'account',
    })
    const id = order?.order_id ?? ''
    expect(await rows(`SELECT snapshot FROM events WHERE order_id = '${id}'`)).toEqual([{ snapshot: order }])
    expect(await desk.findOrder(id, { kind: 'account', accountId: 'acc' })).toEqual(order)
  }
  const again = await create(desk, 'n0', xrpToEth)
  expect([toldBy(again), again.ok && again.value.order]).toEqual([
    'replay',
    made[0]?.ok && made[0].value.order,
  ])
})

test('the orders of a statement lie in one bucket, those of others in any', async () => {
  const { desk, sizes } = await openStageDesk()
  await Promise.all(numbered(40).map((key) => create(desk, key)))
  const [spread] = await rows<{ buckets: number; ids: number }>(
    'SELECT count(DISTINCT bucket) AS buckets, count(DISTINCT left(order_id, 16)) AS ids FROM orders',
  )
  expect(spread?.ids).toBe(40)
  expect(spread?.buckets).toBeLessThanOrEqual(sizes.length)
})

test('deposits of another address family go into another statement, with addresses of their own', async () => {
  const { desk } = await openStageDesk()
  const ethToBtc = { from: 'ETH', fromNetwork: 'ETH', to: 'BTC', toNetwork: 'BTC' }
  await Promise.all(numbered(20).map((key, index) => create(desk, key, index % 2 === 0 ? {} : ethToBtc)))
  const given = await rows<{ family: string; from_asset: string; count: number }>(
    `SELECT family, from_asset, count(*) AS count FROM orders JOIN addresses USING (order_id)
     GROUP BY family, from_asset ORDER BY family`,
  )
  expect(given).toEqual([
    { family: 'bitcoin', from_asset: 'BTC:BTC', count: 10 },
    { family: 'evm', from_asset: 'ETH:ETH', count: 10 },
  ])
})

test('one that cannot be stored fails alone, and leaves nothing of itself behind', async () => {
  const { desk, sizes } = await openStageDesk()
  // PostgreSQL has no such character; http refuses it before it comes so far.
  const bad = { destination: 'out\u0000side' }
  const settled = await Promise.allSettled(
    numbered(12).map((key, index) => create(desk, key, index === 7 ? bad : {})),
  )
  const failed = settled.flatMap(({ status }, index) => (status === 'rejected' ? [index] : []))
  expect(failed).toEqual([7])
  expect(Math.max(...sizes), 'it was in a statement with others').toBeGreaterThan(1)
  expect(await counted()).toEqual(each(11))
  expect(toldBy(await create(desk, 'n7'))).toBe('new')
})

test('an order id that is taken already is another order’s for good: the new one gets another', async () => {
  const { desk, world } = await openStageDesk()
  const digits = ['07', '12345678901234', '07', '12345678901234', '08', '12345678901234']
  const stubborn = openDesk({
    ...world,
    randomDigits: (count) => digits.shift() ?? world.randomDigits(count),
  })
  const first = await create(stubborn, 'first')
  await expect(create(stubborn, 'second')).rejects.toThrow('duplicate key')
  expect(toldBy(await create(stubborn, 'second'))).toBe('new')
  expect(toldBy(await create(desk, 'third'))).toBe('new')
  const again = await create(stubborn, 'first')
  expect(again.ok && again.value.order).toEqual(first.ok && first.value.order)
})

test('one key twice among those created together makes one order, and both are told the same', async () => {
  const { desk } = await openStageDesk()
  const keys = numbered(12).map((key) => (key === 'n9' ? 'n5' : key))
  const answers = await Promise.all(keys.map((key) => create(desk, key)))
  const twins = [answers[5], answers[9]].map((answer) => answer?.ok && answer.value.order)
  expect(twins[0]).toEqual(twins[1])
  expect(answers.filter((answer) => toldBy(answer) === 'replay')).toHaveLength(1)
  expect(await counted()).toEqual(each(11))
})

test('one key with two bodies among those created together makes one order and one conflict', async () => {
  const { desk } = await openStageDesk()
  const answers = await Promise.all(
    numbered(12).map((key, index) => create(desk, key === 'n9' ? 'n5' : key, { amount: `0.5${index}` })),
  )
  expect(answers.filter((answer) => toldBy(answer) === 'IDEMPOTENCY_CONFLICT')).toHaveLength(1)
  expect(await counted()).toEqual(each(11))
})

test('a repeat gets the first answer even when the same request would be refused by now', async () => {
  const { desk, world } = await openStageDesk()
  const first = await create(desk, 'first')
  await stage.db.query('UPDATE reserves SET spendable = 0')
  await world.market.refresh()
  expect(toldBy(await create(desk, 'second'))).toBe('AMOUNT_OUT_OF_RANGE')
  const again = await create(desk, 'first')
  expect([toldBy(again), again.ok && again.value.order]).toEqual(['replay', first.ok && first.value.order])
  expect(toldBy(await create(desk, 'first', { amount: '0.7' }))).toBe('IDEMPOTENCY_CONFLICT')
})

test('an order goes on where an asset of it is no longer configured; a new one is not created', async () => {
  const { desk } = await openStageDesk()
  const first = await create(desk, 'first')
  const order = first.ok ? first.value.order : null
  const { desk: later } = await openStageDesk(undefined, { without: ['BTC:BTC', 'USDT:BEP20'] })
  expect(toldBy(await create(later, 'second'))).toBe('INVALID_PAIR')
  const toToken = { from: 'ETH', fromNetwork: 'ETH', to: 'USDT', toNetwork: 'BEP20' }
  expect(await create(later, 'third', toToken)).toMatchObject({
    rejection: {
      code: 'NETWORK_MISMATCH',
      message: 'USDT is not exchanged on BEP20; choose from ERC20, TRC20',
    },
  })

  const again = await create(later, 'first')
  expect([toldBy(again), again.ok && again.value.order]).toEqual(['replay', order])
  const orderId = order?.order_id ?? ''
  const owner = { kind: 'account', accountId: 'acc' } as const
  expect(await later.findOrder(orderId, owner)).toMatchObject({ order_id: orderId, status: 'NEW' })
  expect(await later.findPayment(orderId)).toMatchObject({ uri: expect.stringContaining('bitcoin:') })
})

test('when the pool runs dry in the middle, as many are created as there are addresses, and the rest may try again', async () => {
  await stage.db.query(`UPDATE addresses SET assigned_at_ms = 0 WHERE family = 'bitcoin' AND key_index >= 7`)
  const { desk, world } = await openStageDesk()
  const keys = numbered(12)
  const rung = world.alarms.of('pool').signal
  const answers = await Promise.all(keys.map((key) => create(desk, key)))
  expect(rung.aborted, 'whoever fills the pool is told').toBe(true)
  expect(answers.filter((answer) => toldBy(answer) === 'new')).toHaveLength(7)
  const refusals = answers.flatMap((answer) => (answer.ok ? [] : [answer.rejection]))
  const inSeconds = { code: 'MAINTENANCE', retryAfterSeconds: 3 }
  expect(refusals).toEqual(Array.from({ length: 5 }, () => expect.objectContaining(inSeconds)))
  expect(await rows('SELECT 1 AS one FROM retry_slots')).toHaveLength(7)

  await addAddresses('bitcoin', 100, 5)
  const refused = keys.filter((_, index) => !answers[index]?.ok)
  const quiet = world.alarms.of('pool').signal
  const again = await Promise.all(refused.map((key) => create(desk, key)))
  expect(again.map(toldBy)).toEqual(again.map(() => 'new'))
  expect(quiet.aborted, 'while there are some it looks in passing').toBe(false)
  expect(await rows('SELECT 1 AS one FROM orders')).toHaveLength(12)
})

test('addresses are given in the order of their keys, and those left behind when there are no others', async () => {
  const { desk } = await openStageDesk()
  const addressOf = async (key: string) => {
    const answer = await create(desk, key)
    return answer.ok ? answer.value.order.deposit_address : answer.rejection.code
  }
  expect([await addressOf('a'), await addressOf('b')]).toEqual(['bitcoin-0', 'bitcoin-1'])
  await stage.db.query(`UPDATE addresses SET assigned_at_ms = 0 WHERE key_index >= 2`)
  await stage.db.query(
    `UPDATE addresses SET assigned_at_ms = NULL WHERE family = 'bitcoin' AND key_index = 0`,
  )
  expect([await addressOf('c'), await addressOf('d')]).toEqual(['bitcoin-0', 'MAINTENANCE'])
})

test('into a chain whose outflows are stopped no order is made, by a rate that was locked before neither', async () => {
  const { desk, world } = await openStageDesk()
  const lock = async () => desk.rate({ ...btcToEth, direction: 'from', rateType: 'fixed' })
  const locked = await lock()
  const first = await create(desk, 'first')
  const compared = async (difference: bigint) => {
    const comparison = { asset: 'USDC:ERC20', height: 100, ledgerUnits: 0n, inFlight: 0n } as const
    const time = { nowMs: world.clock.nowMs(), dueWallMs: 0 }
    await saveComparison(stage.db, 'ETH', { ...comparison, chainUnits: difference, difference }, time)
    await world.market.refresh()
  }
  for (const _ of [1, 2]) await compared(-1n)
  expect(toldBy(await create(desk, 'second')), 'a node may lie for a moment').toBe('new')
  await compared(-1n)
  const rateId = (locked.ok ? locked.value.rate_id : null) ?? null
  const fixed = { rateType: 'fixed', rateId } as const
  expect(toldBy(await create(desk, 'locked', fixed))).toBe('MAINTENANCE')
  const fromEth = { from: 'ETH', fromNetwork: 'ETH', to: 'BTC', toNetwork: 'BTC' }
  expect(toldBy(await create(desk, 'out of it', fromEth)), 'its refund would not leave').toBe('MAINTENANCE')
  expect(await lock()).toMatchObject({ ok: false, rejection: { code: 'MAINTENANCE' } })
  expect((await desk.currencies()).USDC).toMatchObject({ enabled: true, networks: ['ERC20', 'BEP20', 'SOL'] })
  expect((await desk.currencies()).ETH).toMatchObject({ enabled: false })
  expect([toldBy(first), toldBy(await create(desk, 'first'))]).toEqual(['new', 'replay'])
  await compared(0n)
  expect(toldBy(await create(desk, 'locked', fixed))).toBe('new')
})

test('a rate that was locked is kept while a currency has no price, and nothing else is exchanged then', async () => {
  let hasPrices = true
  let timePassed = 0
  const { clock, prices } = stage.world
  const { desk, world } = await openStageDesk(undefined, {
    clock: { ...clock, wallMs: () => clock.wallMs() + timePassed },
    prices: { ...prices, usd: (currency) => (hasPrices ? prices.usd(currency) : null) },
  })
  const locked = await desk.rate({ ...btcToEth, direction: 'from', rateType: 'fixed' })
  const rateId = (locked.ok ? locked.value.rate_id : null) ?? null
  hasPrices = false
  expect((await desk.currencies()).ETH, 'for a minute it may be a moment').toMatchObject({ enabled: true })
  timePassed = world.policy.chainTroubleMs
  await stage.db.query('UPDATE chain_heads SET looked_wall_ms = looked_wall_ms + $1', [timePassed])
  await world.market.refresh()
  expect((await desk.currencies()).ETH).toMatchObject({ enabled: false })
  const fixed = { rateType: 'fixed' } as const
  expect(toldBy(await create(desk, 'anew', { ...fixed, amount: '0.4' }))).toBe('RATE_UNAVAILABLE')
  expect(toldBy(await create(desk, 'locked', { ...fixed, rateId }))).toBe('new')
})

test('a fixed order keeps to its lock, by its id or by pair and amount', async () => {
  const { desk, world } = await openStageDesk()
  const from = amountOf('BTC:BTC', 50_000_000n)
  const to = amountOf('ETH:ETH', 77n * 10n ** 17n)
  const zero = amountOf('ETH:ETH', 0n)
  const rate = rateBetween(from, to, 'down')
  const lock = { from, to, rate, fee: zero, networkFee: zero, feeShare: 100n, rateId: 'lock' }
  const expiresAtMs = world.clock.nowMs() + 600_000
  await insertRateLocks(stage.db, [{ ...lock, expiresAtMs }], world.clock.nowMs())
  const fixed = { rateType: 'fixed' } as const
  const answers = await Promise.all([
    create(desk, 'by id', { ...fixed, rateId: 'lock' }),
    create(desk, 'by amount', fixed),
    create(desk, 'other amount', { ...fixed, amount: '0.4' }),
    create(desk, 'no such lock', { ...fixed, rateId: 'none' }),
  ])
  const [byId, byAmount, other, none] = answers.map((answer) => (answer.ok ? answer.value.order : null))
  for (const kept of [byId, byAmount]) {
    expect(kept).toMatchObject({ receive_amount: '7.7', expires_at: expiresAtMs })
  }
  expect(other?.expires_at).toBe(world.clock.nowMs() + world.policy.lockMs)
  expect([none, toldBy(await create(desk, 'late', { ...fixed, rateId: 'none' }))]).toEqual([
    null,
    'RATE_EXPIRED',
  ])
})

test('an order has the terms of its quote, and what the policy says of such an order', async () => {
  const { desk, world } = await openStageDesk(undefined, {
    changes: {
      ...{ fees: { fixed: 110n, float: 40n }, lockMs: 600_000, floatOpenMs: 300_000 },
      ...{ tolerance: 33n, slippage: 150n, largeDeposits: { BTC: '0.5' } },
    },
  })
  const nowMs = world.clock.nowMs()
  const termsOf = async (key: string, more: Partial<CreateRequest>) => {
    const created = await create(desk, key, more)
    return created.ok ? (await findOrder(stage.db, created.value.order.order_id))?.terms : undefined
  }
  const float = await termsOf('float', { amount: '0.49999999' })
  const cost = world.market.payoutCost(assetOf('ETH:ETH'))
  expect(float).toMatchObject({
    ...{ feeShare: 40n, networkFee: cost, slippage: 150n, requiredConfirmations: 3 },
    // 0.33 %, of which not even the last unit is given away.
    ...{ expiresAtMs: nowMs + 300_000, tolerance: amountOf('BTC:BTC', 164_999n) },
  })
  expect(float?.fee).toEqual(float && shareOf(float.promises, 40n, 'up'))
  expect(await termsOf('large', { amount: '0.5' })).toMatchObject({ requiredConfirmations: 6 })
  expect(await termsOf('fixed', { rateType: 'fixed' })).toMatchObject({
    ...{ feeShare: 110n, expiresAtMs: nowMs + 600_000 },
  })
})

test('a quote that is kept comes back whole', async () => {
  const { desk, world } = await openStageDesk(undefined, { changes: { fees: { fixed: 110n, float: 40n } } })
  const { from, fromNetwork, to, toNetwork } = btcToEth
  const fixed = { rateType: 'fixed', direction: 'to', amount: '0.07' } as const
  const quoted = await desk.rate({ from, fromNetwork, to, toNetwork, ...fixed })
  if (!quoted.ok) throw new Error(quoted.rejection.message)
  const { rate_id: rateId = null, from_amount: amount, fee, rate, expires_at, market } = quoted.value
  const created = await create(desk, 'kept', { rateType: 'fixed', rateId, amount })
  if (!created.ok) throw new Error(created.rejection.message)
  const { order } = created.value
  expect(order).toMatchObject({
    receive_amount: '0.07',
    fee,
    rate,
    expires_at,
    network_fee: market.network_fee,
  })
  const terms = (await findOrder(stage.db, order.order_id))?.terms
  expect([terms?.feeShare, terms?.networkFee]).toEqual([110n, world.market.payoutCost(assetOf('ETH:ETH'))])
})

test('a lock is for its pair and amount, as long as there is time left to pay; the newest comes first', async () => {
  const { desk, world } = await openStageDesk()
  const { lockLeastLeftMs, lockMemoryMs } = world.policy
  const nowMs = world.clock.nowMs()
  const zero = amountOf('ETH:ETH', 0n)
  const keep = (rateId: string, satoshi: bigint, gwei: bigint, leftMs: number) => {
    const [from, to] = [amountOf('BTC:BTC', satoshi), amountOf('ETH:ETH', gwei * 10n ** 9n)]
    const quote = { from, to, rate: rateBetween(from, to, 'up'), fee: zero, networkFee: zero }
    const lock = { ...quote, feeShare: 70n, rateId, expiresAtMs: nowMs + leftMs }
    return insertRateLocks(stage.db, [lock], nowMs)
  }
  const order = async (key: string, amount: string, rateId: string | null = null, to = 'ETH') => {
    const created = await create(desk, key, { rateType: 'fixed', amount, rateId, to, toNetwork: to })
    return created.ok ? created.value.order.receive_amount : created.rejection.code
  }
  await keep('older', 50_000_000n, 70_000_000n, lockLeastLeftMs)
  await keep('newer', 50_000_000n, 80_000_000n, lockLeastLeftMs + 1)
  await keep('short', 40_000_000n, 70_000_000n, lockLeastLeftMs - 1)
  await keep('lapsed', 30_000_000n, 70_000_000n, 1 - lockMemoryMs)
  await keep('forgotten', 20_000_000n, 70_000_000n, -lockMemoryMs)
  expect(await order('a', '0.5')).toBe('0.08')
  expect(await order('b', '0.5', 'older')).toBe('0.07')
  expect(await rows('SELECT DISTINCT fee_share FROM orders'), 'of then').toEqual([{ fee_share: 70 }])
  expect(await order('c', '0.6', 'older'), 'another amount').toBe('INVALID_PARAMETER')
  expect(await order('d', '0.5', 'older', 'BNB'), 'another pair').toBe('INVALID_PARAMETER')
  expect(await order('e', '0.4'), 'too little time').toBe('RATE_EXPIRED')
  expect(await order('f', '0.3'), 'no time, and remembered').toBe('RATE_EXPIRED')
  expect(await order('g', '0.2', 'forgotten')).toBe('RATE_EXPIRED')
  expect(await order('h', '0.2'), 'at the rate of now').not.toBe('RATE_EXPIRED')
})

test('a lock that runs out while the database is slow opens nothing; who had an order of it is told of that', async () => {
  const { lockLeastLeftMs } = stage.world.policy
  /** What takes two seconds, once: a statement that holds this. It ends when what waits for it has come so far. */
  let slow: { readonly text: string; readonly until: () => boolean } | null = null
  let looks = 0
  const { desk, world } = await openStageDesk((next) => async (text, values) => {
    const waits = slow !== null && text.includes(slow.text) ? slow : null
    if (waits !== null) slow = null
    const answer = await next(text, values)
    if (text.includes('FROM rate_locks')) looks += 1
    if (waits === null) return answer as never
    await expect.poll(waits.until).toBe(true)
    stage.advance(2_000)
    return answer as never
  })
  const from = amountOf('BTC:BTC', 50_000_000n)
  const to = amountOf('ETH:ETH', 77n * 10n ** 17n)
  const zero = amountOf('ETH:ETH', 0n)
  const keep = (rateId: string) => {
    const nowMs = world.clock.nowMs()
    const quote = { from, to, rate: rateBetween(from, to, 'down'), fee: zero, networkFee: zero }
    const lock = { ...quote, feeShare: 100n, rateId, expiresAtMs: nowMs + lockLeastLeftMs + 1_000 }
    return insertRateLocks(stage.db, [lock], nowMs)
  }
  const fixed = (key: string, rateId: string) => create(desk, key, { rateType: 'fixed', rateId }).then(toldBy)
  const float = (key: string) => create(desk, key).then(toldBy)

  await keep('found_late')
  slow = { text: 'FROM rate_locks', until: () => true }
  expect(await fixed('a', 'found_late')).toBe('RATE_EXPIRED')

  await keep('opened_late')
  const looksBefore = looks
  slow = { text: 'INSERT INTO orders', until: () => looks > looksBefore }
  // All wait for the first to be written; a float order has no rate that could run out.
  const together = [float('b'), fixed('c', 'opened_late'), float('d')]
  expect(await Promise.all(together)).toEqual(['new', 'RATE_EXPIRED', 'new'])
  expect(await counted()).toEqual(each(2))

  await keep('kept')
  expect(await fixed('e', 'kept')).toBe('new')
  stage.advance(2_000)
  expect(await fixed('e', 'kept')).toBe('replay')
})

test('a statement whose answer is lost has created its orders: the repeat finds each', async () => {
  let isLost = false
  const { desk } = await openStageDesk((next) => async (text, values) => {
    const answer = await next(text, values)
    if (isLost && text.includes('INSERT INTO orders')) throw new Error('Connection terminated unexpectedly')
    return answer as never
  })
  isLost = true
  const lost = await Promise.allSettled(numbered(10).map((key) => create(desk, key)))
  expect(lost.map(({ status }) => status)).toEqual(lost.map(() => 'rejected'))
  expect(await counted()).toEqual(each(10))
  isLost = false
  const again = await Promise.all(numbered(10).map((key) => create(desk, key)))
  expect(again.map(toldBy)).toEqual(again.map(() => 'replay'))
  expect(await counted()).toEqual(each(10))
})

test('a statement whose connection dies before its end has created nothing: the repeat does', async () => {
  const { desk } = await openStageDesk()
  let died: PromiseSettledResult<unknown>[] = []
  await stage.db.transaction(async (tx) => {
    // Somebody else is about to fill half of the slots, so that whatever statement is to fill one stands still in its middle.
    await tx.query(
      `INSERT INTO retry_slots SELECT 'acc', 'key:n' || n, '', '', NULL, 0 FROM generate_series(5, 9) AS n`,
    )
    const creating = Promise.allSettled(numbered(10).map((key) => create(desk, key)))
    let isOver = false
    void creating.then(() => {
      isOver = true
    })
    const kill = () => stage.kill(`wait_event_type = 'Lock' AND query LIKE '%WITH wanted%'`)
    await expect.poll(() => kill().then(() => isOver)).toBe(true)
    died = await creating
    await tx.query(`DELETE FROM retry_slots WHERE order_id = ''`)
  })
  const failed = died.filter(({ status }) => status === 'rejected').length
  // Those five, and whoever shares a statement with one of them.
  expect(failed).toBeGreaterThanOrEqual(5)
  expect(await counted()).toEqual(each(10 - failed))
  const again = await Promise.all(numbered(10).map((key) => create(desk, key)))
  expect(again.every(({ ok }) => ok)).toBe(true)
  expect(await counted()).toEqual(each(10))
})

const ethToBtc = { from: 'ETH', fromNetwork: 'ETH', to: 'BTC', toNetwork: 'BTC', amount: '5' } as const

test('nobody is paid at an address where we keep our own money: it would be booked as paid and never leave', async () => {
  await insertAddresses(stage.db, 'evm', 'reserve', 0, ['evm reserve'])
  await insertAddresses(stage.db, 'bitcoin', 'reserve', 0, ['bitcoin reserve'])
  await insertAddresses(stage.db, 'bitcoin', 'change', 0, ['change 0', 'change 1'])
  const { desk } = await openStageDesk()
  const own: readonly [string, Partial<CreateRequest>][] = [
    ['destination', { destination: 'evm reserve' }],
    ['destination', { destination: 'evm reserve', to: 'USDT', toNetwork: 'BEP20' }],
    ['destination', { ...ethToBtc, destination: 'bitcoin reserve' }],
    ['destination', { ...ethToBtc, destination: 'change 1' }],
    ['refund_address', { refundAddress: 'change 0' }],
    ['refund_address', { ...ethToBtc, refundAddress: 'evm reserve' }],
  ]
  for (const [at, [field, request]] of own.entries()) {
    const refused = await create(desk, `own ${at}`, request)
    expect(refused, JSON.stringify(request)).toMatchObject({
      rejection: {
        code: 'INVALID_ADDRESS',
        details: [{ field, message: 'cannot be an address of the exchange itself' }],
      },
    })
    expect(!refused.ok && refused.rejection.message).toBe(
      `${field} cannot be an address of the exchange itself`,
    )
  }
  const both = { destination: 'evm reserve', refundAddress: 'change 0' }
  expect(await create(desk, 'both', both)).toMatchObject({
    rejection: { code: 'INVALID_ADDRESS', details: [{ field: 'destination' }, { field: 'refund_address' }] },
  })
  expect(await counted()).toMatchObject({ orders: 0 })

  const strangers: readonly Partial<CreateRequest>[] = [
    { destination: 'bitcoin reserve' },
    { destination: 'evm-99' },
    { ...ethToBtc, destination: 'bitcoin-99', refundAddress: 'change 0' },
  ]
  for (const [at, request] of strangers.entries()) {
    expect(toldBy(await create(desk, `stranger ${at}`, request)), JSON.stringify(request)).toBe('new')
  }
})

test('where payouts leave from is remembered once it is known; change is looked for each time, together', async () => {
  let asked = 0
  const { desk } = await openStageDesk((next) => (text, values) => {
    if (text.includes('FROM addresses')) asked += 1
    return next(text, values)
  })
  expect(toldBy(await create(desk, 'before', { destination: 'evm reserve' }))).toBe('new')
  await insertAddresses(stage.db, 'evm', 'reserve', 0, ['evm reserve'])
  expect(toldBy(await create(desk, 'after', { destination: 'evm reserve' }))).toBe('INVALID_ADDRESS')
  asked = 0
  expect(toldBy(await create(desk, 'known', { destination: 'evm reserve' }))).toBe('INVALID_ADDRESS')
  expect(asked).toBe(0)

  expect(toldBy(await create(desk, 'early', { ...ethToBtc, destination: 'change 3' }))).toBe('new')
  await insertAddresses(stage.db, 'bitcoin', 'change', 3, ['change 3'])
  asked = 0
  const together = Array.from({ length: 20 }, (_, at) =>
    create(desk, `late ${at}`, { ...ethToBtc, destination: 'change 3' }),
  )
  expect(new Set((await Promise.all(together)).map(toldBy))).toEqual(new Set(['INVALID_ADDRESS']))
  expect(asked).toBeLessThan(5)
})
