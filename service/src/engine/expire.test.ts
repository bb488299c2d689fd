import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { noteLooked } from '../db/chain_heads.ts'
import type { Database } from '../db/database.ts'
import { takeLease } from '../db/leases.ts'
import { findExpired, findKeptWaiting, findOrder } from '../db/orders.ts'
import { assert } from '../domain/assert.ts'
import type { AssetId } from '../domain/catalog/assets.ts'
import type { ChainId } from '../domain/catalog/networks.ts'
import { amountOf } from '../domain/money/amount.ts'
import type { Order } from '../domain/orders/order.ts'
import { HOUR_MS } from '../domain/time.ts'
import { apply } from './apply.ts'
import { expireOrders } from './expire.ts'
import {
  type BooksStage,
  confirmDeposit,
  lookAt,
  mineDeposit,
  openBooksStage,
  placeOrder,
  tell,
} from './testing/books_stage.ts'
import { pagesTouched } from './testing/pages_touched.ts'

/**
 * What: an order whose time is up ends when its own chain was looked at since, whatever the others do.
 * How: a real PostgreSQL; the clock is ours, and looks at chains are written down as a watcher would.
 */
const LIFE_MS = 900_000
const WHOLE = 10n ** 18n
let stage: BooksStage

beforeAll(async () => {
  stage = await openBooksStage('expire')
})
beforeEach(() => stage.reset())
afterAll(() => stage?.stop())

function orderFrom(from: AssetId) {
  const to: AssetId = from === 'ETH:ETH' ? 'BTC:BTC' : 'ETH:ETH'
  return placeOrder(stage, from, to, { asks: WHOLE, promises: WHOLE })
}

async function lookNow(...chains: ChainId[]) {
  for (const chain of chains) await lookAt(stage, chain, 101)
}

/** As a watcher does, which keeps the later of two times. */
async function noteLook(chain: ChainId) {
  const nowMs = stage.world.clock.nowMs()
  const lease = await takeLease(stage.db, `watch:${chain}`, 'a watcher', nowMs, HOUR_MS)
  assert(lease !== null, 'nobody else watches')
  await noteLooked(stage.db, lease, chain, { nodeHeight: 101, nowMs, wallMs: nowMs })
}

async function statuses() {
  const rows = await stage.db.query<{ from_asset: string; status: string }>(
    'SELECT from_asset, status FROM orders ORDER BY order_id',
  )
  return rows.map(({ from_asset, status }) => `${from_asset} ${status}`)
}

test('an order ends when its time is up, on every network, and none before', async () => {
  await orderFrom('BTC:BTC')
  await orderFrom('USDC:BEP20')
  stage.advance(LIFE_MS - 1)
  await orderFrom('ETH:ETH')
  await lookNow('BTC', 'BNB', 'ETH')
  expect(await expireOrders(stage.world)).toBe(false)
  expect(await statuses()).toEqual(['BTC:BTC NEW', 'USDC:BEP20 NEW', 'ETH:ETH NEW'])
  stage.advance(1)
  await lookNow('BTC', 'BNB', 'ETH')
  await expireOrders(stage.world)
  expect(await statuses()).toEqual(['BTC:BTC EXPIRED', 'USDC:BEP20 EXPIRED', 'ETH:ETH NEW'])
})

test('while its chain is not looked at an order waits, and keeps no other waiting', async () => {
  await orderFrom('BTC:BTC')
  await orderFrom('ETH:ETH')
  await lookNow('BTC', 'ETH')
  stage.advance(LIFE_MS)
  await lookNow('ETH')
  await expireOrders(stage.world)
  expect(await statuses()).toEqual(['BTC:BTC NEW', 'ETH:ETH EXPIRED'])
  await lookNow('BTC')
  await expireOrders(stage.world)
  expect(await statuses()).toEqual(['BTC:BTC EXPIRED', 'ETH:ETH EXPIRED'])
})

test('a look that was noted before the clock was set back ends nothing once the chain is no longer looked at', async () => {
  stage.advance(HOUR_MS)
  await lookNow('ETH')
  stage.advance(-HOUR_MS)
  await orderFrom('ETH:ETH')
  await noteLook('ETH')
  stage.advance(LIFE_MS)
  await expireOrders(stage.world)
  expect(await statuses()).toEqual(['ETH:ETH NEW'])
  await lookNow('ETH')
  await expireOrders(stage.world)
  expect(await statuses()).toEqual(['ETH:ETH EXPIRED'])
})

test('an order that cannot be ended keeps no other waiting', async () => {
  const broken = await orderFrom('ETH:ETH')
  await orderFrom('ETH:ETH')
  stage.advance(LIFE_MS)
  await lookNow('ETH')
  const { db } = stage.world
  const transaction: typeof db.transaction = (work) =>
    db.transaction((tx) =>
      work({
        query: (text, values) =>
          values?.includes(broken.terms.id)
            ? Promise.reject(new Error('it cannot be read'))
            : tx.query(text, values),
      }),
    )
  await expireOrders({
    ...stage.world,
    policy: { ...stage.world.policy, atOnce: 1 },
    db: { ...db, transaction },
  })
  expect((await statuses()).toSorted()).toEqual(['ETH:ETH EXPIRED', 'ETH:ETH NEW'])
  expect(stage.logged).toContainEqual(expect.objectContaining({ message: 'an order could not be ended' }))
})

test('where none can be ended the step fails, names one of each kind, and is not begun again at once', async () => {
  const orders = [await orderFrom('ETH:ETH'), await orderFrom('ETH:ETH'), await orderFrom('ETH:ETH')]
  const own = orders[1]?.terms.id ?? ''
  stage.advance(LIFE_MS)
  await lookNow('ETH')
  const refused = new Error('nothing can be written')
  const unreadable = new TypeError('it is not as it is read')
  const transaction: Database['transaction'] = (work) =>
    stage.db.transaction(() =>
      work({ query: (_, values) => Promise.reject(values?.includes(own) ? unreadable : refused) }),
    )
  const db = { ...stage.db, transaction }
  const failure = await expireOrders({ ...stage.world, db }).catch((error: unknown) => error)
  assert(failure instanceof AggregateError, 'the step fails')
  const causes = failure.errors.map(({ cause }) => cause)
  expect(new Set(causes)).toEqual(new Set([refused, unreadable]))
  expect(causes).toHaveLength(2)
  expect(failure.errors.find(({ cause }) => cause === unreadable).message).toContain(own)
  expect(stage.logged).not.toContainEqual(expect.objectContaining({ message: 'an order could not be ended' }))
})

test('an order to which something is on its way does not end, nor one of a chain that is not connected', async () => {
  const paid = await orderFrom('ETH:ETH')
  await mineDeposit(stage, paid, WHOLE, 101)
  await orderFrom('BTC:BTC')
  stage.advance(LIFE_MS)
  await lookNow('ETH', 'BTC')
  const bitcoin = stage.chain('BTC')
  const chains = new Map(stage.chains)
  chains.delete('BTC')
  await expireOrders({ ...stage.world, chains })
  expect(await statuses()).toEqual(['ETH:ETH PENDING', `${bitcoin.assets[0]} NEW`])
})

const OTHER_HALF = 'ETH:the-other-half:0'
const otherHalf = {
  kind: 'DepositSeen',
  key: OTHER_HALF,
  txHash: 'the-other-half',
  amount: amountOf('ETH:ETH', WHOLE / 2n),
} as const

async function sendHalf(order: Order, toldMs: number): Promise<void> {
  await tell(stage, order.terms.id, `${OTHER_HALF}:seen:${toldMs}`, {
    ...otherHalf,
    seenAtMs: stage.world.clock.nowMs(),
    block: null,
  })
}

/** Half is confirmed, the other half lies in a mempool, and an hour after its end that is long enough. */
async function orderThatWaits(): Promise<Order> {
  const order = await orderFrom('ETH:ETH')
  const key = await mineDeposit(stage, order, WHOLE / 2n, 101)
  await sendHalf(order, 0)
  await confirmDeposit(stage, order, key)
  stage.advance(LIFE_MS + HOUR_MS)
  await lookNow('ETH')
  return order
}

async function takeHalfIntoBlock(order: Order, hash = 'x'): Promise<void> {
  await tell(stage, order.terms.id, `${OTHER_HALF}:mined:${hash}`, {
    ...otherHalf,
    seenAtMs: 0,
    block: { height: 102, hash },
  })
}

test('too little waits an hour for what lies in a mempool, and until the chain was looked at since', async () => {
  const order = await orderFrom('ETH:ETH')
  const key = await mineDeposit(stage, order, WHOLE / 2n, 101)
  await sendHalf(order, 0)
  await confirmDeposit(stage, order, key)
  stage.advance(LIFE_MS + HOUR_MS - 1)
  await lookNow('ETH')
  await expireOrders(stage.world)
  stage.advance(1)
  await expireOrders(stage.world)
  expect(await statuses()).toEqual(['ETH:ETH PENDING'])
  await lookNow('ETH')
  expect(await expireOrders(stage.world)).toBe(false)
  expect(await statuses()).toEqual(['ETH:ETH EMERGENCY'])
})

test('an order whose late deposit comes and vanishes ends a second time', async () => {
  const order = await orderFrom('ETH:ETH')
  const expire = async () => {
    await lookNow('ETH')
    await expireOrders(stage.world)
    return (await statuses())[0]
  }
  await sendHalf(order, 0)
  stage.advance(LIFE_MS)
  const vanish = (time: number) => {
    const fact = { kind: 'DepositVanished', key: OTHER_HALF } as const
    return tell(stage, order.terms.id, `${OTHER_HALF}:vanished:${time}`, fact)
  }
  await vanish(1)
  expect(await expire()).toBe('ETH:ETH EXPIRED')
  await sendHalf(order, 1)
  expect((await statuses())[0]).toBe('ETH:ETH PENDING')
  await vanish(2)
  expect(await expire()).toBe('ETH:ETH EXPIRED')
})

test('a wait is of an order that is open, for nothing else, and counts what counts', async () => {
  const { terms } = await orderThatWaits()
  const found = () => findKeptWaiting(stage.db, ['ETH'], HOUR_MS, stage.world.clock.nowMs(), 10)
  const [first] = await found()
  expect(first).toMatchObject({ orderId: terms.id })
  for (const state of ['seen', 'confirmed']) {
    await stage.corrupt("UPDATE deposits SET role = 'extra' WHERE state = $1", [state])
    expect(await found(), `what is ${state} does not count`).toEqual([])
    await stage.corrupt("UPDATE deposits SET role = 'counted'")
  }
  await apply(stage.world, terms.id, 'too early', { kind: 'OrderExpired', atMs: 0 })
  expect(await found(), 'what changes nothing is no other wait').toEqual([first])
})

test('a block that takes what waited, and gives it back, ends no wait for good', async () => {
  const order = await orderThatWaits()
  const found = await findKeptWaiting(stage.db, ['ETH'], HOUR_MS, stage.world.clock.nowMs(), 10)
  expect(found).toHaveLength(1)
  stage.advance(1)
  await takeHalfIntoBlock(order)
  // As who found it a moment before.
  const { orderId, changes } = found[0] ?? { orderId: '', changes: 0 }
  const late = await apply(stage.world, orderId, `awaited:${changes}`, {
    kind: 'OrderExpired',
    atMs: stage.world.clock.nowMs(),
  })
  expect(late.kind).toBe('ignored')
  await expireOrders(stage.world)
  expect(await statuses()).toEqual(['ETH:ETH PENDING'])
  stage.advance(1)
  await tell(stage, order.terms.id, `${OTHER_HALF}:unmined:x`, { kind: 'DepositUnmined', key: OTHER_HALF })
  await expireOrders(stage.world)
  expect(await statuses(), 'the next block of the same look may bring it').toEqual(['ETH:ETH PENDING'])
  await lookNow('ETH')
  await expireOrders(stage.world)
  expect(await statuses()).toEqual(['ETH:ETH EMERGENCY'])
})

test('a wait is told from the one before, also where those who tell it have clocks that are behind', async () => {
  const order = await orderFrom('ETH:ETH')
  const key = await mineDeposit(stage, order, WHOLE / 2n, 101)
  await sendHalf(order, 0)
  stage.advance(LIFE_MS + HOUR_MS)
  await confirmDeposit(stage, order, key)
  await lookNow('ETH')
  const [found] = await findKeptWaiting(stage.db, ['ETH'], HOUR_MS, stage.world.clock.nowMs(), 10)
  // By a watcher for whom it is no later than the last change: the order then says nothing else.
  await takeHalfIntoBlock(order)
  const late = await apply(stage.world, order.terms.id, `awaited:${found?.changes}`, {
    kind: 'OrderExpired',
    atMs: stage.world.clock.nowMs(),
  })
  expect(late.kind).toBe('ignored')
  await tell(stage, order.terms.id, `${OTHER_HALF}:unmined:x`, { kind: 'DepositUnmined', key: OTHER_HALF })
  await lookNow('ETH')
  await expireOrders(stage.world)
  expect(await statuses()).toEqual(['ETH:ETH EMERGENCY'])
})

/** Told of too little, and has paid the rest since; twice, but a block took the second payment back into the mempool. */
async function orderThatWaitsAskedAlready(rest: bigint): Promise<Order> {
  const order = await orderFrom('ETH:ETH')
  await confirmDeposit(stage, order, await mineDeposit(stage, order, WHOLE / 2n, 101))
  const key = await mineDeposit(stage, order, rest, 102)
  await takeHalfIntoBlock(order)
  await confirmDeposit(stage, order, key)
  await tell(stage, order.terms.id, `${OTHER_HALF}:unmined:x`, { kind: 'DepositUnmined', key: OTHER_HALF })
  return order
}

test('nor does an order wait longer whose customer was asked before, and has paid what was asked since', async () => {
  const order = await orderThatWaitsAskedAlready(WHOLE / 2n + 1n)
  expect(await statuses()).toEqual(['ETH:ETH EMERGENCY'])
  stage.advance(LIFE_MS + HOUR_MS - 1)
  await lookNow('ETH')
  await expireOrders(stage.world)
  stage.advance(1)
  await expireOrders(stage.world)
  expect(await statuses(), 'the chain was not looked at since').toEqual(['ETH:ETH EMERGENCY'])
  await lookNow('ETH')
  await expireOrders(stage.world)
  expect((await findOrder(stage.db, order.terms.id))?.state).toEqual({ status: 'EXCHANGE', settlement: null })
})

test('an order whose customer is asked is told so once, where that changes nothing', async () => {
  const order = await orderThatWaitsAskedAlready(WHOLE / 4n)
  stage.advance(LIFE_MS + HOUR_MS)
  await lookNow('ETH')
  const found = () => findKeptWaiting(stage.db, ['ETH'], HOUR_MS, stage.world.clock.nowMs(), 10)
  expect(await found()).toMatchObject([{ orderId: order.terms.id }])
  await expireOrders(stage.world)
  expect(await statuses()).toEqual(['ETH:ETH EMERGENCY'])
  expect(await found()).toEqual([])
  stage.advance(1)
  await takeHalfIntoBlock(order, 'y')
  await tell(stage, order.terms.id, `${OTHER_HALF}:unmined:y`, { kind: 'DepositUnmined', key: OTHER_HALF })
  await lookNow('ETH')
  expect(await found(), 'what has changed is another wait').toMatchObject([{ orderId: order.terms.id }])
  await stage.corrupt("UPDATE orders SET emergency_reasons = '{NETWORK_PROBLEM,UNDERPAID}'")
  expect(await found(), 'and what deposits do not cure is none').toEqual([])
})

test('a wait that was over while it was to be ended keeps the next one from nothing', async () => {
  const order = await orderThatWaits()
  let isTaken = false
  const transaction: typeof stage.db.transaction = async (work) => {
    if (!isTaken) {
      isTaken = true
      await takeHalfIntoBlock(order)
    }
    return stage.db.transaction(work)
  }
  await expireOrders({ ...stage.world, db: { ...stage.db, transaction } })
  expect(await statuses()).toEqual(['ETH:ETH PENDING'])
  await tell(stage, order.terms.id, `${OTHER_HALF}:unmined:x`, { kind: 'DepositUnmined', key: OTHER_HALF })
  await lookNow('ETH')
  await expireOrders(stage.world)
  expect(await statuses()).toEqual(['ETH:ETH EMERGENCY'])
})

test('of many there may be more, and all end', async () => {
  for (let made = 0; made < 201; made += 1) await orderFrom('BTC:BTC')
  stage.advance(LIFE_MS)
  await lookNow('BTC')
  expect(await expireOrders(stage.world)).toBe(true)
  expect(await expireOrders(stage.world)).toBe(false)
  expect(new Set(await statuses())).toEqual(new Set(['BTC:BTC EXPIRED']))
})

test('a clock that is set back while an order ends keeps it open for no longer than that', async () => {
  await orderFrom('ETH:ETH')
  stage.advance(LIFE_MS)
  await lookNow('ETH')
  let looks = 0
  const setBack = {
    ...stage.world.clock,
    nowMs: () => {
      looks += 1
      return stage.world.clock.nowMs() - (looks === 1 ? 0 : 20)
    },
  }
  await expireOrders({ ...stage.world, clock: setBack })
  await expireOrders(stage.world)
  expect(looks).toBeGreaterThan(1)
  expect(await statuses()).toEqual(['ETH:ETH EXPIRED'])
})

test('what lapsed where nobody can look is not read for those who expire elsewhere', async () => {
  const both = [
    { id: 'BTC:BTC', chain: 'BTC' },
    { id: 'ETH:ETH', chain: 'ETH' },
  ] as const
  const find = async () => {
    await stage.corrupt('VACUUM (ANALYZE) orders, chain_heads')
    return stage.db.transaction(async (tx) => {
      // A table of a few pages is read whole, whatever the index says; one of a service is not.
      await tx.query('SET LOCAL enable_seqscan = off')
      return pagesTouched(tx, (sql) => findExpired(sql, both, stage.world.clock.nowMs(), 200))
    })
  }
  await orderFrom('BTC:BTC')
  stage.advance(LIFE_MS)
  const ofOne = await find()
  for (let made = 0; made < 300; made += 1) await orderFrom('BTC:BTC')
  stage.advance(LIFE_MS)
  // All of them have lapsed, and their chain was not looked at since.
  expect(await find()).toBeLessThanOrEqual(ofOne + 3)
})
