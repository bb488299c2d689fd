import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Chain, CoinsThatPay } from '../chains/chain.ts'
import { readLookedBefore } from '../db/chain_looks.ts'
import { markSpent, unmineCoins, upsertCoin } from '../db/coins.ts'
import type { Database, Sql } from '../db/database.ts'
import { sumCustomerDeposits } from '../db/deposits.ts'
import { orphanOutflow } from '../db/lost_outflows.ts'
import { findOrder } from '../db/orders.ts'
import { endOutflow, planOutflow, setOutflowState } from '../db/outflows.ts'
import { readReserves } from '../db/reserves.ts'
import { beginSweep, claimUnswept, leaveUnswept } from '../db/unswept.ts'
import { assert } from '../domain/assert.ts'
import type { AssetId } from '../domain/catalog/assets.ts'
import { amountOf } from '../domain/money/amount.ts'
import type { Order } from '../domain/orders/order.ts'
import type { PayoutId } from '../domain/payouts/intent.ts'
import { sweepIdOf } from '../domain/payouts/sweep.ts'
import { HOUR_MS } from '../domain/time.ts'
import { saveReserves } from './reserves.ts'
import {
  type BooksStage,
  confirmDeposit,
  mineDeposit,
  openBooksStage,
  placeOrder,
  RESERVE,
  sendPayout,
  tell,
  writeAttempt,
} from './testing/books_stage.ts'
import { pagesTouched } from './testing/pages_touched.ts'

/**
 * What: quotes are made from what the chain holds for payouts less what is promised, and these figures are never old.
 * How: a real PostgreSQL and a chain on paper that says what it holds.
 */
let stage: BooksStage
const ETHER = 10n ** 18n

beforeAll(async () => {
  stage = await openBooksStage('reserves')
})
beforeEach(() => stage.reset())
afterAll(() => stage?.stop())

/** Holds so much of each asset, and a payout costs so much; asked how often. */
function ethereum(held: Readonly<Partial<Record<AssetId, bigint>>>, payoutCost = 21n) {
  const asked: AssetId[] = []
  const chain: Chain = {
    ...stage.chain('ETH'),
    balance: async (asset) => {
      asked.push(asset)
      return held[asset] ?? 0n
    },
    estimatePayout: async () => ({ cost: amountOf('ETH:ETH', payoutCost), isAboveFeeCap: false }),
  }
  return { chain, asked }
}

async function spendable() {
  const reserves = await readReserves(stage.db)
  return Object.fromEntries(reserves.map(({ asset, spendable }) => [asset, spendable]))
}

/** An order whose payout of so much USDT is planned, or on its way. */
async function promise(units: bigint) {
  const order = await placeOrder(stage, 'ETH:ETH', 'USDT:ERC20', {
    asks: ETHER,
    promises: units,
  })
  await confirmDeposit(stage, order, await mineDeposit(stage, order, ETHER, 100))
  await sendPayout(stage, order)
}

function coin(txHash: string, satoshi: bigint) {
  return { txHash, index: 0, satoshi, address: RESERVE, key: { purpose: 'reserve', index: 0 } } as const
}

async function mineCoin(txHash: string, satoshi: bigint) {
  await upsertCoin(stage.db, 'BTC', coin(txHash, satoshi), { height: 99, hash: `block of ${txHash}` })
}

/** Bitcoin that can be promised now. */
async function free(height = 100, coins?: CoinsThatPay) {
  const estimate = { cost: amountOf('BTC:BTC', 1n), isAboveFeeCap: false }
  const chain: Chain = {
    ...stage.chain('BTC'),
    estimatePayout: async () => (coins === undefined ? estimate : { ...estimate, coins }),
  }
  await saveReserves(stage.world, chain, height, 0)
  return (await spendable())['BTC:BTC']
}

test('what is promised of one asset is not there for others to be promised, and each has its own', async () => {
  const { chain } = ethereum({ 'ETH:ETH': 7n, 'USDT:ERC20': 1_000n, 'USDC:ERC20': 50n }, 9n)
  await promise(300n)
  await promise(200n)
  await saveReserves(stage.world, chain, 100, 0)
  expect(await spendable()).toEqual({ 'ETH:ETH': 7n, 'USDT:ERC20': 500n, 'USDC:ERC20': 50n })
  const reserves = await readReserves(stage.db)
  expect(reserves.map(({ payoutCost }) => payoutCost)).toEqual([9n, 9n, 9n])
})

test('a payout that ends while the chain is asked is taken off of what was told before, and of nothing later', async () => {
  await promise(300n)
  const held = { 'USDT:ERC20': 1_000n }
  const { chain } = ethereum(held)
  const [{ payout_id: payoutId } = { payout_id: '' }] = await stage.db.query<{ payout_id: string }>(
    'SELECT payout_id FROM outflows',
  )
  const ended = { block: { height: 101, hash: 'block of it' }, cost: amountOf('ETH:ETH', 1n) }
  const ending: Chain = {
    ...chain,
    balance: async (asset, ...rest) => {
      const before = await chain.balance(asset, ...rest)
      if (asset === 'USDT:ERC20') await endOutflow(stage.db, payoutId, ['broadcast'], 'confirmed', ended)
      return before
    },
  }
  await saveReserves(stage.world, ending, 100, 0)
  expect((await spendable())['USDT:ERC20']).toBe(700n)
  held['USDT:ERC20'] = 700n
  await saveReserves(stage.world, chain, 101, 0)
  expect((await spendable())['USDT:ERC20']).toBe(700n)
})

test('what the chain never lets go is not there to be promised, and is of its own coin only', async () => {
  const { chain } = ethereum({ 'ETH:ETH': 7n, 'USDT:ERC20': 1_000n })
  await saveReserves(stage.world, { ...chain, lockedUnits: async () => 5n }, 100, 0)
  expect(await spendable()).toMatchObject({ 'ETH:ETH': 2n, 'USDT:ERC20': 1_000n })
})

test('a payout in bitcoin is taken off once, from its plan to its end', async () => {
  for (const index of [0, 1, 2]) await mineCoin(`coin-${index}`, 100n)
  const order = await placeOrder(stage, 'ETH:ETH', 'BTC:BTC', { asks: ETHER, promises: 150n })
  await confirmDeposit(stage, order, await mineDeposit(stage, order, ETHER, 100))
  await tell(stage, order.terms.id, 'priced:1', { kind: 'ExchangePriced', quote: null })
  const payoutId = `${order.terms.id}:1`
  expect(await free(), 'planned').toBe(150n)

  await markSpent(stage.db, 'BTC', [coin('coin-0', 100n), coin('coin-1', 100n)], payoutId)
  await writeAttempt(stage, payoutId, 1, 'tx')
  expect(await free(), 'on its way with two of three coins').toBe(100n)
  await mineCoin('change', 49n)
  expect(await free(), 'mined, with its change').toBe(149n)

  const ended = { block: { height: 99, hash: 'block of change' }, cost: amountOf('BTC:BTC', 1n) }
  await endOutflow(stage.db, payoutId, ['broadcast'], 'confirmed', ended)
  expect(await free(), 'final').toBe(149n)
  await orphanOutflow(stage.db, payoutId, 1)
  await unmineCoins(stage.db, 'BTC', 'block of change')
  expect(await free(), 'it has lost its block, and its change with it').toBe(100n)
})

test('what a filler brings back stays promised to the payout it stands in for, until that has failed', async () => {
  for (const index of [0, 1]) await mineCoin(`coin-${index}`, 100n)
  const order = await placeOrder(stage, 'ETH:ETH', 'BTC:BTC', { asks: ETHER, promises: 90n })
  await confirmDeposit(stage, order, await mineDeposit(stage, order, ETHER, 100))
  const { payoutId } = await sendPayout(stage, order)
  await markSpent(stage.db, 'BTC', [coin('coin-0', 100n)], payoutId)
  expect(await free()).toBe(100n)

  const filler = { payoutId: 'house-BTC-x:1', kind: 'filler', asset: 'BTC:BTC', units: 0n } as const
  await planOutflow(stage.db, { ...filler, address: 'back', tag: null, fills: payoutId }, 1)
  await mineCoin('brought back', 98n)
  expect(await free(), 'the block of the filler may yet be lost').toBe(108n)
  await setOutflowState(stage.db, payoutId, ['broadcast'], 'failed')
  expect(await free()).toBe(198n)
})

test('a payout that is planned and let go of gives back what it was promised', async () => {
  await mineCoin('coin', 100n)
  const order = await placeOrder(stage, 'ETH:ETH', 'BTC:BTC', { asks: ETHER, promises: 60n })
  await confirmDeposit(stage, order, await mineDeposit(stage, order, ETHER, 100))
  await tell(stage, order.terms.id, 'priced:1', { kind: 'ExchangePriced', quote: null })
  expect(await free()).toBe(40n)
  await setOutflowState(stage.db, `${order.terms.id}:1`, ['planned'], 'cancelled')
  expect(await free()).toBe(100n)
})

test('what a customer may ask back in an emergency is promised to nobody else', async () => {
  await mineCoin('reserve coin', 1_000_000n)
  const order = await placeOrder(stage, 'BTC:BTC', 'ETH:ETH', { asks: 500_000n, promises: ETHER })
  const deposit = await mineDeposit(stage, order, 300_000n, 99)
  await mineCoin('deposit coin', 300_000n)
  expect(await free(), 'paid too little, and not deep yet').toBe(1_300_000n)
  await confirmDeposit(stage, order, deposit)
  expect(await free(), 'the customer is asked').toBe(1_000_000n)
  const refund = {
    amount: amountOf('BTC:BTC', 290_000n),
    networkFee: amountOf('BTC:BTC', 10_000n),
    address: 'outside',
  }
  await tell(stage, order.terms.id, 'action', { kind: 'ActionChosen', action: 'refund', refund })
  expect(await free(), 'it goes back').toBe(1_010_000n)
})

test('a large deposit is its customer’s also while its coin may be spent and it waits for more confirmations', async () => {
  await mineCoin('reserve coin', 1_000_000n)
  const order = await placeOrder(stage, 'BTC:BTC', 'ETH:ETH', { asks: 500_000n, promises: ETHER })
  await stage.corrupt('UPDATE orders SET required_confirmations = 6')
  const { depositAddress: address } = order.terms
  await mineDeposit(stage, order, 300_000n, 98)
  const deposit = {
    ...coin('deposit coin', 300_000n),
    address,
    key: { purpose: 'deposit', index: 1 },
  } as const
  await upsertCoin(stage.db, 'BTC', deposit, { height: 98, hash: 'block of it' })
  expect(await free(99), 'one block too few to be spent').toBe(1_000_000n)
  expect(await free(100)).toBe(1_000_000n)
})

test('what lies in more coins than one payout can spend is promised to nobody', async () => {
  await stage.db.query(
    `INSERT INTO coins (chain, tx_hash, output_index, satoshi, address, key_purpose, key_index, block_height, block_hash)
     SELECT 'BTC', 'small coin', number, 1000, $1, 'reserve', 0, 99, 'a block' FROM generate_series(1, 600) AS number`,
    [RESERVE],
  )
  await mineCoin('large coin', 1_000_000n)
  expect(await free()).toBe(1_000_000n + 499n * 1_000n)
})

test('who has to move everything is told of the coins of payouts under way, as running.md says', async () => {
  const page = readFileSync(new URL('../../../docs/operating/running.md', import.meta.url), 'utf8')
  const [statement] = page.match(/SELECT [^;`]* FROM coins\b[^;`]*;/) ?? []
  assert(statement !== undefined, 'the page has the statement')
  const order = await placeOrder(stage, 'ETH:ETH', 'BTC:BTC', { asks: ETHER, promises: 500_000n })
  await confirmDeposit(stage, order, await mineDeposit(stage, order, ETHER, 100))
  await tell(stage, order.terms.id, 'priced:1', { kind: 'ExchangePriced', quote: null })
  const payoutId = `${order.terms.id}:1`
  for (const satoshi of [700_000n, 40_000n, 3_000n]) await mineCoin(`coin of ${satoshi}`, satoshi)
  await markSpent(stage.db, 'BTC', [coin('coin of 700000', 700_000n)], payoutId)
  // As `ledger book` marks what was spent with another program.
  await markSpent(stage.db, 'BTC', [coin('coin of 3000', 3_000n)], 'operator:1')
  const told = async () => {
    const rows = await stage.db.query<{ sum: bigint; taken_by: string | null }>(statement)
    return rows.map((row) => [BigInt(row.sum), row.taken_by])
  }
  expect(await told(), 'drafted and not sent').toEqual([[740_000n, payoutId]])
  await writeAttempt(stage, payoutId, 1, 'payout-tx')
  expect(await told(), 'sent').toEqual([[740_000n, payoutId]])
  await setOutflowState(stage.db, payoutId, ['broadcast'], 'confirmed')
  expect(await told(), 'gone').toEqual([[40_000n, null]])
})

test('of coins counts what they bring, and as many of the largest as the fee of one payout may be for', async () => {
  for (const [index, satoshi] of [500n, 9_000n, 7_000n, 501n].entries())
    await mineCoin(`coin-${index}`, satoshi)
  expect(await free(100, { countMax: 2, costSatoshi: 500n }), 'two of the four').toBe(8_500n + 6_500n)
  expect(await free(100, { countMax: 4, costSatoshi: 500n }), 'one costs what it brings').toBe(15_001n)
  expect(await free(100, { countMax: 0, costSatoshi: 500n })).toBe(0n)
  const order = await placeOrder(stage, 'ETH:ETH', 'BTC:BTC', { asks: ETHER, promises: 9_000n })
  await confirmDeposit(stage, order, await mineDeposit(stage, order, ETHER, 100))
  await tell(stage, order.terms.id, 'priced:1', { kind: 'ExchangePriced', quote: null })
  expect(
    await free(100, { countMax: 1, costSatoshi: 500n }),
    'another takes the largest, and its change',
  ).toBe(6_000n)
})

test('coins behind those that are others’ are counted, however many those are', async () => {
  await mineCoin('reserve coin', 1_000_000n)
  const order = await placeOrder(stage, 'BTC:BTC', 'ETH:ETH', { asks: 1_500n * 2_000n, promises: ETHER })
  // As those of 1,500 orders that wait for their exchange.
  await confirmDeposit(stage, order, await mineDeposit(stage, order, 1_500n * 2_000n, 98))
  await stage.db.query(
    `INSERT INTO coins (chain, tx_hash, output_index, satoshi, address, key_purpose, key_index, block_height, block_hash)
     SELECT 'BTC', 'deposit ' || n, 0, 2000, 'of ' || n, 'deposit', n, 50, 'block' FROM generate_series(1, 1500) AS n`,
  )
  expect(await free(), '500 coins are left').toBe(1_000_000n)
})

test('a deposit that waits for its exchange is its customer’s until then', async () => {
  await mineCoin('reserve coin', 1_000_000n)
  const order = await placeOrder(stage, 'BTC:BTC', 'ETH:ETH', { asks: 500_000n, promises: ETHER })
  await mineCoin('deposit coin', 500_000n)
  await confirmDeposit(stage, order, await mineDeposit(stage, order, 500_000n, 98))
  expect(await free()).toBe(1_000_000n)
  await tell(stage, order.terms.id, 'priced:1', { kind: 'ExchangePriced', quote: null })
  expect(await free()).toBe(1_500_000n)
})

test('what came in part is its customer’s while the rest waits in a block', async () => {
  await mineCoin('reserve coin', 1_000_000n)
  const order = await placeOrder(stage, 'BTC:BTC', 'ETH:ETH', { asks: 500_000n, promises: ETHER })
  const first = await mineDeposit(stage, order, 300_000n, 99)
  const second = await mineDeposit(stage, order, 200_000n, 100)
  await mineCoin('deposit coin', 300_000n)
  expect(await free(), 'nothing is booked').toBe(1_300_000n)
  await confirmDeposit(stage, order, first)
  expect((await findOrder(stage.db, order.terms.id))?.state.status).toBe('PENDING')
  expect(await free()).toBe(1_000_000n)
  await mineCoin('another deposit coin', 200_000n)
  await confirmDeposit(stage, order, second)
  expect(await free(), 'all is there').toBe(1_000_000n)
})

test.each(['EXPIRED', 'NEW'])(
  'what came in part and too late is its customer’s as well, while %s',
  async (status) => {
    await mineCoin('reserve coin', 1_000_000n)
    const order = await placeOrder(stage, 'BTC:BTC', 'ETH:ETH', { asks: 500_000n, promises: ETHER })
    stage.advance(900_000)
    const atMs = stage.world.clock.nowMs()
    if (status === 'EXPIRED') await tell(stage, order.terms.id, 'expired', { kind: 'OrderExpired', atMs })
    const first = await mineDeposit(stage, order, 300_000n, 98)
    await mineDeposit(stage, order, 200_000n, 99)
    await mineCoin('deposit coin', 300_000n)
    await confirmDeposit(stage, order, first)
    expect((await findOrder(stage.db, order.terms.id))?.state.status).toBe(status)
    expect(await free()).toBe(1_000_000n)
  },
)

/** So many orders from one bitcoin that are over in one way or the other, each with the deposit that it had. */
async function makeHistory(count: number): Promise<void> {
  const { terms } = await placeOrder(stage, 'BTC:BTC', 'ETH:ETH', { asks: 1n, promises: 1n })
  await stage.corrupt(
    `INSERT INTO orders SELECT (made).* FROM (
       SELECT jsonb_populate_record(o, jsonb_build_object('bucket', n % 100,
         'order_id', 'CB7' || lpad(n::text, 13, '0') || lpad((n % 100)::text, 2, '0'), 'completed_at_ms',
         CASE n % 2 WHEN 0 THEN 1 END, 'payout_tx_hash', 'tx', 'status', CASE n % 2 WHEN 0 THEN 'DONE' ELSE 'EXPIRED' END)) AS made
       FROM orders o, generate_series(1, $1) AS n WHERE o.order_id = $2 OFFSET 0) AS history`,
    [count, terms.id],
  )
  await stage.corrupt(
    `INSERT INTO deposits (bucket, order_id, deposit_key, chain, tx_hash, asset, units, role, is_late, state, seen_at_ms,
       block_height, block_hash)
     SELECT bucket, order_id, order_id, 'BTC', order_id, 'BTC:BTC', 1000, 'counted', status = 'EXPIRED',
       CASE status WHEN 'DONE' THEN 'confirmed' ELSE 'vanished' END, 1,
       CASE status WHEN 'DONE' THEN 90 END, CASE status WHEN 'DONE' THEN 'block' END
     FROM orders WHERE order_id LIKE 'CB7%'`,
  )
  await stage.corrupt('VACUUM ANALYZE')
}

test('what is promised to customers is summed without reading the orders that are over', async () => {
  await makeHistory(20_000)
  for (const units of [300_000n, 400_000n]) {
    const order = await placeOrder(stage, 'BTC:BTC', 'ETH:ETH', { asks: 500_000n, promises: ETHER })
    await confirmDeposit(stage, order, await mineDeposit(stage, order, units, 98))
  }
  const ask = (sql: Sql) => sumCustomerDeposits(sql, 'BTC', ['BTC:BTC'], 98)
  expect(await ask(stage.db)).toEqual(new Map([['BTC:BTC', 700_000n]]))
  expect(await pagesTouched(stage.db, ask)).toBeLessThan(60)
})

test('what is promised to the customers of one chain is summed without reading the emergencies of others', async () => {
  const { terms } = await placeOrder(stage, 'BTC:BTC', 'ETH:ETH', { asks: 1n, promises: 1n })
  await stage.corrupt(
    `INSERT INTO orders SELECT (made).* FROM (
       SELECT jsonb_populate_record(o, jsonb_build_object('bucket', n % 100,
         'order_id', 'CB7' || lpad(n::text, 13, '0') || lpad((n % 100)::text, 2, '0'), 'status', 'EMERGENCY',
         'emergency_reasons', jsonb_build_array('UNDERPAID'))) AS made
       FROM orders o, generate_series(1, 20000) AS n WHERE o.order_id = $1 OFFSET 0) AS emergencies`,
    [terms.id],
  )
  const order = await askedCustomer(4n * ETHER)
  await end(await planSweep(order, 4n * ETHER), 'confirmed')
  await stage.corrupt('VACUUM ANALYZE')
  const ask = (sql: Sql) => sumCustomerDeposits(sql, 'ETH', ['ETH:ETH'], null)
  expect(await ask(stage.db)).toEqual(new Map([['ETH:ETH', 4n * ETHER]]))
  expect(await pagesTouched(stage.db, ask)).toBeLessThan(60)
})

/** Ether that can be promised while the reserve holds so much. */
async function freeEther(held: bigint, db: Database = stage.db) {
  await saveReserves({ ...stage.world, db }, ethereum({ 'ETH:ETH': held }).chain, 100, 0)
  return (await spendable())['ETH:ETH']
}

/** A sweep of so much ether from the address of the order is planned; answers its name. */
async function planSweep({ terms }: Order, units: bigint): Promise<PayoutId> {
  const nowMs = stage.world.clock.nowMs()
  const time = { nowMs, dueAtMs: nowMs }
  const due = await claimUnswept(stage.db, 'ETH', time, { step: 10, liveMax: 10 })
  const taken = due.find(({ address }) => address === terms.depositAddress)
  assert(taken !== undefined, 'the address waits for its sweep')
  const payoutId = sweepIdOf('ETH', taken.keyIndex, taken.sweepCount + 1)
  assert(await beginSweep(stage.db, taken, payoutId), 'nobody else was first')
  const from = { key: { purpose: 'deposit', index: taken.keyIndex }, address: taken.address } as const
  const sweep = { kind: 'sweep', asset: 'ETH:ETH', address: RESERVE, tag: null } as const
  await planOutflow(stage.db, { ...sweep, payoutId, units, from }, nowMs)
  return payoutId
}

async function end(payoutId: PayoutId, state: 'confirmed' | 'failed'): Promise<void> {
  await setOutflowState(stage.db, payoutId, ['planned', 'broadcast'], state)
  await leaveUnswept(stage.db, 'ETH', payoutId, stage.world.clock.nowMs())
}

/** An order that has received a part of ten ether, for its customer to decide about. */
async function askedCustomer(units: bigint): Promise<Order> {
  const order = await placeOrder(stage, 'ETH:ETH', 'BTC:BTC', { asks: 10n * ETHER, promises: 500n })
  await confirmDeposit(stage, order, await mineDeposit(stage, order, units, 80))
  return order
}

test('what lies on a deposit address is not in the reserve, and is not taken off before it is swept', async () => {
  const order = await askedCustomer(4n * ETHER)
  expect(await freeEther(ETHER)).toBe(ETHER)
  const failing = await planSweep(order, 4n * ETHER)
  expect(await freeEther(ETHER), 'planned').toBe(ETHER)
  await end(failing, 'failed')
  expect(await freeEther(ETHER), 'it lies there still').toBe(ETHER)
  const sweep = await planSweep(order, 4n * ETHER)
  await setOutflowState(stage.db, sweep, ['planned'], 'broadcast')
  expect(await freeEther(5n * ETHER), 'in a block, and not deep').toBe(ETHER)
  await end(sweep, 'confirmed')
  expect(await freeEther(5n * ETHER), 'deep').toBe(ETHER)
})

test('what was swept stays its customer’s while more is swept from the same address', async () => {
  const order = await askedCustomer(4n * ETHER)
  await end(await planSweep(order, 4n * ETHER), 'confirmed')
  await confirmDeposit(stage, order, await mineDeposit(stage, order, ETHER, 85))
  expect(await freeEther(5n * ETHER), 'more has come').toBe(ETHER)
  const second = await planSweep(order, ETHER)
  expect(await freeEther(5n * ETHER), 'planned').toBe(ETHER)
  await setOutflowState(stage.db, second, ['planned'], 'broadcast')
  expect(await freeEther(6n * ETHER), 'in a block, and not deep').toBe(ETHER)
})

test('what was swept for customers is summed without reading the sweeps that are over', async () => {
  for (const units of [3n, 4n]) {
    const order = await askedCustomer(units * ETHER)
    await end(await planSweep(order, units * ETHER), 'confirmed')
  }
  await stage.corrupt(
    `INSERT INTO outflows (bucket, order_id, payout_id, kind, chain, asset, units, address, state, planned_at_ms, due_at_ms,
       from_address, from_index)
     SELECT 0, 'sweep-ETH-9' || n || '-1', 'sweep-ETH-9' || n || '-1:1', 'sweep', 'ETH', 'ETH:ETH', 1, 'reserve', 'confirmed', 1, 1,
       'deposit-9' || n, 9 FROM generate_series(1, 20000) AS n`,
  )
  await stage.corrupt('VACUUM ANALYZE')
  const ask = (sql: Sql) => sumCustomerDeposits(sql, 'ETH', ['ETH:ETH'], null)
  expect(await ask(stage.db)).toEqual(new Map([['ETH:ETH', 7n * ETHER]]))
  expect(await pagesTouched(stage.db, ask)).toBeLessThan(60)
})

test('a refund that is chosen while the figures are taken is promised to nobody else', async () => {
  const order = await askedCustomer(4n * ETHER)
  await end(await planSweep(order, 4n * ETHER), 'confirmed')
  let isChosen = false
  const chooseAfter = (sql: Sql): Sql => ({
    query: async (text, values) => {
      const rows = await sql.query<never>(text, values)
      if (isChosen || !text.includes('sum(units)')) return rows
      isChosen = true
      const amount = amountOf('ETH:ETH', 4n * ETHER - 9n)
      const refund = { amount, networkFee: amountOf('ETH:ETH', 9n), address: 'outside' }
      await tell(stage, order.terms.id, 'action', { kind: 'ActionChosen', action: 'refund', refund })
      return rows
    },
  })
  const db: Database = {
    ...stage.db,
    ...chooseAfter(stage.db),
    transaction: (work) => stage.db.transaction((tx) => work(chooseAfter(tx))),
  }
  expect(await freeEther(5n * ETHER, db)).toBe(ETHER)
  expect(isChosen).toBe(true)
  expect(await freeEther(5n * ETHER)).toBe(ETHER + 9n)
})

test('when more is promised than is held, nothing can be promised', async () => {
  const { chain } = ethereum({ 'USDT:ERC20': 100n })
  await promise(300n)
  await saveReserves(stage.world, chain, 100, 0)
  expect((await spendable())['USDT:ERC20']).toBe(0n)
})

test('figures that are young stay, and are taken anew when they are three seconds old', async () => {
  const { chain, asked } = ethereum({ 'ETH:ETH': 7n })
  const takenAtMs = stage.world.clock.nowMs()
  await saveReserves(stage.world, chain, 100, 0)
  const first = asked.length
  stage.advance(2_999)
  await saveReserves(stage.world, chain, 100, takenAtMs)
  expect(asked).toHaveLength(first)
  stage.advance(1)
  await saveReserves(stage.world, chain, 100, takenAtMs)
  expect(asked).toHaveLength(2 * first)
  expect((await readReserves(stage.db)).map(({ atMs }) => atMs - takenAtMs)).toEqual([3_000, 3_000, 3_000])
})

test('figures that were taken before the clock was set back are old at once', async () => {
  const { chain, asked } = ethereum({ 'ETH:ETH': 7n })
  await saveReserves(stage.world, chain, 100, stage.world.clock.nowMs() + HOUR_MS)
  expect(asked).not.toEqual([])
})

test('that a fee is above its cap is kept with the figures, and said when it begins and when it ends', async () => {
  const { chain } = ethereum({})
  const said: unknown[] = []
  const log = { ...stage.world.log, warn: (...line: unknown[]) => said.push(line) }
  let above: readonly AssetId[] = []
  const estimatePayout: Chain['estimatePayout'] = async (asset) => ({
    cost: amountOf('ETH:ETH', 9n),
    isAboveFeeCap: above.includes(asset),
  })
  const saveWith = async (assets: readonly AssetId[]) => {
    above = assets
    await saveReserves({ ...stage.world, log }, { ...chain, estimatePayout }, 100, 0)
    const reserves = await readReserves(stage.db)
    expect(reserves.filter(({ isUnpayable }) => isUnpayable).map(({ asset }) => asset)).toEqual(assets)
    return said.splice(0)
  }
  const begins = [{ asset: 'USDT:ERC20' }, expect.stringMatching(/is not quoted$/)]
  expect(await saveWith([])).toEqual([])
  expect(await saveWith(['USDT:ERC20'])).toEqual([begins])
  expect(await saveWith(['USDT:ERC20'])).toEqual([])
  expect(await saveWith([])).toEqual([[{ asset: 'USDT:ERC20' }, expect.stringMatching(/is quoted$/)]])
  // Nothing was known before.
  await stage.db.query('DELETE FROM reserves')
  expect(await saveWith(['USDT:ERC20'])).toEqual([begins])
})

test('an account that lacks what a transfer takes is said like a fee above its cap, with what it lacks', async () => {
  const { chain } = ethereum({})
  const said: unknown[] = []
  const log = { ...stage.world.log, warn: (...line: unknown[]) => said.push(line) }
  const saveWith = async (short: { readonly lacks?: string }) => {
    const estimatePayout: Chain['estimatePayout'] = async (asset) => ({
      ...(await chain.estimatePayout(asset)),
      ...(asset === 'ETH:ETH' ? short : {}),
    })
    await saveReserves({ ...stage.world, log }, { ...chain, estimatePayout }, 100, 0)
    const reserves = await readReserves(stage.db)
    return [reserves.filter(({ isUnpayable }) => isUnpayable).map(({ asset }) => asset), said.splice(0)]
  }
  const asset = 'ETH:ETH'
  const begins = [{ asset, lacks: 'CPU' }, expect.stringMatching(/is not quoted$/)]
  expect(await saveWith({ lacks: 'CPU' })).toEqual([[asset], [begins]])
  expect(await saveWith({ lacks: 'NET' })).toEqual([[asset], []])
  expect(await saveWith({})).toEqual([[], [[{ asset }, expect.stringMatching(/is quoted$/)]]])
})

test('figures that were begun earlier do not replace later ones, however late they are written', async () => {
  const { chain } = ethereum({ 'ETH:ETH': 7n })
  const late = ethereum({ 'ETH:ETH': 9n })
  let hasWaited = false
  const estimatePayout: Chain['estimatePayout'] = async (asset) => {
    if (!hasWaited) await saveReserves(stage.world, late.chain, 100, 0)
    hasWaited = true
    return chain.estimatePayout(asset)
  }
  await saveReserves(stage.world, { ...chain, estimatePayout }, 100, 0)
  expect((await spendable())['ETH:ETH']).toBe(9n)
})

test('a look knows how old the oldest figure is, and when one was never taken', async () => {
  const { chain } = ethereum({})
  const before = () => readLookedBefore(stage.db, 'ETH', chain.assets)
  expect(await before()).toMatchObject({ reservesAtMs: 0, begun: null })
  const takenAtMs = stage.world.clock.nowMs()
  await saveReserves(stage.world, chain, 100, 0)
  expect(await before()).toMatchObject({ reservesAtMs: takenAtMs })
  await stage.corrupt("UPDATE reserves SET at_ms = at_ms - 500 WHERE asset = 'USDC:ERC20'")
  expect(await before()).toMatchObject({ reservesAtMs: takenAtMs - 500 })
  await stage.corrupt("DELETE FROM reserves WHERE asset = 'USDC:ERC20'")
  expect(await before()).toMatchObject({ reservesAtMs: 0 })
})

test('a look knows of the block whose telling was begun and not ended', async () => {
  const { chain } = ethereum({})
  await stage.corrupt(
    "INSERT INTO chain_blocks (chain, height, hash) VALUES ('ETH', 101, 'h101'), ('BTC', 101, 'b101')",
  )
  expect(await readLookedBefore(stage.db, 'ETH', chain.assets)).toMatchObject({
    head: { block: { height: 100 } },
    begun: { height: 101, hash: 'h101' },
  })
  expect(await readLookedBefore(stage.db, 'SOL', [])).toMatchObject({ begun: null })
})
