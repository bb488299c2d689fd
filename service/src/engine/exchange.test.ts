import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Chain } from '../chains/chain.ts'
import { showTime } from '../commands/table.ts'
import type { Database } from '../db/database.ts'
import { findOrder } from '../db/orders.ts'
import { saveComparison } from '../db/reconciliations.ts'
import { writeReserves } from '../db/reserves.ts'
import { assert } from '../domain/assert.ts'
import { assetOf } from '../domain/catalog/assets.ts'
import { amountOf } from '../domain/money/amount.ts'
import type { Order } from '../domain/orders/order.ts'
import type { RateType } from '../domain/quotes/quote.ts'
import { HOUR_MS } from '../domain/time.ts'
import type { Prices } from '../prices/price_source.ts'
import { isOutflowStopped } from './books/stopped_outflows.ts'
import { exchangeOrders } from './exchange.ts'
import { marketBoard } from './market.ts'
import { saveReserves } from './reserves.ts'
import {
  type BooksStage,
  confirmDeposit,
  lookAt,
  mineDeposit,
  openBooksStage,
  placeOrder,
  tell,
} from './testing/books_stage.ts'
import { runOrderCommand } from './testing/stage_commands.ts'

/**
 * What: orders that are due at the same moment are settled as far as the reserve reaches, and no further; at an agreed rate
 * also while nobody knows a price.
 * How: the real step and the real market board on a real PostgreSQL; a chain on paper that says what it holds.
 */
let stage: BooksStage

beforeAll(async () => {
  stage = await openBooksStage('exchange')
})
beforeEach(async () => {
  await stage.reset()
  const figure = {
    spendable: 0n,
    payoutCost: 1n,
    isUnpayable: false,
    atMs: stage.world.clock.nowMs(),
    figure: 0,
  }
  await writeReserves(stage.db, [{ asset: 'BTC:BTC', ...figure }])
})
afterAll(() => stage?.stop())

const USDT = 10n ** 18n

/**
 * A reserve of 50,000 USDT, or another, while one of anything is worth one of anything, or nobody knows what it is worth; as one
 * engine knows of it.
 */
function openMarket(prices: Prices = stage.world.prices, held = 50_000n * USDT) {
  const { db, clock, policy } = stage.world
  const market = marketBoard({ db, clock, prices, policy, assets: new Set(['BTC:BTC', 'USDT:ERC20']) })
  const chain: Chain = {
    ...stage.chain('ETH'),
    balance: async (asset) => (asset === 'USDT:ERC20' ? held : 0n),
    estimatePayout: async () => ({ cost: amountOf('ETH:ETH', 1n), isAboveFeeCap: false }),
  }
  const world = { ...stage.world, market }
  return {
    exchange: () => exchangeOrders(world),
    /** While whatever is written down of an order is undone. */
    exchangeInVain: () => {
      const transaction: Database['transaction'] = async () => {
        throw new Error('nothing of it can be written down')
      }
      return exchangeOrders({ ...world, db: { ...stage.db, transaction } })
    },
    reserve: () => market.reserve(assetOf('USDT:ERC20'), 'another order').units / USDT,
    /** While `meanwhile` happens between what it has found out and what it tells. */
    exchangeLate: (meanwhile: () => Promise<unknown>) => {
      const transaction: Database['transaction'] = async (work) => {
        await meanwhile()
        return stage.db.transaction(work)
      }
      return exchangeOrders({ ...world, db: { ...stage.db, transaction } })
    },
    refresh: () => market.refresh(),
    look: async () => {
      await saveReserves(world, chain, 100, 0)
      await market.refresh()
    },
    /** A watcher whose clock is ahead looks, and before it writes down what it has seen `meanwhile` happens. */
    lookAhead: async (aheadMs: number, meanwhile: () => Promise<unknown>) => {
      const clock = { ...world.clock, nowMs: () => world.clock.nowMs() + aheadMs }
      const transaction: Database['transaction'] = async (work) => {
        const seen = await stage.db.transaction(work)
        await meanwhile()
        return seen
      }
      await saveReserves({ ...world, clock, db: { ...stage.db, transaction } }, chain, 100, 0)
      await market.refresh()
    },
  }
}

async function paidOrder(promises: bigint, rateType: RateType = 'fixed'): Promise<Order> {
  const order = await placeOrder(stage, 'BTC:BTC', 'USDT:ERC20', { asks: 100_000_000n, promises, rateType })
  await confirmDeposit(stage, order, await mineDeposit(stage, order, 100_000_000n, 90))
  return order
}

async function areSettled(orders: readonly Order[]): Promise<boolean[]> {
  const states = orders.map(async ({ terms }) => (await findOrder(stage.db, terms.id))?.state)
  return (await Promise.all(states)).map(
    (state) => state !== undefined && 'settlement' in state && state.settlement !== null,
  )
}

/** All that was put off is due again. */
async function later(durationMs: number) {
  stage.advance(durationMs)
  for (const chain of ['BTC', 'ETH'] as const) await lookAt(stage, chain, 100)
}

test('of two that the reserve covers one by one and not together, one is settled', async () => {
  const { exchange, look } = openMarket()
  await look()
  const orders = [await paidOrder(30_000n * USDT), await paidOrder(30_000n * USDT)]
  await exchange()
  expect((await areSettled(orders)).filter(Boolean)).toHaveLength(1)
  await later(4_000)
  await look()
  await exchange()
  expect((await areSettled(orders)).filter(Boolean), 'after a new look').toHaveLength(1)
})

test('what was settled is taken off the figures that were there, and off new ones once', async () => {
  const { exchange, look, refresh } = openMarket()
  await look()
  const settled = await paidOrder(30_000n * USDT)
  await exchange()
  const tooLarge = await paidOrder(20_000n * USDT + 1n)
  await refresh()
  await exchange()
  expect(await areSettled([settled, tooLarge]), 'the same figures, read again').toEqual([true, false])
  await later(4_000)
  await look()
  const rest = await paidOrder(20_000n * USDT)
  await exchange()
  expect(await areSettled([settled, tooLarge, rest])).toEqual([true, false, true])
})

test('what was settled while a watcher looked is taken off what it has seen, whatever its clock says', async () => {
  const { exchange, look, lookAhead } = openMarket()
  await look()
  const settled = await paidOrder(30_000n * USDT)
  await lookAhead(2_000, exchange)
  const tooLarge = await paidOrder(20_000n * USDT + 1n)
  await exchange()
  expect(await areSettled([settled, tooLarge])).toEqual([true, false])
})

test('nor is it forgotten when figures from before are read once more in between', async () => {
  const { exchange, look, lookAhead, refresh } = openMarket()
  await look()
  const settled = await paidOrder(30_000n * USDT)
  await lookAhead(0, async () => {
    await exchange()
    await refresh()
  })
  const tooLarge = await paidOrder(20_000n * USDT + 1n)
  await exchange()
  expect(await areSettled([settled, tooLarge])).toEqual([true, false])
})

const noPrices: Prices = { usd: () => null }

test.each(['fixed', 'float'] as const)(
  'a %s order that was taken is settled while outflows of its chain are stopped',
  async (rateType) => {
    const { exchange, look, refresh } = openMarket({ usd: (currency) => (currency === 'BTC' ? 100n : 1n) })
    await look()
    const order = await paidOrder((990_099n * USDT) / 10_000n, rateType)
    const units = { ledgerUnits: 0n, inFlight: 0n, chainUnits: 1n, difference: 1n }
    const comparison = { asset: 'USDT:ERC20', height: 100, ...units } as const
    for (const nowMs of [1, 2, 3]) await saveComparison(stage.db, 'ETH', comparison, { nowMs, dueWallMs: 0 })
    await refresh()
    expect(await isOutflowStopped(stage.db, 'ETH')).toBe(true)
    await exchange()
    expect(await areSettled([order])).toEqual([true])
  },
)

test('a fixed order needs no price: what it pays was agreed', async () => {
  const { exchange, look } = openMarket(noPrices)
  await look()
  const order = await paidOrder(30_000n * USDT)
  await exchange()
  const exchanged = await findOrder(stage.db, order.terms.id)
  expect(exchanged?.state).toMatchObject({
    status: 'EXCHANGE',
    settlement: { received: order.terms.asks, paid: order.terms.promises },
  })
})

test('a float order is charged the fee that was agreed, whatever the fee is by now', async () => {
  const { exchange, look } = openMarket({ usd: (currency) => (currency === 'BTC' ? 100n : 1n) })
  await look()
  // 1 %, where the policy says 0.5 % by now, of 100 dollars less a millionth for the network.
  const order = await paidOrder((990_099n * USDT) / 10_000n, 'float')
  expect([order.terms.feeShare, stage.world.policy.fees.float]).toEqual([100n, 50n])
  await exchange()
  const exchanged = await findOrder(stage.db, order.terms.id)
  expect(exchanged?.state).toMatchObject({
    settlement: { paid: order.terms.promises, fee: { units: (990_099n * USDT) / 1_000_000n } },
  })
})

test('without a price too, no more is promised than the reserve covers', async () => {
  const { exchange, look } = openMarket(noPrices)
  await look()
  const tooLarge = await paidOrder(50_000n * USDT + 1n)
  const orders = [await paidOrder(30_000n * USDT), await paidOrder(30_000n * USDT)]
  await exchange()
  const [isTooLargeSettled, ...areOthersSettled] = await areSettled([tooLarge, ...orders])
  expect(isTooLargeSettled).toBe(false)
  expect(areOthersSettled.filter(Boolean)).toHaveLength(1)
})

test('a fixed order waits for both of its chains', async () => {
  for (const silent of ['BTC', 'ETH'] as const) {
    const { exchange, look } = openMarket(noPrices)
    const order = await paidOrder(100n * USDT)
    stage.advance(stage.world.policy.chainTroubleMs)
    await lookAt(stage, silent === 'BTC' ? 'ETH' : 'BTC', 100)
    await look()
    await exchange()
    expect(await areSettled([order]), `while ${silent} is silent`).toEqual([false])
    await later(1_000)
    await look()
    await exchange()
    expect(await areSettled([order]), `when ${silent} is back`).toEqual([true])
  }
})

test('why an exchange waits is listed, and is told of its order also when it was given up', async () => {
  const { exchange, exchangeInVain, look, refresh } = openMarket()
  await look()
  const { id } = (await paidOrder(50_000n * USDT + 1n)).terms
  const waiting = async () => (await runOrderCommand(stage, ['list', '--trouble'])).split('\n').slice(1)
  const told = async () => /^Exchange +(.*)$/m.exec(await runOrderCommand(stage, ['show', id]))?.[1]
  expect(await told()).toBeUndefined()
  const since = showTime(stage.world.clock.nowMs())
  await exchange()
  const why = 'the reserve of USDT:ERC20 does not cover it'
  const line = `${id}  -        ETH    exchange  waiting  50000.000000000000000001 USDT:ERC20  ${since}`
  expect(await waiting()).toEqual([`${line}  ${why}`])
  expect(await told()).toBe(`waits since ${since}: ${why}`)

  await later(1_000)
  await refresh()
  const [kept] = await stage.db.query<{ rate: string }>('SELECT rate FROM orders')
  await stage.corrupt("UPDATE orders SET rate = 'none'")
  await exchange()
  expect(await waiting(), 'another reason').toEqual([expect.stringMatching(`^${line}  Error: `)])
  await stage.corrupt('UPDATE orders SET rate = $1', [kept?.rate])

  await later(stage.world.policy.stallMs)
  await look()
  await exchangeInVain()
  expect(await told(), 'it cannot be given up').toContain('nothing of it can be written down')
  await later(60_000)
  await look()
  await exchange()
  expect((await findOrder(stage.db, id))?.state).toMatchObject({ reasons: ['NETWORK_PROBLEM'] })
  expect(await waiting()).toEqual([])
  expect(await told()).toBe(`had to wait: ${why}`)
  const level = 'warn'
  expect(stage.logged.at(-1)).toEqual({
    level,
    message: 'an exchange was given up',
    facts: { order: id, why },
  })
})

test('an exchange that waits since before the reason was kept, is listed without one', async () => {
  const { exchange, look } = openMarket()
  await look()
  const { id } = (await paidOrder(50_000n * USDT + 1n)).terms
  await exchange()
  await stage.corrupt('UPDATE orders SET exchange_trouble = NULL')
  expect(await runOrderCommand(stage, ['list', '--trouble'])).toMatch(new RegExp(`^${id} .* -$`, 'm'))
})

test('orders that fail whatever is tried keep no other waiting', async () => {
  const { exchange, look } = openMarket()
  await look()
  const broken: Order[] = []
  for (let made = 0; made < stage.world.policy.atOnce; made += 1) broken.push(await paidOrder(100n * USDT))
  const whole = await paidOrder(100n * USDT)
  await stage.corrupt("UPDATE orders SET rate = 'none' WHERE order_id = ANY($1)", [
    broken.map(({ terms }) => terms.id),
  ])
  await exchange()
  expect(await areSettled([whole])).toEqual([true])
  expect(stage.logged.filter(({ message }) => message === 'an exchange failed')).toHaveLength(broken.length)
})

test('an order that cannot be settled rests for longer and longer, and its amount is set aside once', async () => {
  const { exchangeInVain, look, refresh, reserve } = openMarket()
  await look()
  const { terms } = await paidOrder(20_000n * USDT)
  const restMs = async () => {
    const [row] = await stage.db.query<{ due: number }>(
      'SELECT exchange_due_at_ms AS due FROM orders WHERE order_id = $1',
      [terms.id],
    )
    return (row?.due ?? 0) - stage.world.clock.nowMs()
  }
  const rests: number[] = []
  for (let tries = 0; tries < 8; tries += 1) {
    await exchangeInVain()
    expect(reserve()).toBe(30_000n)
    rests.push(await restMs())
    await later(rests.at(-1) ?? 0)
    await refresh()
  }
  expect(rests.map((ms) => ms / 1_000)).toEqual([1, 1, 2, 4, 8, 16, 32, 60])
})

test('what a try that failed keeps of the reserve is not held against the next one of the same order, and against others it is', async () => {
  const { exchange, exchangeInVain, look, reserve } = openMarket()
  await look()
  const failed = await paidOrder(30_000n * USDT)
  await exchangeInVain()
  const other = await paidOrder(20_000n * USDT + 1n)
  await later(1_000)
  await exchange()
  expect(await areSettled([failed, other])).toEqual([true, false])
  expect(reserve(), 'it holds its amount once').toBe(20_000n)
})

test('what cannot even be given up rests too, and keeps no other waiting', async () => {
  const { exchange, exchangeInVain, look } = openMarket()
  await look()
  const broken = await paidOrder(50_000n * USDT + 1n)
  await exchange()
  await later(stage.world.policy.stallMs)
  await look()
  await exchangeInVain()
  const whole = await paidOrder(100n * USDT)
  await later(30_000)
  await look()
  await exchange()
  expect(await areSettled([whole])).toEqual([true])
  expect((await findOrder(stage.db, broken.terms.id))?.state.status, 'it rests').toBe('EXCHANGE')
  await later(30_000)
  await look()
  await exchange()
  expect((await findOrder(stage.db, broken.terms.id))?.state.status).toBe('EMERGENCY')
})

test('what waits for too long asks its customer, and the order tells since when', async () => {
  const { exchange, look } = openMarket()
  await look()
  const tooLarge = await paidOrder(50_000n * USDT + 1n)
  await exchange()
  for (const waitedMs of [stage.world.policy.stallMs - 2_000, 2_000]) {
    expect(await findOrder(stage.db, tooLarge.terms.id)).toMatchObject({ firstEmergencyAtMs: null })
    await later(waitedMs)
    await look()
    await exchange()
  }
  expect(await findOrder(stage.db, tooLarge.terms.id)).toMatchObject({
    state: { status: 'EMERGENCY', reasons: ['NETWORK_PROBLEM'] },
    firstEmergencyAtMs: stage.world.clock.nowMs(),
  })
})

test('what waited before the clock was set back asks its customer as soon as if it had begun to wait then', async () => {
  const { exchange, look } = openMarket()
  await later(8 * HOUR_MS)
  await look()
  const { terms } = await paidOrder(50_000n * USDT + 1n)
  await exchange()
  for (const passedMs of [-8 * HOUR_MS, stage.world.policy.stallMs]) {
    expect((await findOrder(stage.db, terms.id))?.state.status).toBe('EXCHANGE')
    await later(passedMs)
    await look()
    await exchange()
  }
  expect((await findOrder(stage.db, terms.id))?.state.status).toBe('EMERGENCY')
})

test('an exchange that begins anew, because its deposit had left the chain, waits as long again', async () => {
  const { exchange, look } = openMarket()
  await look()
  const { terms } = await paidOrder(50_000n * USDT + 1n)
  const found = async () => await findOrder(stage.db, terms.id)
  await exchange()
  const [deposit] = (await found())?.deposits ?? []
  assert(deposit !== undefined && deposit.block !== null, 'it was paid')
  const { key, txHash, amount, seenAtMs, block } = deposit
  await tell(stage, terms.id, `${key}:unmined`, { kind: 'DepositUnmined', key })
  expect((await found())?.state.status).toBe('PENDING')
  await later(stage.world.policy.stallMs)
  await look()
  const again = { kind: 'DepositSeen', key, txHash, amount, seenAtMs, block } as const
  await tell(stage, terms.id, `${key}:mined again`, again)
  await tell(stage, terms.id, `${key}:deep again`, { kind: 'DepositConfirmed', key })
  await exchange()
  expect((await found())?.state.status).toBe('EXCHANGE')
})

test('an exchange that another engine has settled meanwhile is not given up: what has waited is not its payout', async () => {
  const [late, other] = [openMarket(), openMarket(stage.world.prices, 60_000n * USDT)]
  await late.look()
  const { terms } = await paidOrder(50_000n * USDT + 1n)
  await late.exchange()
  await later(stage.world.policy.stallMs)
  await late.refresh()
  await other.look()
  await late.exchangeLate(other.exchange)
  expect((await findOrder(stage.db, terms.id))?.state).toMatchObject({
    status: 'EXCHANGE',
    payoutId: `${terms.id}:1`,
  })
  const planned = await stage.db.query('SELECT payout_id, state FROM outflows')
  expect(planned).toEqual([{ payout_id: `${terms.id}:1`, state: 'planned' }])
  const told = await stage.db.query("SELECT fact_key, outcome FROM facts WHERE kind = 'ExchangeStalled'")
  expect(told, 'it was told').toEqual([{ fact_key: 'stalled:3', outcome: 'ignored' }])
})

test('an exchange whose payout was called off, because its deposit had left the chain, is settled again', async () => {
  const { exchange, look } = openMarket()
  await look()
  const { terms } = await paidOrder(USDT)
  const found = async () => (await findOrder(stage.db, terms.id))?.state
  await exchange()
  expect(await found()).toMatchObject({ status: 'EXCHANGE', payoutId: `${terms.id}:1` })
  const [deposit] = (await findOrder(stage.db, terms.id))?.deposits ?? []
  assert(deposit !== undefined && deposit.block !== null, 'it was paid')
  const { key, txHash, amount, seenAtMs, block } = deposit
  await tell(stage, terms.id, `${key}:unmined`, { kind: 'DepositUnmined', key })
  const again = { kind: 'DepositSeen', key, txHash, amount, seenAtMs, block } as const
  await tell(stage, terms.id, `${key}:mined again`, again)
  await tell(stage, terms.id, `${key}:deep again`, { kind: 'DepositConfirmed', key })
  await exchange()
  expect(await found()).toMatchObject({ status: 'EXCHANGE', payoutId: `${terms.id}:2` })
  const planned = await stage.db.query('SELECT payout_id, state FROM outflows ORDER BY payout_id')
  expect(planned).toEqual([
    { payout_id: `${terms.id}:1`, state: 'cancelled' },
    { payout_id: `${terms.id}:2`, state: 'planned' },
  ])
})

test('of many there may be more, and those whose payouts are on their way keep no other waiting', async () => {
  const { exchange, look } = openMarket()
  await look()
  for (let paid = 0; paid < 50; paid += 1) await paidOrder(USDT)
  expect(await exchange()).toBe(true)
  const last = await paidOrder(USDT)
  expect(await exchange()).toBe(false)
  expect(await areSettled([last])).toEqual([true])
})
