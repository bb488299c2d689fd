import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Chain, Transfer } from '../../chains/chain.ts'
import { readHead } from '../../db/chain_heads.ts'
import { type Lease, takeLease } from '../../db/leases.ts'
import { findOrder } from '../../db/orders.ts'
import { assert } from '../../domain/assert.ts'
import type { Order } from '../../domain/orders/order.ts'
import { HOUR_MS, SECOND_MS } from '../../domain/time.ts'
import { expireOrders } from '../expire.ts'
import { type BooksStage, openBooksStage, placeOrder } from '../testing/books_stage.ts'
import { watchChain } from './watch.ts'

/**
 * What: orders end only after a look that knows what was paid in time.
 * How: a real PostgreSQL and Bitcoin on paper, looked at by hand, by the stage's clock.
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

test('no order ends by a look that read a part of the mempool, and what was in the rest counts as seen by then', async () => {
  const looks = [{ isPart: true }, { isPart: true }, { isPart: false, ours: payment() }]
  const chain: Chain = {
    ...stage.chain('BTC'),
    assets: [],
    lookup: async () => ({ where: 'mempool' }),
    readMempool: async (findOurs) => {
      const { isPart, ours } = looks.shift() ?? { isPart: false }
      await findOurs([order.terms.depositAddress])
      return Object.assign(ours === undefined ? [] : [ours], { isPart })
    },
  }
  const watcher = { backlog: { sinceMs: null } }
  stage.advance(order.terms.expiresAtMs - stage.world.clock.nowMs() - SECOND_MS)
  await watchChain(stage.world, chain, lease, watcher)
  stage.advance(3 * SECOND_MS)
  await watchChain(stage.world, chain, lease, watcher)
  expect(await status()).toBe('NEW')
  const { lookedWallMs, trouble } = (await readHead(stage.db, 'BTC')) ?? {}
  expect({ lookedWallMs, trouble }).toEqual({ lookedWallMs: stage.world.clock.wallMs(), trouble: null })
  stage.advance(3 * SECOND_MS)
  await watchChain(stage.world, chain, lease, watcher)
  expect(await status()).toBe('PENDING')
  expect(watcher).toEqual({ backlog: { sinceMs: null } })
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
    await watchChain(stage.world, chain, lease)
    seen.push(await status())
  }
  expect(seen).toEqual(['NEW', 'NEW', 'EXPIRED'])
})
