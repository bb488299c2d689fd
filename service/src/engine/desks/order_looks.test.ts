import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type Chance, chanceFrom } from '../../../test/harness/chance.ts'
import type { Database } from '../../db/database.ts'
import { findOrder, markOutflowCommitted } from '../../db/orders.ts'
import { setOutflowState } from '../../db/outflows.ts'
import { amountOf } from '../../domain/money/amount.ts'
import type { Fact } from '../../domain/orders/facts.ts'
import type { OrderId } from '../../domain/orders/identifiers.ts'
import { type Order, orderStatuses } from '../../domain/orders/order.ts'
import { marketOf } from '../../domain/orders/testing/story.ts'
import { apply } from '../apply.ts'
import { emergencyOffers } from '../emergency_offers.ts'
import type { MarketBoard } from '../market.ts'
import {
  type BooksStage,
  confirmDeposit,
  mineDeposit,
  openBooksStage,
  placeOrder,
} from '../testing/books_stage.ts'
import { watchedDatabase } from '../testing/watched_database.ts'
import type { DeskWorld } from '../world.ts'
import type { OrderView } from './desk.ts'
import { openDesk } from './desks.ts'
import { hashToken } from './open_order.ts'
import { orderLooks } from './order_looks.ts'

/**
 * What: whoever has looked at an order before sees what a newcomer sees, whatever happened to it since and whoever did
 * it; and no more is read for it than has to be.
 * How: a real PostgreSQL, orders moved by facts through `apply`; every look of a desk that remembers is compared with
 * that of one that never looked before.
 */
let stage: BooksStage

beforeAll(async () => {
  stage = await openBooksStage('order-looks')
})
beforeEach(() => stage.reset())
afterAll(() => stage?.stop())

/** What the market board knows, and the test changes. */
type Outside = { headHeight: number; changeBps: bigint }

function deskWorld(outside: Outside, db: Database = stage.db): DeskWorld {
  const market: MarketBoard = {
    ...stage.world.market,
    headHeight: () => outside.headHeight,
    read: (from, to) => ({ ok: true, value: marketOf({ from: from.id, to: to.id }, outside) }),
    payoutCost: (asset) => amountOf(asset.id, 1_000n),
  }
  return {
    ...stage.world,
    db,
    market,
    seal: () => 'seal',
    tokenOf: () => 'token',
    randomDigits: () => '',
    randomId: () => '',
  }
}

const owner = { kind: 'account', accountId: 'acc_stage' } as const
const ASKS = 50_000_000n

function place(): Promise<Order> {
  return placeOrder(stage, 'BTC:BTC', 'USDT:ERC20', { asks: ASKS, promises: 3_200_000_000n })
}

/** What could be told of the order next: by no means all of it changes it. */
function anyFact(world: DeskWorld, order: Order, chance: Chance): Fact {
  const txHash = chance.pick(['tx1', 'tx2'])
  const key = `BTC:${txHash}:0`
  const payoutId = 'payoutId' in order.state ? order.state.payoutId : 'none'
  const height = chance.between(100, 102)
  const offers = emergencyOffers(order, world.market)
  const cost = amountOf(order.state.status === 'REFUND' ? 'BTC:BTC' : 'ETH:ETH', 7n)
  const seen = (block: { height: number; hash: string } | null): Fact => ({
    kind: 'DepositSeen',
    key,
    txHash,
    amount: amountOf('BTC:BTC', chance.pick([ASKS, ASKS, ASKS / 2n])),
    seenAtMs: world.clock.nowMs(),
    block,
  })
  const refund = offers.refund && { ...offers.refund, address: `refund-${txHash}` }
  const refunded: Fact = { kind: 'ActionChosen', action: 'refund', refund }
  const confirmed: Fact = { kind: 'PayoutConfirmed', payoutId, txHash: `payout-${txHash}`, cost }
  const stalled: Fact =
    'payoutId' in order.state
      ? { kind: 'ExchangeStalled', payoutId }
      : { kind: 'ExchangeStalled', payoutId: null, sequence: order.sequence }
  // What few stories would come to by chance alone.
  if (order.state.status === 'EMERGENCY' && chance.happens(0.3)) return refunded
  if (order.state.status === 'REFUND' && chance.happens(0.3)) return confirmed
  return chance.pick<Fact>([
    seen(null),
    seen({ height, hash: `block-${height}` }),
    seen({ height, hash: `block-${height}` }),
    { kind: 'DepositConfirmed', key },
    { kind: 'DepositConfirmed', key },
    { kind: 'DepositUnmined', key },
    { kind: 'DepositVanished', key },
    { kind: 'OrderExpired', atMs: world.clock.nowMs() },
    { kind: 'ExchangePriced', quote: offers.recalculate },
    { kind: 'ExchangePriced', quote: offers.recalculate },
    stalled,
    { kind: 'PayoutBroadcast', payoutId, txHash: `payout-${txHash}` },
    { kind: 'PayoutBroadcast', payoutId, txHash: `payout-${txHash}` },
    confirmed,
    { kind: 'PayoutFailed', payoutId, problem: 'DESTINATION_PROBLEM', cost: null },
    { kind: 'ActionChosen', action: chance.pick(['continue', 'recalculate']), quote: offers.continue },
    refunded,
  ])
}

/** As a worker tells of an outflow: with what it knows of the row itself. */
async function happen(order: Order, index: number, fact: Fact): Promise<void> {
  await apply(stage.world, order.terms.id, `fact ${index}`, fact, async (tx) => {
    if (fact.kind === 'PayoutBroadcast') await markOutflowCommitted(tx, order.terms.id)
    if (fact.kind === 'PayoutFailed') await setOutflowState(tx, fact.payoutId, ['planned'], 'failed')
  })
}

test('after everything that may happen, who looked before sees what a newcomer sees', async () => {
  const outside: Outside = { headHeight: 102, changeBps: 0n }
  const world = deskWorld(outside)
  const frequent = openDesk(world)
  const rare = openDesk(world)
  const chance = chanceFrom(7)
  const seen = new Set<string>()
  for (let story = 0; story < 30; story += 1) {
    const { terms } = await place()
    for (let index = 0; index < 25; index += 1) {
      const order = await findOrder(stage.db, terms.id)
      if (order === null) throw new Error('the order is there')
      if (chance.happens(0.1)) stage.advance(300_000)
      if (chance.happens(0.1)) outside.headHeight += 1
      if (chance.happens(0.1)) outside.changeBps += 10n
      await happen(order, index, anyFact(world, order, chance))
      const newcomer = await openDesk(world).findOrder(terms.id, owner)
      seen.add(JSON.stringify({ ...newcomer, order_id: null }))
      expect(await frequent.findOrder(terms.id, owner)).toEqual(newcomer)
      if (chance.happens(0.2)) expect(await rare.findOrder(terms.id, owner)).toEqual(newcomer)
    }
  }
  const statuses = new Set([...seen].map((view) => (JSON.parse(view) as OrderView).status))
  expect([...statuses].sort(), 'the stories go everywhere').toEqual([...orderStatuses].sort())
})

test('confirmations grow with the chain, although nothing of the order changes', async () => {
  const outside: Outside = { headHeight: 100, changeBps: 0n }
  const desk = openDesk(deskWorld(outside))
  const order = await place()
  await mineDeposit(stage, order, ASKS, 100)
  const confirmations = async () => (await desk.findOrder(order.terms.id, owner))?.deposit_confirmations
  expect(await confirmations()).toBe(1)
  outside.headHeight = 101
  expect(await confirmations()).toBe(2)
})

test('what an emergency offers follows the market at every look', async () => {
  const outside: Outside = { headHeight: 100, changeBps: 0n }
  const desk = openDesk(deskWorld(outside))
  const order = await place()
  await confirmDeposit(stage, order, await mineDeposit(stage, order, ASKS / 2n, 100))
  const offered = async () => {
    const view = await desk.findOrder(order.terms.id, owner)
    return Number(view?.emergency?.options.recalculate?.rate)
  }
  const before = await offered()
  outside.changeBps = 1_000n
  expect(await offered()).toBeGreaterThan(before * 1.05)
})

test('an order is shown to its account only, whoever has looked at it before', async () => {
  const desk = openDesk(deskWorld({ headHeight: 100, changeBps: 0n }))
  const { terms } = await place()
  const stranger = { kind: 'account', accountId: 'acc_stranger' } as const
  const looks = () =>
    Promise.all([owner, stranger, owner, stranger].map((viewer) => desk.findOrder(terms.id, viewer)))
  for (const [mine, theirs, mineAgain, theirsAgain] of [await looks(), await looks()]) {
    expect([mine?.order_id, mineAgain?.order_id]).toEqual([terms.id, terms.id])
    expect([theirs, theirsAgain]).toEqual([null, null])
  }
})

test('one whose account has changed, and one that is gone, are not shown from memory', async () => {
  const desk = openDesk(deskWorld({ headHeight: 100, changeBps: 0n }))
  const [moved, gone] = [await place(), await place()]
  for (const { terms } of [moved, gone]) expect(await desk.findOrder(terms.id, owner)).not.toBeNull()
  await stage.corrupt(`UPDATE orders SET account_id = 'acc_other' WHERE order_id = $1`, [moved.terms.id])
  await stage.corrupt(`DELETE FROM events WHERE order_id = $1`, [gone.terms.id])
  await stage.corrupt(`DELETE FROM facts WHERE order_id = $1`, [gone.terms.id])
  await stage.corrupt(`DELETE FROM orders WHERE order_id = $1`, [gone.terms.id])
  for (const { terms } of [moved, gone]) expect(await desk.findOrder(terms.id, owner)).toBeNull()
})

test('without the database there is an error, never an old answer', async () => {
  const { db, cut } = watchedDatabase(stage.db)
  const desk = openDesk(deskWorld({ headHeight: 100, changeBps: 0n }, db))
  const { terms } = await place()
  await desk.findOrder(terms.id, owner)
  cut()
  await expect(desk.findOrder(terms.id, owner)).rejects.toThrow('away')
})

test('looks that come together are one statement, and each gets its own order', async () => {
  const { db, asked } = watchedDatabase(stage.db)
  const desk = openDesk(deskWorld({ headHeight: 100, changeBps: 0n }, db))
  const orders = [await place(), await place(), await place()]
  const ids = [...orders, ...orders].map(({ terms }) => terms.id)
  const look = () => Promise.all(ids.map((id) => desk.findOrder(id, owner)))
  const first = await look()
  expect(first.map((view) => view?.order_id)).toEqual(ids)
  const askedBefore = asked()
  const second = await look()
  expect(second.map((view) => view?.order_id)).toEqual(ids)
  expect(asked() - askedBefore, 'the first goes alone, the others wait for it').toBeLessThanOrEqual(2)
})

test('a look that comes while a statement is under way does not take its answer', async () => {
  const hold = holdingDatabase()
  const desk = openDesk(deskWorld({ headHeight: 100, changeBps: 0n }, hold.db))
  const order = await place()
  await desk.findOrder(order.terms.id, owner)
  hold.shut()
  const early = desk.findOrder(order.terms.id, owner)
  await hold.caught()
  await mineDeposit(stage, order, ASKS, 100)
  const late = desk.findOrder(order.terms.id, owner)
  hold.open()
  expect([(await early)?.status, (await late)?.status]).toEqual(['NEW', 'PENDING'])
})

test('who looks with the token sees the order and its deposits as of one moment', async () => {
  const hold = holdingDatabase()
  const desk = openDesk(deskWorld({ headHeight: 100, changeBps: 0n }, hold.db))
  const order = await place()
  await stage.corrupt('UPDATE orders SET token_hash = $2 WHERE order_id = $1', [
    order.terms.id,
    hashToken('token'),
  ])
  hold.shut()
  const looking = desk.findOrder(order.terms.id, { kind: 'token', token: 'token' })
  await hold.caught()
  await mineDeposit(stage, order, ASKS, 100)
  hold.open()
  const view = await looking
  expect([view?.status, view?.deposit_received, view?.deposit_tx_hash]).toEqual(['NEW', '0', null])
})

test('a token finds its order by the short id and by the full one, and by no other that ends so', async () => {
  const desk = openDesk(deskWorld({ headHeight: 100, changeBps: 0n }))
  const { id } = (await place()).terms
  await stage.corrupt('UPDATE orders SET token_hash = $2 WHERE order_id = $1', [id, hashToken('token')])
  const find = async (asked: string, token = 'token') =>
    (await desk.findOrder(asked, { kind: 'token', token }))?.order_id ?? null
  expect(await find(id)).toBe(id)
  expect(await find(id.slice(-8))).toBe(id)
  expect(await find(`CB99999999${id.slice(-8)}`)).toBeNull()
  expect(await find(id.slice(-7))).toBeNull()
  expect(await find(id, 'another')).toBeNull()
})

test('an order that stands is the same object, and one among too many is read again', async () => {
  const wholes: unknown[] = []
  const query: Database['query'] = (text, values) => {
    if (text.includes('SELECT o.*')) wholes.push(values)
    return stage.db.query(text, values)
  }
  const look = orderLooks(deskWorld({ headHeight: 100, changeBps: 0n }, { ...stage.db, query }), 2)
  const [a, b, c] = [(await place()).terms.id, (await place()).terms.id, (await place()).terms.id]
  const first = await look(a)
  await look(b)
  expect((await look(a))?.view).toBe(first?.view)
  expect(wholes).toHaveLength(2)
  await look(c)
  await look(a)
  expect(wholes, 'a was the oldest').toHaveLength(4)
})

test('nothing of the request that asked for an order is kept with it', async () => {
  const look = orderLooks(deskWorld({ headHeight: 100, changeBps: 0n }))
  const ids: OrderId[] = []
  for (let index = 0; index < 8; index += 1) ids.push((await place()).terms.id)
  const before = heapLeft()
  for (const id of ids) {
    const target = `/v1/order/${id}?${'a'.repeat(REQUEST_BYTES)}`.replace('aa', 'ab')
    await look(target.slice('/v1/order/'.length, '/v1/order/'.length + id.length) as OrderId)
  }
  expect(heapLeft() - before).toBeLessThan(REQUEST_BYTES * 2)
})

const REQUEST_BYTES = 4 * 2 ** 20

/** Bytes, after what is garbage was collected. */
function heapLeft(): number {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  collect()
  return process.memoryUsage().heapUsed
}

/** Statements are carried out at once; when it is shut their answers wait until it is opened. */
function holdingDatabase() {
  let gate: { readonly opened: Promise<void>; open(): void } | undefined
  let catches = () => {}
  const caught = new Promise<void>((resolve) => {
    catches = resolve
  })
  const query: Database['query'] = async (text, values) => {
    const answer = await stage.db.query(text, values)
    if (gate !== undefined) {
      catches()
      await gate.opened
    }
    return answer as never
  }
  return {
    db: { ...stage.db, query },
    caught: () => caught,
    shut: () => {
      let open = () => {}
      const opened = new Promise<void>((resolve) => {
        open = resolve
      })
      gate = { opened, open }
    },
    open: () => {
      gate?.open()
      gate = undefined
    },
  }
}
