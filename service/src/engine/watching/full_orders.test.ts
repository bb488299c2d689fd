import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Chain, Transfer } from '../../chains/chain.ts'
import { listUnclaimed } from '../../db/house_deposits.ts'
import { type Lease, takeLease } from '../../db/leases.ts'
import { assert } from '../../domain/assert.ts'
import { type AssetId, assetOf, nativeAsset } from '../../domain/catalog/assets.ts'
import type { ChainId } from '../../domain/catalog/networks.ts'
import { amountOf } from '../../domain/money/amount.ts'
import { bucketOf } from '../../domain/orders/identifiers.ts'
import type { Order } from '../../domain/orders/order.ts'
import { HOUR_MS } from '../../domain/time.ts'
import { auditBooks } from '../books/audit_books.ts'
import { reconcileChain } from '../books/reconcile.ts'
import { type BooksStage, openBooksStage, placeOrder } from '../testing/books_stage.ts'
import { nobodyElse } from '../testing/nobody_else.ts'
import { watchOnce } from '../testing/watch_once.ts'

/**
 * What: an order that knows a thousand deposits in blocks hears of no more, and what comes all the same is unclaimed, to the unit.
 * How: a real PostgreSQL and chains on paper. Most of the thousand are written down and not told; they are never deep enough.
 */
let stage: BooksStage

beforeAll(async () => {
  stage = await openBooksStage('full_orders')
})
beforeEach(() => stage.reset())
afterAll(() => stage?.stop())

/** The least that counts. */
function least(asset: AssetId): bigint {
  return assetOf(asset).minCredit
}

/** An order that waits for more than comes, and knows so many deposits of a block at 60. */
async function placeFull(asset: AssetId, known: number): Promise<Order> {
  const order = await placeOrder(stage, asset, 'XRP:XRP', { asks: least(asset) * 100_000n, promises: 1_000n })
  const { chain } = assetOf(asset)
  const { id, depositAddress } = order.terms
  await stage.corrupt('UPDATE orders SET required_confirmations = 10000 WHERE order_id = $1', [id])
  await stage.corrupt(
    `INSERT INTO deposits (bucket, order_id, deposit_key, chain, tx_hash, asset, units, role, is_late, state, seen_at_ms,
       block_height, block_hash)
     SELECT $1, $2, $3 || ':known-' || n || ':0', $3, 'known-' || n, $4, $5, 'counted', false, 'mined', $6, 60, $7
     FROM generate_series(1, $8::int) AS n`,
    [
      ...[bucketOf(id), id, chain, asset, least(asset), stage.world.clock.nowMs()],
      ...[await stage.chain(chain).blockHash(60), known],
    ],
  )
  stage.chain(chain).move(60, asset, depositAddress, least(asset) * BigInt(known))
  if (stage.chain(chain).model === 'coins') {
    await stage.corrupt(
      `INSERT INTO coins (chain, tx_hash, output_index, satoshi, address, key_purpose, key_index, block_height, block_hash)
       SELECT chain, tx_hash, 0, units, $1, 'deposit', 0, block_height, block_hash FROM deposits`,
      [depositAddress],
    )
  }
  return order
}

/** After one that can be gone back to. */
const HEIGHT = 102

/** To the order, in the block at `HEIGHT`. */
function transfersTo({ terms }: Order, units: readonly bigint[]): readonly Transfer[] {
  return units.map((one, index) => {
    const txHash = index.toString(16).padStart(64, '0')
    return { id: `${txHash}:0`, txHash, to: terms.depositAddress, asset: terms.from, units: one }
  })
}

type Told = { mined: readonly Transfer[]; waiting: readonly Transfer[] }

/** The chain on paper; it tells what `told` says at that moment. */
function telling(chainId: ChainId, told: Told): Chain {
  const paper = stage.chain(chainId)
  for (const { asset, to, units } of told.mined)
    if (typeof asset === 'string') paper.move(HEIGHT, asset, to, units)
  const findAll = (transfers: readonly Transfer[]) => transfers.map(({ to }) => to)
  return {
    ...paper,
    estimatePayout: async () => ({ cost: amountOf(nativeAsset(chainId).id, 1n), isAboveFeeCap: false }),
    balance: (asset, addresses, height) =>
      paper.balance(asset, addresses, paper.model === 'coins' ? undefined : (height ?? 100)),
    lookup: async () => ({ where: 'mempool' }),
    readMempool: async (findOurs) => {
      await findOurs(findAll(told.waiting))
      return told.waiting
    },
    readBlock: async (height, findOurs) => {
      const transfers = height === HEIGHT ? told.mined : []
      await findOurs(findAll(transfers))
      const [hash, parentHash] = [await paper.blockHash(height), await paper.blockHash(height - 1)]
      return {
        height,
        hash: hash ?? '',
        parentHash: parentHash ?? '',
        timeMs: stage.world.clock.wallMs(),
        transfers,
      }
    },
  }
}

async function lease(chain: ChainId): Promise<Lease> {
  const taken = await takeLease(stage.db, `watch:${chain}`, 'me', stage.world.clock.wallMs(), 48 * HOUR_MS)
  assert(taken !== null, 'nobody else looks')
  return taken
}

/** Afterwards books and chain agree. */
async function lookTo(chain: Chain, held: Lease, height: number): Promise<void> {
  stage.chain(chain.id).setHead(height)
  await watchOnce(stage.world, chain, held)
  await expectAgreement(chain)
}

async function expectAgreement({ id, assets }: Chain): Promise<void> {
  expect(await reconcileChain(stage.world, stage.chain(id), { guard: nobodyElse })).toMatchObject({
    comparisons: assets.map((asset) => ({ asset, difference: 0n })),
  })
  expect((await auditBooks(stage.db)).problems).toEqual([])
}

async function countDeposits(where = 'true'): Promise<number> {
  const [row] = await stage.db.query<{ count: number }>(
    `SELECT count(*)::int AS count FROM deposits WHERE ${where}`,
  )
  return row?.count ?? 0
}

async function strays() {
  const rows = await listUnclaimed(stage.db, 100)
  return rows.map(({ deposit_key, order_id, kind, units, state }) => ({
    deposit_key,
    order_id,
    kind,
    units,
    state,
  }))
}

test('what comes beyond a thousand deposits is one sum of the block, shown with its address and order', async () => {
  const order = await placeFull('ETH:ETH', 985)
  const unit = least('ETH:ETH')
  const told: Told = { mined: transfersTo(order, Array<bigint>(115).fill(unit)), waiting: [] }
  const chain = telling('ETH', told)
  const held = await lease('ETH')
  await lookTo(chain, held, HEIGHT)
  expect(await countDeposits("state = 'mined'")).toBe(1_000)
  const stray = async (state: string) => ({
    deposit_key: `ETH:${await chain.blockHash(HEIGHT)}:beyond:ETH:ETH:${order.terms.depositAddress}`,
    order_id: order.terms.id,
    kind: 'stray',
    units: 100n * unit,
    state,
  })
  expect(await strays()).toEqual([await stray('mined')])
  await lookTo(chain, held, 113)
  expect(await strays()).toEqual([await stray('confirmed')])

  // The block is gone, and another one has the same the other way round: what was the order's is so again.
  const before = await stage.db.query('SELECT deposit_key FROM deposits ORDER BY deposit_key')
  stage.chain('ETH').fork(HEIGHT)
  told.mined = told.mined.toReversed()
  await lookTo(chain, held, 113)
  expect(await countDeposits("state = 'mined'")).toBe(1_000)
  expect(await stage.db.query('SELECT deposit_key FROM deposits ORDER BY deposit_key')).toEqual(before)
  expect(await strays()).toEqual([await stray('confirmed')])
})

test('what was unclaimed of a branch is unclaimed on the next one, also where it comes first', async () => {
  const order = await placeFull('ETH:ETH', 985)
  const unit = least('ETH:ETH')
  const all = transfersTo(order, Array<bigint>(35).fill(unit))
  const told: Told = { mined: all, waiting: [] }
  const chain = telling('ETH', told)
  const held = await lease('ETH')
  await lookTo(chain, held, HEIGHT)
  stage.chain('ETH').fork(HEIGHT)
  // The rest is in no block yet.
  told.mined = all.slice(15)
  stage.chain('ETH').move(HEIGHT, 'ETH:ETH', order.terms.depositAddress, -15n * unit)
  await lookTo(chain, held, HEIGHT)
  expect(await countDeposits("state = 'mined'")).toBe(985)
  expect(await countDeposits("state = 'seen'")).toBe(15)
  expect((await strays()).map(({ units }) => units)).toEqual([20n * unit])
})

test.each([
  ['that block', false],
  ['another one in its place', true],
])(
  'who dies in the middle of such a block leaves nothing untold or told twice by %s',
  async (_, isAnother) => {
    const order = await placeFull('ETH:ETH', 970)
    const unit = least('ETH:ETH')
    const told: Told = { mined: transfersTo(order, Array<bigint>(50).fill(unit)), waiting: [] }
    const chain = telling('ETH', told)
    const held = await lease('ETH')
    await lookTo(chain, held, HEIGHT - 1)
    stage.chain('ETH').setHead(HEIGHT)
    let tells = 0
    const hold = async () => {
      tells += 1
      return tells > 2 ? null : held
    }
    await expect(watchOnce(stage.world, chain, held, { hold })).rejects.toThrow('was lost')
    const before = await countDeposits()
    expect(before).toBeGreaterThan(970)
    expect(before).toBeLessThan(1_000)
    if (isAnother) {
      stage.chain('ETH').fork(HEIGHT)
      told.mined = told.mined.toReversed()
    }
    await lookTo(chain, held, 113)
    expect(await countDeposits()).toBe(1_000)
    expect((await strays()).map(({ units, state }) => ({ units, state }))).toEqual([
      { units: 20n * unit, state: 'confirmed' },
    ])
  },
)

test('coins beyond a thousand are unclaimed one by one, dust as well, and what waits is no news', async () => {
  const order = await placeFull('BTC:BTC', 999)
  const unit = least('BTC:BTC')
  const mined = transfersTo(order, [unit, unit, 1n, 2n, 3n * unit])
  const waiting = transfersTo(order, Array<bigint>(6).fill(unit)).slice(5)
  const told: Told = { mined, waiting: [] }
  const chain = telling('BTC', told)
  const held = await lease('BTC')
  await lookTo(chain, held, HEIGHT)
  told.waiting = waiting
  await lookTo(chain, held, 107)
  expect(await countDeposits()).toBe(1_001)
  expect(await countDeposits("role = 'dust'"), 'the first of it had room').toBe(1)
  const unclaimed = (await strays()).filter(({ kind }) => kind === 'stray')
  expect(unclaimed.map(({ units, state, order_id }) => ({ units, state, order_id }))).toEqual(
    [unit, 2n, 3n * unit].map((units) => ({ units, state: 'confirmed', order_id: order.terms.id })),
  )
  expect(await stage.db.query('SELECT count(*)::int AS count FROM coins')).toEqual([{ count: 1_004 }])
})

test('a payment that an order knows from a mempool is its own, also when the order is full before it is mined', async () => {
  const order = await placeFull('BTC:BTC', 999)
  const unit = least('BTC:BTC')
  const [payment, ...others] = transfersTo(order, [7n * unit, unit, unit])
  assert(payment !== undefined, 'there is a payment')
  const told: Told = { mined: [...others, payment], waiting: [payment] }
  const chain = telling('BTC', told)
  const held = await lease('BTC')
  await lookTo(chain, held, HEIGHT - 1)
  expect(await countDeposits("state = 'seen'")).toBe(1)
  await lookTo(chain, held, HEIGHT)
  expect(await countDeposits(`units = ${payment.units} AND state = 'mined'`)).toBe(1)
  expect(await countDeposits()).toBe(1_000)
  expect((await strays()).map(({ units }) => units)).toEqual([unit, unit])
})
