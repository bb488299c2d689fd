import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Chain, Transfer } from '../../chains/chain.ts'
import { type Lease, takeLease } from '../../db/leases.ts'
import { findOrder } from '../../db/orders.ts'
import { assert } from '../../domain/assert.ts'
import { amountOf } from '../../domain/money/amount.ts'
import type { Order } from '../../domain/orders/order.ts'
import { HOUR_MS } from '../../domain/time.ts'
import { auditBooks } from '../books/audit_books.ts'
import { reconcileChain } from '../books/reconcile.ts'
import { type BooksStage, openBooksStage, placeOrder, RESERVE, strayDeposit } from '../testing/books_stage.ts'
import { nobodyElse } from '../testing/nobody_else.ts'
import { watchOnce } from '../testing/watch_once.ts'
import { gatherCrumbs } from './crumbs.ts'
import type { Move } from './moves.ts'

/**
 * What: thousands of crumbs in a block make a few rows, no order hears of many, and the books know them all to the unit.
 * How: a real PostgreSQL and a chain on paper whose blocks are full of them, looked at by hand.
 */
let stage: BooksStage
let lease: Lease
let order: Order

beforeAll(async () => {
  stage = await openBooksStage('crumbs')
})

const ETHER = 10n ** 18n
const MANY = 300

beforeEach(async () => {
  await stage.reset()
  const taken = await takeLease(stage.db, 'watch:ETH', 'me', stage.world.clock.wallMs(), 48 * HOUR_MS)
  assert(taken !== null, 'nobody else looks')
  lease = taken
  await strayDeposit(stage, {
    asset: 'ETH:ETH',
    units: ETHER,
    address: RESERVE,
    purpose: 'reserve',
    height: 50,
  })
  order = await placeOrder(stage, 'ETH:ETH', 'BTC:BTC', { asks: ETHER, promises: 1_000n })
})

afterAll(() => stage?.stop())

type Sent = Pick<Transfer, 'asset' | 'units'>

/** Ethereum on paper; from the block at 101 on, so many of them bring all of this to each, which is the order and the reserve. */
function flooded(
  blocks: number,
  sent: readonly Sent[],
  recipients = [order.terms.depositAddress, RESERVE],
): Chain {
  const eth = stage.chain('ETH')
  const transfersAt = (height: number): Transfer[] =>
    height < 101 || height >= 101 + blocks
      ? []
      : recipients.flatMap((to) =>
          sent.map((one, place) => {
            const txHash = `tx-${height}-${to}`
            return { ...one, id: `${txHash}:${place}`, txHash, to }
          }),
        )
  for (let height = 101; height < 101 + blocks; height += 1) {
    for (const { asset, to, units } of transfersAt(height)) {
      if (typeof asset === 'string') eth.move(height, asset, to, units)
    }
  }
  return {
    ...eth,
    readMempool: async () => [],
    estimatePayout: async (asset) => ({ cost: amountOf(asset, 1n), isAboveFeeCap: false }),
    balance: (asset, addresses, height) => eth.balance(asset, addresses, height ?? 100),
    readBlock: async (height, findOurs) => {
      await findOurs(recipients)
      const [hash, parentHash] = [await eth.blockHash(height), await eth.blockHash(height - 1)]
      const timeMs = stage.world.clock.wallMs()
      return {
        height,
        hash: hash ?? '',
        parentHash: parentHash ?? '',
        timeMs,
        transfers: transfersAt(height),
      }
    },
  }
}

function times(count: number, sent: Sent): readonly Sent[] {
  return Array.from({ length: count }, () => sent)
}

async function lookTo(chain: Chain, height: number): Promise<void> {
  stage.chain('ETH').setHead(height)
  await watchOnce(stage.world, chain, lease)
  expect(await reconcileChain(stage.world, stage.chain('ETH'), { guard: nobodyElse })).toMatchObject({
    comparisons: chain.assets.map((asset) => ({ asset, difference: 0n })),
  })
}

async function count(table: 'deposits' | 'house_deposits', where: string): Promise<number> {
  const [row] = await stage.db.query<{ count: number }>(
    `SELECT count(*) AS count FROM ${table} WHERE ${where}`,
  )
  return row?.count ?? 0
}

const crumb: Sent = { asset: 'ETH:ETH', units: 1n }
const fake: Sent = { asset: { unlisted: '0xfake' }, units: 7n }

test('a block full of crumbs is a few rows, and a payment among them counts', async () => {
  const payment: Sent = { asset: 'ETH:ETH', units: ETHER }
  const chain = flooded(1, [...times(MANY, crumb), payment, ...times(MANY, fake)])
  await lookTo(chain, 101)
  await lookTo(chain, 112)
  expect((await findOrder(stage.db, order.terms.id))?.state.status).toBe('EXCHANGE')
  expect(await count('deposits', "role = 'dust'")).toBe(20)
  expect(await count('house_deposits', "kind = 'unlisted'")).toBe(20)
  expect(await count('house_deposits', "kind = 'stray' AND units = 280 AND state = 'confirmed'")).toBe(1)
  expect(await count('house_deposits', "kind = 'reserve' AND units = 280 AND state = 'confirmed'")).toBe(1)
  expect(await count('house_deposits', "kind = 'reserve' AND units = 1")).toBe(20)
})

test('crumbs that are spread over a hundred addresses are hardly more rows than crumbs to one', async () => {
  const addresses: string[] = []
  for (let index = 0; index < 100; index += 1) {
    const { terms } = await placeOrder(stage, 'ETH:ETH', 'BTC:BTC', { asks: ETHER, promises: 1_000n })
    addresses.push(terms.depositAddress)
  }
  const chain = flooded(1, [...times(5, crumb), ...times(20, fake)], addresses)
  await lookTo(chain, 101)
  await lookTo(chain, 112)
  expect(await count('house_deposits', "kind = 'unlisted'")).toBe(20)
  expect(await count('deposits', "role = 'dust' AND state = 'confirmed'")).toBe(200)
  expect(await count('house_deposits', "kind = 'stray' AND units = 5 AND state = 'confirmed'")).toBe(60)
  expect((await auditBooks(stage.db)).problems).toEqual([])
})

test('an order that knows a hundred deposits hears of no more crumbs', async () => {
  const chain = flooded(8, times(25, crumb))
  for (let height = 101; height <= 108; height += 1) await lookTo(chain, height)
  expect(await count('deposits', 'true')).toBe(100)
})

test('dust that counts is told by itself also when it is mined again among crumbs', async () => {
  const rest: Sent = { asset: 'ETH:ETH', units: 10n ** 13n }
  const chain = flooded(1, [{ ...rest, units: ETHER - rest.units }, rest])
  await lookTo(chain, 101)
  expect(await count('deposits', "role = 'counted'")).toBe(2)
  const { depositAddress: to, id: orderId } = order.terms
  const own: Move['own'] = { address: to, key: { purpose: 'deposit', index: 1 }, orderId, chain: 'ETH' }
  const again = { own, transfer: { ...rest, id: `tx-101-${to}:1`, txHash: `tx-101-${to}`, to } }
  const others = times(MANY, crumb).map((one, place) => ({
    own,
    transfer: { ...one, id: `other:${place}`, txHash: 'other', to },
  }))
  const told = await gatherCrumbs(stage.world, chain, { height: 102, hash: 'the next' }, [...others, again])
  expect(told).toContain(again)
  expect(told).toHaveLength(22)
})

test('what was told of a block before its watcher died is not in the sum that the next one tells', async () => {
  const chain = flooded(2, times(60, crumb))
  await lookTo(chain, 101)
  stage.chain('ETH').setHead(102)
  let tells = 0
  const hold = async () => {
    tells += 1
    return tells > 2 ? null : lease
  }
  await expect(watchOnce(stage.world, chain, lease, { hold })).rejects.toThrow('was lost')
  const before = await count('deposits', 'true')
  expect(before).toBeGreaterThan(20)
  expect(before).toBeLessThan(40)
  await lookTo(chain, 102)
  await lookTo(chain, 113)
})

test('crumbs that lose their block are gone from the books, and are told anew on the next branch', async () => {
  const chain = flooded(2, times(60, crumb))
  await lookTo(chain, 113)
  stage.chain('ETH').fork(102)
  await lookTo(chain, 113)
  expect(await count('house_deposits', "units = 40 AND state = 'orphaned'"), 'of the block that left').toBe(2)
  expect(await count('house_deposits', "units = 40 AND state = 'confirmed'")).toBe(4)
  expect((await auditBooks(stage.db)).problems).toEqual([])
})
