import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type AssetId, nativeAsset } from '../../domain/catalog/assets.ts'
import { amountOf } from '../../domain/money/amount.ts'
import { bucketOf } from '../../domain/orders/identifiers.ts'
import { apply } from '../apply.ts'
import { type BooksStage, openBooksStage, placeOrder } from '../testing/books_stage.ts'
import { nobodyElse } from '../testing/nobody_else.ts'
import { auditBooks } from './audit_books.ts'
import { bookHouseDeposits, noteHouseDeposit, unmineHouseDeposits } from './house.ts'

/**
 * What: a transaction that does something else when it is mined again is recorded and booked as what it did last.
 * How: a real PostgreSQL, and facts as the watcher tells them of two branches; at the end the books are audited.
 */
let stage: BooksStage

beforeAll(async () => {
  stage = await openBooksStage('mined_again')
})

beforeEach(() => stage.reset())

afterAll(() => stage?.stop())

const UNITS = 100n * 10n ** 18n
const TX = '0xtx'
/** A contract decides at the time of the block which token it moves: its place among the logs stays the same. */
const KEY = `ETH:${TX}:log:0`

async function orderOf(from: AssetId) {
  const order = await placeOrder(stage, from, 'BTC:BTC', { asks: UNITS, promises: 1_000n })
  const { id } = order.terms
  return {
    id,
    vanished: () => apply(stage.world, id, `${KEY}:vanished:1`, { kind: 'DepositVanished', key: KEY }),
    mined: (asset: AssetId, hash: string) =>
      apply(stage.world, id, `${KEY}:mined:${hash}`, {
        kind: 'DepositSeen',
        key: KEY,
        txHash: TX,
        amount: amountOf(asset, UNITS),
        seenAtMs: stage.world.clock.nowMs(),
        block: { height: 100, hash },
      }),
    confirmed: (hash: string) =>
      apply(stage.world, id, `${KEY}:confirmed:${hash}@0`, { kind: 'DepositConfirmed', key: KEY }),
    unmined: (hash: string) =>
      apply(stage.world, id, `${KEY}:unmined:${hash}@0`, { kind: 'DepositUnmined', key: KEY }),
  }
}

/** What the wallet has of each asset, by the journal. */
function readWallet() {
  return stage.db.query(
    `SELECT asset, sum(CASE WHEN debit = 'wallet' THEN units ELSE -units END)::numeric(78,0) AS units
     FROM journal WHERE 'wallet' IN (debit, credit) GROUP BY asset ORDER BY asset`,
  )
}

async function readProblems() {
  return (await auditBooks(stage.db)).problems
}

test('a deposit that is mined again as the token that the order asks for counts as that', async () => {
  const order = await orderOf('USDT:ERC20')
  await order.mined('USDC:ERC20', 'a')
  await order.unmined('a')
  await order.mined('USDT:ERC20', 'b')
  await order.confirmed('b')
  expect(await stage.db.query('SELECT asset, role, state FROM deposits')).toEqual([
    { asset: 'USDT:ERC20', role: 'counted', state: 'confirmed' },
  ])
  expect(await readWallet()).toEqual([{ asset: 'USDT:ERC20', units: UNITS }])
  expect(await readProblems()).toEqual([])
})

test('a deposit that was booked and is mined again as another token is booked as that alone', async () => {
  const order = await orderOf('USDT:ERC20')
  await order.mined('USDT:ERC20', 'a')
  await order.confirmed('a')
  await order.unmined('a')
  await order.mined('USDC:ERC20', 'b')
  await order.confirmed('b')
  expect(await stage.db.query('SELECT asset, role, state FROM deposits')).toEqual([
    { asset: 'USDC:ERC20', role: 'foreign', state: 'confirmed' },
  ])
  expect(await readWallet()).toEqual([
    { asset: 'USDC:ERC20', units: UNITS },
    { asset: 'USDT:ERC20', units: 0n },
  ])
  expect(await readProblems()).toEqual([])
})

test('a deposit that is mined again for another order is that one’s alone', async () => {
  const first = await orderOf('USDT:ERC20')
  let second = await orderOf('USDT:ERC20')
  // Uniqueness within a bucket is what a database can see to.
  while (bucketOf(second.id) !== bucketOf(first.id)) second = await orderOf('USDT:ERC20')
  await first.mined('USDT:ERC20', 'a')
  await expect(second.mined('USDT:ERC20', 'a'), 'at once it cannot be both’s').rejects.toThrow(
    'deposits_in_one_place',
  )
  await first.confirmed('a')
  await first.unmined('a')
  await second.mined('USDT:ERC20', 'b')
  await second.confirmed('b')
  await first.vanished()
  expect(await stage.db.query('SELECT order_id, state FROM deposits ORDER BY order_id')).toEqual([
    { order_id: first.id, state: 'vanished' },
    { order_id: second.id, state: 'confirmed' },
  ])
  expect(await readWallet()).toEqual([{ asset: 'USDT:ERC20', units: UNITS }])
  expect(await readProblems()).toEqual([])
})

/** To an address of ours that has no order; to the reserve, it is funding. */
async function noteStray(asset: AssetId, purpose: 'deposit' | 'reserve', hash: string) {
  const address = `${purpose}-0`
  const own = { address, key: { purpose, index: 0 }, orderId: null, chain: null }
  const transfer = { id: KEY.slice('ETH:'.length), txHash: TX, to: address, asset, units: UNITS }
  await noteHouseDeposit(stage.world, 'ETH', transfer, own, { height: 50, hash })
}

test('money without an order that is mined again elsewhere is what it is now', async () => {
  await noteStray('USDC:ERC20', 'deposit', 'a')
  await bookHouseDeposits(stage.world, 'ETH', 100, 0, nobodyElse)
  await stage.db.transaction((tx) => unmineHouseDeposits(tx, 'ETH', 'a', 0, stage.world.clock.nowMs()))
  const native = nativeAsset('ETH').id
  await noteStray(native, 'reserve', 'b')
  await bookHouseDeposits(stage.world, 'ETH', 100, 1, nobodyElse)
  expect(await stage.db.query('SELECT asset, kind, address, state FROM house_deposits')).toEqual([
    { asset: native, kind: 'reserve', address: 'reserve-0', state: 'confirmed' },
  ])
  expect(await readWallet()).toEqual([
    { asset: native, units: UNITS },
    { asset: 'USDC:ERC20', units: 0n },
  ])
  expect(
    await stage.db.query(`SELECT asset, credit FROM journal WHERE entry_key LIKE '%confirmed:b%'`),
  ).toEqual([{ asset: native, credit: 'capital' }])
  expect(await readProblems()).toEqual([])
})

test('money without an order that is told again, or by who has lost the lease, is booked once', async () => {
  await noteStray('USDC:ERC20', 'deposit', 'a')
  const lost = () => Promise.reject(new Error('the lease was lost'))
  await expect(bookHouseDeposits(stage.world, 'ETH', 100, 0, lost)).rejects.toThrow('the lease was lost')
  expect(await readWallet()).toEqual([])
  await bookHouseDeposits(stage.world, 'ETH', 100, 0, nobodyElse)
  await noteStray('USDC:ERC20', 'deposit', 'a')
  await bookHouseDeposits(stage.world, 'ETH', 100, 0, nobodyElse)
  expect(await stage.db.query('SELECT state FROM house_deposits')).toEqual([{ state: 'confirmed' }])
  expect(await readWallet()).toEqual([{ asset: 'USDC:ERC20', units: UNITS }])
  expect(await readProblems()).toEqual([])
})

test('money without an order is there as often as its block comes back, and its address is asked again when that leaves', async () => {
  await stage.db.query(
    `INSERT INTO unswept_addresses (chain, address, key_index, booked_at_ms, due_at_ms, is_resting)
     VALUES ('ETH', 'deposit-0', 0, 1, 1, true)`,
  )
  const isResting = async () =>
    (await stage.db.query('SELECT is_resting FROM unswept_addresses'))[0]?.is_resting
  const nowMs = stage.world.clock.nowMs()
  for (const branch of [0, 1]) {
    await noteStray('USDC:ERC20', 'deposit', 'a')
    await bookHouseDeposits(stage.world, 'ETH', 100, branch, nobodyElse)
    expect(await readWallet()).toEqual([{ asset: 'USDC:ERC20', units: UNITS }])
    await stage.db.query('UPDATE unswept_addresses SET is_resting = true')
    await stage.db.transaction((tx) => unmineHouseDeposits(tx, 'ETH', 'a', branch, nowMs))
    expect(await readWallet()).toEqual([{ asset: 'USDC:ERC20', units: 0n }])
    expect(await isResting()).toBe(false)
  }
  expect(await readProblems()).toEqual([])
})
