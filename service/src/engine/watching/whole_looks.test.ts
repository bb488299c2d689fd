import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Chain, Transfer } from '../../chains/chain.ts'
import { readHead } from '../../db/chain_heads.ts'
import { type Lease, releaseLease, takeLease } from '../../db/leases.ts'
import { findOrder } from '../../db/orders.ts'
import { assert } from '../../domain/assert.ts'
import type { Order } from '../../domain/orders/order.ts'
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../domain/time.ts'
import { expireOrders } from '../expire.ts'
import { startWatching } from '../run.ts'
import { type BooksStage, openBooksStage, placeOrder } from '../testing/books_stage.ts'
import { watchOnce } from '../testing/watch_once.ts'
import type { World } from '../world.ts'
import { type Backlog, takeBacklog } from './look.ts'
import { awaitCatchUp } from './silence.ts'

/**
 * What: orders end only after a look that knows what was paid in time.
 * How: a real PostgreSQL, Bitcoin and Ethereum on paper, looked at by hand, by the stage's clock.
 */
let stage: BooksStage
let lease: Lease
let order: Order

beforeAll(async () => {
  stage = await openBooksStage('whole_looks')
})

beforeEach(async () => {
  await stage.reset()
  const taken = await takeLease(stage.db, 'watch:BTC', 'me', stage.world.clock.wallMs(), 48 * HOUR_MS)
  assert(taken !== null, 'nobody else looks')
  lease = taken
  order = await placeOrder(stage, 'BTC:BTC', 'ETH:ETH', { asks: 100_000n, promises: 1_000n })
})

afterAll(() => stage?.stop())

function payment(): Transfer {
  return { id: 'aa:0', txHash: 'aa', to: order.terms.depositAddress, asset: 'BTC:BTC', units: 100_000n }
}

async function status() {
  await expireOrders(stage.world)
  return (await findOrder(stage.db, order.terms.id))?.state.status
}

/** Looks at it one after the other, as a watcher does. */
function lookingOn(chain: Chain, backlog: Backlog = { unread: null }) {
  return () => {
    const unreadSinceMs = takeBacklog(backlog, stage.world.clock.nowMs())
    return watchOnce(stage.world, chain, lease, { backlog, unreadSinceMs })
  }
}

/** A mempool of which one look after the other reads this; all of it and nothing when they have come to an end. */
function readingInTurn(
  looks: { readonly isPart: boolean; readonly ours?: Transfer }[],
): Chain['readMempool'] {
  return async (findOurs) => {
    const { isPart, ours } = looks.shift() ?? { isPart: false }
    await findOurs([order.terms.depositAddress])
    return Object.assign(ours === undefined ? [] : [ours], { isPart })
  }
}

test('no order ends by a look that read a part of the mempool, and what was in the rest counts as seen by then', async () => {
  const looks = [{ isPart: true }, { isPart: true }, { isPart: false, ours: payment() }]
  const chain: Chain = {
    ...stage.chain('BTC'),
    assets: [],
    lookup: async () => ({ where: 'mempool' }),
    readMempool: readingInTurn(looks),
  }
  const backlog: Backlog = { unread: null }
  const look = lookingOn(chain, backlog)
  stage.advance(order.terms.expiresAtMs - stage.world.clock.nowMs() - SECOND_MS)
  await look()
  stage.advance(3 * SECOND_MS)
  await look()
  expect(await status()).toBe('NEW')
  const { lookedWallMs, trouble } = (await readHead(stage.db, 'BTC')) ?? {}
  expect({ lookedWallMs, trouble }).toEqual({ lookedWallMs: stage.world.clock.wallMs(), trouble: null })
  stage.advance(3 * SECOND_MS)
  await look()
  expect(await status()).toBe('PENDING')
  expect(backlog).toEqual({ unread: null })
})

test('what was in the rest counts as seen by then also when a look in between did not come to the mempool', async () => {
  const looks = [{ isPart: true }, { isPart: false, ours: payment() }]
  const onPaper = stage.chain('BTC')
  let headHeight = 100
  const chain: Chain = {
    ...onPaper,
    assets: [],
    head: async () => ({ height: headHeight, hash: (await onPaper.blockHash(headHeight)) ?? '' }),
    readBlock: async () => null,
    lookup: async () => ({ where: 'mempool' }),
    readMempool: readingInTurn(looks),
  }
  onPaper.setHead(101)
  const look = lookingOn(chain)
  stage.advance(order.terms.expiresAtMs - stage.world.clock.nowMs() - SECOND_MS)
  await look()
  // Another node behind the same address tells of a block that this one does not have.
  headHeight = 101
  stage.advance(3 * SECOND_MS)
  await look()
  headHeight = 100
  stage.advance(3 * SECOND_MS)
  await look()
  expect(looks).toEqual([])
  expect(await stage.db.query('SELECT is_late FROM deposits')).toEqual([{ is_late: false }])
})

test('what comes while whoever read a part of the mempool sleeps counts from when it is heard of', async () => {
  const looks = [{ isPart: true }, { isPart: false, ours: payment() }]
  const chain: Chain = {
    ...stage.chain('BTC'),
    assets: [],
    lookup: async () => ({ where: 'mempool' }),
    readMempool: readingInTurn(looks),
  }
  const look = lookingOn(chain)
  stage.advance(order.terms.expiresAtMs - stage.world.clock.nowMs() - SECOND_MS)
  await look()
  stage.advance(HOUR_MS)
  await look()
  expect(await stage.db.query('SELECT is_late FROM deposits')).toEqual([{ is_late: true }])
})

test.each([
  ['part of the mempool', [{ isPart: true }, { isPart: true }, { isPart: false }], 1],
  ['first part of the mempool', [{ isPart: true }, { isPart: false }], 0],
  ['last part of the mempool', [{ isPart: true }, { isPart: false }], 1],
])(
  'what comes while whoever is about to read a %s sleeps counts from when it wakes up',
  async (_, looks, sleeping) => {
    const last = looks.length - 1
    const paying = looks.map((one, index) => (index === last ? { ...one, ours: payment() } : one))
    const onPaper = stage.chain('BTC')
    let isTired = false
    const chain: Chain = {
      ...onPaper,
      assets: [],
      head: async () => {
        const head = await onPaper.head()
        if (isTired) stage.advance(HOUR_MS)
        return head
      },
      lookup: async () => ({ where: 'mempool' }),
      readMempool: readingInTurn(paying),
    }
    const look = lookingOn(chain)
    stage.advance(order.terms.expiresAtMs - stage.world.clock.nowMs() - SECOND_MS)
    for (const index of looks.keys()) {
      isTired = index === sleeping
      await look()
    }
    expect(await stage.db.query('SELECT is_late FROM deposits')).toEqual([{ is_late: true }])
  },
)

test('what comes while the node is away after a part of the mempool was read counts from when it is heard of', async () => {
  let isAway = false
  const looks = [{ isPart: true }, { isPart: false, ours: payment() }]
  const chain: Chain = {
    ...stage.chain('BTC'),
    assets: [],
    lookup: async () => ({ where: 'mempool' }),
    checkIdentity: async () => {
      if (!isAway) return
      stage.advance(MINUTE_MS)
      isAway = stage.world.clock.nowMs() < order.terms.expiresAtMs + 30 * MINUTE_MS
      throw new Error('the node is away')
    },
    readMempool: async (findOurs) => {
      const { isPart, ours } = looks.shift() ?? { isPart: false }
      await findOurs([order.terms.depositAddress])
      // So long that who the node is has to be asked before the next look.
      if (isPart) stage.advance(6 * SECOND_MS)
      isAway = isPart
      return Object.assign(ours === undefined ? [] : [ours], { isPart })
    },
  }
  await releaseLease(stage.db, lease)
  stage.advance(order.terms.expiresAtMs - stage.world.clock.nowMs() - MINUTE_MS)
  const loops = startWatching({ ...stage.world, chains: new Map([['BTC', chain]]) }, 'another')
  await expect.poll(() => stage.db.query('SELECT is_late FROM deposits')).toEqual([{ is_late: true }])
  await Promise.all(loops.map((loop) => loop.stop()))
})

test('an order that nobody pays ends once the mempool was read to its end', async () => {
  const looks = [true, true]
  const chain: Chain = {
    ...stage.chain('BTC'),
    assets: [],
    readMempool: async () => Object.assign([], { isPart: looks.shift() === true }),
  }
  stage.advance(order.terms.expiresAtMs - stage.world.clock.nowMs() + SECOND_MS)
  const seen: unknown[] = []
  for (const _ of [1, 2, 3]) {
    await watchOnce(stage.world, chain, lease)
    seen.push(await status())
  }
  expect(seen).toEqual(['NEW', 'NEW', 'EXPIRED'])
})

/** Bitcoin whose block at 101 brings the payment, made a minute before its order's time is up. */
function payingAt101() {
  const chain = stage.chain('BTC')
  const timeMs = order.terms.expiresAtMs - MINUTE_MS
  const readBlock: Chain['readBlock'] = async (height, findOurs) => {
    await findOurs([order.terms.depositAddress])
    const [hash, parentHash] = [await chain.blockHash(height), await chain.blockHash(height - 1)]
    return { height, hash: hash ?? '', parentHash: parentHash ?? '', timeMs, transfers: [payment()] }
  }
  return Object.assign(chain, { assets: [], readMempool: async () => [], readBlock })
}

test('no order ends by the old head of a node that was away, and what its missing blocks bring is in time', async () => {
  const chain = payingAt101()
  const watcher = { isCatchingUp: awaitCatchUp(stage.world, 'BTC') }
  await watchOnce(stage.world, chain, lease, watcher)
  const { head } = chain
  Object.assign(chain, { head: () => Promise.reject(new Error('the node is away')) })
  for (let minutes = 0; minutes < 30; minutes += 1) {
    stage.advance(MINUTE_MS)
    await expect(watchOnce(stage.world, chain, lease, watcher)).rejects.toThrow('the node is away')
  }
  Object.assign(chain, { head })
  await watchOnce(stage.world, chain, lease, watcher)
  expect(await status()).toBe('NEW')
  stage.advance(7 * SECOND_MS)
  await releaseLease(stage.db, lease)
  const theirs = await takeLease(stage.db, 'watch:BTC', 'another', stage.world.clock.wallMs(), HOUR_MS)
  assert(theirs !== null, 'nobody else looks')
  const another = { isCatchingUp: awaitCatchUp(stage.world, 'BTC') }
  for (const _ of [1, 2]) {
    await watchOnce(stage.world, chain, theirs, another)
    expect(await status(), 'nor for who takes over meanwhile').toBe('NEW')
    stage.advance(MINUTE_MS)
  }
  chain.setHead(101)
  await watchOnce(stage.world, chain, theirs, another)
  expect(await status()).toBe('PENDING')
  expect(await stage.db.query('SELECT is_late FROM deposits')).toEqual([{ is_late: false }])
})

/** Ethereum with an order that it may pay. Its head is at 100, and its times count from the order's end. */
async function looksAtEthereum(timeMs: number) {
  const chain = stage.chain('ETH')
  const taken = await takeLease(stage.db, 'watch:ETH', 'me', stage.world.clock.wallMs(), 48 * HOUR_MS)
  assert(taken !== null, 'nobody else looks')
  const paid = await placeOrder(stage, 'ETH:ETH', 'BTC:BTC', { asks: 10n ** 18n, promises: 1_000n })
  const { depositAddress, expiresAtMs } = paid.terms
  const transfer: Transfer = {
    ...{ id: 'aa:call:0', txHash: 'aa', to: depositAddress, asset: 'ETH:ETH', units: 10n ** 18n },
  }
  let newest = { height: 100, timeMs: expiresAtMs + timeMs, transfers: [] as readonly Transfer[] }
  const hashOf = async (height: number) => (await chain.blockHash(height)) ?? ''
  const looked: Chain = {
    ...chain,
    assets: [],
    head: async () => ({ ...newest, hash: await hashOf(newest.height) }),
    readMempool: async () => [],
    readBlock: async (height, findOurs) => {
      assert(height === newest.height, 'block by block')
      await findOurs([depositAddress])
      return { ...newest, hash: await hashOf(height), parentHash: await hashOf(height - 1) }
    },
  }
  return {
    grow: (madeMs: number, isPaying: boolean) => {
      newest = {
        height: newest.height + 1,
        timeMs: expiresAtMs + madeMs,
        transfers: isPaying ? [transfer] : [],
      }
      chain.setHead(newest.height)
    },
    look: async (world: World = stage.world) => {
      await watchOnce(world, looked, taken)
      await expireOrders(world)
      return (await findOrder(stage.db, paid.terms.id))?.state.status
    },
  }
}

test('where blocks tell their time and keep coming, no order ends before one is from its end or later', async () => {
  const { grow, look } = await looksAtEthereum(-5 * SECOND_MS)
  await look()
  stage.advance(order.terms.expiresAtMs - stage.world.clock.nowMs() + SECOND_MS)
  expect(await look(), 'the node has no block of its end').toBe('NEW')
  grow(-1 * SECOND_MS, true)
  expect(await look()).toBe('PENDING')
  expect(await stage.db.query('SELECT is_late FROM deposits')).toEqual([{ is_late: false }])
})

test('an order that no block pays ends with the first that is from its end or later', async () => {
  const { grow, look } = await looksAtEthereum(-5 * SECOND_MS)
  stage.advance(order.terms.expiresAtMs - stage.world.clock.nowMs() + SECOND_MS)
  grow(-1, false)
  expect(await look()).toBe('NEW')
  grow(0, false)
  expect(await look()).toBe('EXPIRED')
  expect((await readHead(stage.db, 'ETH'))?.lookedAtMs).toBe(order.terms.expiresAtMs)
})

test('a block that runs ahead of the clock says nothing of the time to come', async () => {
  const { grow, look } = await looksAtEthereum(-5 * SECOND_MS)
  stage.advance(order.terms.expiresAtMs - stage.world.clock.nowMs() - 1)
  grow(10 * SECOND_MS, false)
  expect(await look()).toBe('NEW')
  expect((await readHead(stage.db, 'ETH'))?.lookedAtMs).toBe(order.terms.expiresAtMs - 1)
})

test('where a chain may stand still, no order waits for its next block', async () => {
  const { look } = await looksAtEthereum(-5 * SECOND_MS)
  stage.advance(order.terms.expiresAtMs - stage.world.clock.nowMs() + SECOND_MS)
  expect(await look({ ...stage.world, policy: { ...stage.world.policy, standstillMs: {} } })).toBe('EXPIRED')
})

test.each([
  { readMs: 2 * SECOND_MS, isLate: false },
  { readMs: HOUR_MS, isLate: true },
])(
  'what a mempool tells counts from when it was asked, unless who asked slept: $readMs ms',
  async ({ readMs, isLate }) => {
    stage.advance(order.terms.expiresAtMs - stage.world.clock.nowMs() - SECOND_MS)
    const chain: Chain = {
      ...stage.chain('BTC'),
      assets: [],
      lookup: async () => ({ where: 'mempool' }),
      readMempool: async (findOurs) => {
        await findOurs([order.terms.depositAddress])
        stage.advance(readMs)
        return [payment()]
      },
    }
    await watchOnce(stage.world, chain, lease)
    expect(await stage.db.query('SELECT is_late FROM deposits')).toEqual([{ is_late: isLate }])
  },
)

test('a node that was away is waited for until its head is new, or for some minutes where heads tell no time', () => {
  const backMs = stage.world.clock.wallMs()
  const away = { lookedWallMs: backMs - 15 * SECOND_MS }
  const old = { height: 100, timeMs: backMs - SECOND_MS }
  for (const [chain, longestMs] of [
    ['ETH', 3 * MINUTE_MS],
    ['BTC', 5 * MINUTE_MS],
  ] as const) {
    const isCatchingUp = awaitCatchUp(stage.world, chain)
    const ask = (head: { height: number; timeMs?: number } = old) =>
      isCatchingUp(lease, { lookedWallMs: stage.world.clock.wallMs() }, head)
    expect(ask(), 'who has just taken the lease does not know').toBe(true)
    stage.advance(longestMs)
    expect(ask(), 'nobody was away').toBe(false)
    expect(isCatchingUp(lease, { lookedWallMs: stage.world.clock.wallMs() - 15 * SECOND_MS }, old)).toBe(true)
    stage.advance(longestMs - 1)
    expect([ask(), ask({ height: 100 }), ask({ height: 101, timeMs: stage.world.clock.wallMs() })]).toEqual([
      ...[true, true],
      false,
    ])
    stage.advance(1)
    expect(ask()).toBe(false)
  }
  expect(
    awaitCatchUp({ ...stage.world, policy: { ...stage.world.policy, standstillMs: {} } }, 'BTC')(
      lease,
      away,
      old,
    ),
  ).toBe(false)
})

test('where only what is final is told nobody waits for a node: the last block that was read says what is known', () => {
  for (const chain of ['XRP', 'XLM', 'EOS', 'SOL'] as const) {
    const away = { lookedWallMs: stage.world.clock.wallMs() - MINUTE_MS }
    expect(awaitCatchUp(stage.world, chain)(lease, away, { height: 100 })).toBe(false)
  }
})
