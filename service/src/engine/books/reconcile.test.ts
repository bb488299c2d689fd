import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { claimOutflows } from '../../db/claim_outflows.ts'
import { upsertCoin } from '../../db/coins.ts'
import type { Database, Sql } from '../../db/database.ts'
import { type Lease, requireLease, takeLease } from '../../db/leases.ts'
import { endOutflow, planOutflow, setOutflowState } from '../../db/outflows.ts'
import { readReconciliations } from '../../db/reconciliations.ts'
import { findQuiet, layToRest } from '../../db/resting.ts'
import {
  beginSweep,
  claimUnswept,
  leaveUnswept,
  noteUnswept,
  restUnswept,
  wakeUnswept,
} from '../../db/unswept.ts'
import { assert } from '../../domain/assert.ts'
import type { AssetId } from '../../domain/catalog/assets.ts'
import { type ChainId, chainFacts } from '../../domain/catalog/networks.ts'
import { amountOf } from '../../domain/money/amount.ts'
import { HOUR_MS, SECOND_MS } from '../../domain/time.ts'
import { apply } from '../apply.ts'
import { endSweep } from '../sweeps/end.ts'
import {
  type BooksStage,
  confirmDeposit,
  confirmPayout,
  fundReserve,
  lookAt,
  mineDeposit,
  minePayout,
  openBooksStage,
  placeOrder,
  RESERVE,
  sendPayout,
  strayDeposit,
  writeAttempt,
} from '../testing/books_stage.ts'
import { nobodyElse } from '../testing/nobody_else.ts'
import { compareChain } from './compare.ts'
import { bookHouseDeposits, unmineHouseDeposits } from './house.ts'
import { reconcileChain } from './reconcile.ts'
import { isOutflowStopped } from './stopped_outflows.ts'

/**
 * What: ledger and chain are compared to the unit, money in flight is no difference, and a real difference of one unit
 * stops outflows until it is gone.
 * How: a real PostgreSQL, orders moved by facts through `apply`, and chains on paper whose balances the test decides.
 */
let stage: BooksStage

beforeAll(async () => {
  stage = await openBooksStage('reconcile')
})

beforeEach(() => stage.reset())

afterAll(() => stage?.stop())

const ETHER = 10n ** 18n

function look(id: ChainId) {
  const nowMs = stage.world.clock.nowMs()
  return compareChain(stage.db, stage.chain(id), { kind: 'turn', nowMs, neverSwept: false })
}

async function compare(id: ChainId) {
  const compared = await look(id)
  if (compared.kind === 'inconclusive') return compared.why
  return Object.fromEntries(compared.comparisons.map(({ asset, difference }) => [asset, difference]))
}

async function inFlight(id: ChainId, asset: AssetId) {
  const compared = await look(id)
  if (compared.kind === 'inconclusive') throw new Error(compared.why)
  return compared.comparisons.find((one) => one.asset === asset)?.inFlight
}

const AGREED = { 'ETH:ETH': 0n, 'USDT:ERC20': 0n, 'USDC:ERC20': 0n }

/** ETH → USDT, reserves booked, nothing received. */
async function startOrder() {
  await fundReserve(stage, 'ETH:ETH', 5n * ETHER)
  await fundReserve(stage, 'USDT:ERC20', 1_000n * ETHER)
  return placeOrder(stage, 'ETH:ETH', 'USDT:ERC20', { asks: ETHER, promises: 100n * ETHER })
}

test('from the first block of a deposit to the last of its payout there is never a difference', async () => {
  const order = await startOrder()
  expect(await compare('ETH')).toEqual(AGREED)

  const key = await mineDeposit(stage, order, ETHER, 101)
  expect(await compare('ETH'), 'mined above the block that the books stand on').toEqual(AGREED)
  await lookAt(stage, 'ETH', 101)
  expect(await compare('ETH'), 'mined, not deep').toEqual(AGREED)
  expect(await inFlight('ETH', 'ETH:ETH')).toBe(ETHER)
  await confirmDeposit(stage, order, key)
  expect(await compare('ETH'), 'booked').toEqual(AGREED)
  expect(await inFlight('ETH', 'ETH:ETH')).toBe(0n)

  const { payoutId, txHash } = await sendPayout(stage, order)
  expect(await compare('ETH'), 'in the mempool').toEqual(AGREED)
  const paid = { txHash, height: 103, units: 100n * ETHER, cost: 21_000n }
  minePayout(stage, order, paid)
  expect(await compare('ETH'), 'mined above the books').toEqual(AGREED)
  await lookAt(stage, 'ETH', 103)
  expect(await compare('ETH'), 'mined, not deep').toEqual(AGREED)
  expect(await inFlight('ETH', 'USDT:ERC20')).toBe(-100n * ETHER)
  expect(await inFlight('ETH', 'ETH:ETH')).toBe(-21_000n)
  await confirmPayout(stage, order, { payoutId, txHash, cost: 21_000n })
  expect(await compare('ETH'), 'booked').toEqual(AGREED)
  expect(await inFlight('ETH', 'USDT:ERC20')).toBe(0n)
})

test('a payout that is mined twice shows, whether it is booked or not', async () => {
  const order = await startOrder()
  await confirmDeposit(stage, order, await mineDeposit(stage, order, ETHER, 100))
  const { payoutId, txHash } = await sendPayout(stage, order)
  const paid = { height: 100, units: 100n * ETHER, cost: 0n }
  minePayout(stage, order, { ...paid, txHash })
  expect(await compare('ETH')).toEqual(AGREED)
  await writeAttempt(stage, payoutId, 2, 'second-tx')
  minePayout(stage, order, { ...paid, txHash: 'second-tx' })
  expect(await compare('ETH')).toEqual({ ...AGREED, 'USDT:ERC20': -100n * ETHER })
  await confirmPayout(stage, order, { payoutId, txHash, cost: 0n })
  expect(await compare('ETH')).toEqual({ ...AGREED, 'USDT:ERC20': -100n * ETHER })
})

test('a payout that the chain executed and rejected costs its fee and no more', async () => {
  const order = await startOrder()
  await confirmDeposit(stage, order, await mineDeposit(stage, order, ETHER, 100))
  const { txHash } = await sendPayout(stage, order)
  stage.chain('ETH').mined(txHash, 100, 500n, false)
  stage.chain('ETH').move(100, 'ETH:ETH', RESERVE, -500n)
  expect(await compare('ETH')).toEqual(AGREED)
})

test('an outflow that was given up explains nothing: if it is mined after all, it shows', async () => {
  const order = await startOrder()
  await confirmDeposit(stage, order, await mineDeposit(stage, order, ETHER, 100))
  const { payoutId, txHash } = await sendPayout(stage, order)
  minePayout(stage, order, { txHash, height: 100, units: 100n * ETHER, cost: 0n })
  expect(await compare('ETH')).toEqual(AGREED)
  await setOutflowState(stage.db, payoutId, ['broadcast'], 'failed')
  expect(await compare('ETH')).toEqual({ ...AGREED, 'USDT:ERC20': -100n * ETHER })
})

test('a filler costs its fee', async () => {
  await fundReserve(stage, 'ETH:ETH', ETHER)
  const filler = {
    kind: 'filler' as const,
    asset: 'ETH:ETH' as const,
    units: 0n,
    address: RESERVE,
    tag: null,
  }
  await planOutflow(stage.db, { payoutId: 'house-ETH-5:1', ...filler }, 1)
  await writeAttempt(stage, 'house-ETH-5:1', 1, 'filler-tx')
  stage.chain('ETH').mined('filler-tx', 100, 77n)
  expect(await compare('ETH')).toEqual({ ...AGREED, 'ETH:ETH': 77n })
  stage.chain('ETH').move(100, 'ETH:ETH', RESERVE, -77n)
  expect(await compare('ETH')).toEqual(AGREED)
})

test('a sweep and the gas for it cost their fees, wherever they are on their way', async () => {
  const order = await placeOrder(stage, 'USDT:ERC20', 'BNB:BNB', { asks: ETHER, promises: 1n })
  await fundReserve(stage, 'ETH:ETH', 5n * ETHER)
  await confirmDeposit(stage, order, await mineDeposit(stage, order, ETHER, 100))
  const eth = stage.chain('ETH')
  const address = order.terms.depositAddress
  const sweep = { kind: 'sweep' as const, tag: null }
  await planOutflow(
    stage.db,
    { ...sweep, payoutId: 'sweep-ETH-1-1:1', asset: 'ETH:ETH', units: 900n, address },
    1,
  )
  await writeAttempt(stage, 'sweep-ETH-1-1:1', 1, 'gas-tx')
  expect(await compare('ETH'), 'gas in the mempool').toEqual(AGREED)
  eth.mined('gas-tx', 100, 21n)
  eth.move(100, 'ETH:ETH', RESERVE, -921n)
  eth.move(100, 'ETH:ETH', address, 900n)
  expect(await compare('ETH'), 'gas mined').toEqual(AGREED)
  expect(await inFlight('ETH', 'ETH:ETH')).toBe(-21n)

  const from = { key: { purpose: 'deposit' as const, index: 1 }, address }
  await planOutflow(
    stage.db,
    { ...sweep, payoutId: 'sweep-ETH-1-2:1', asset: 'USDT:ERC20', units: ETHER, address: RESERVE, from },
    1,
  )
  await writeAttempt(stage, 'sweep-ETH-1-2:1', 1, 'sweep-tx')
  eth.mined('sweep-tx', 100, 800n)
  eth.move(100, 'USDT:ERC20', address, -ETHER)
  eth.move(100, 'USDT:ERC20', RESERVE, ETHER)
  eth.move(100, 'ETH:ETH', address, -800n)
  expect(await compare('ETH'), 'the token mined').toEqual(AGREED)
  expect(await inFlight('ETH', 'ETH:ETH')).toBe(-821n)

  for (const [payoutId, cost] of [
    ['sweep-ETH-1-1:1', 21n],
    ['sweep-ETH-1-2:1', 800n],
  ] as const) {
    const claimed = await claimOutflows(
      stage.db,
      'ETH',
      payoutId.endsWith('1-1:1') ? 'reserve' : 'deposits',
      {
        nowMs: 10,
        wallMs: 10,
        claimMs: 10,
      },
      5,
    )
    expect(claimed.map((one) => one.payoutId)).toEqual([payoutId])
    for (const one of claimed) {
      const block = { height: 100, hash: 'h100' }
      const end = { succeeded: true, block, cost: amountOf('ETH:ETH', cost) }
      await endSweep(stage.world, one, end)
      await endSweep(stage.world, one, end)
    }
  }
  expect(await compare('ETH'), 'both booked').toEqual(AGREED)
  expect(await inFlight('ETH', 'ETH:ETH')).toBe(0n)
  expect(await inFlight('ETH', 'USDT:ERC20')).toBe(0n)
})

test('strays on ready addresses, of another asset or of another chain of the family are no difference', async () => {
  const order = await startOrder()
  await strayDeposit(stage, {
    asset: 'USDC:ERC20',
    units: 5n,
    address: 'ready-1',
    purpose: 'deposit',
    height: 100,
  })
  await strayDeposit(stage, {
    asset: 'BNB:BNB',
    units: 9n,
    address: order.terms.depositAddress,
    purpose: 'deposit',
    height: 100,
  })
  await mineDeposit(stage, order, 42n, 100, 'USDT:ERC20')
  expect(await compare('ETH')).toEqual(AGREED)
  expect(await compare('BNB')).toEqual({ 'BNB:BNB': 0n, 'USDT:BEP20': 0n, 'USDC:BEP20': 0n })
  await bookHouseDeposits(stage.world, 'ETH', 200, 0, nobodyElse)
  expect(await compare('ETH')).toEqual(AGREED)
})

test('money at an address of an order that the watcher never told of shows', async () => {
  const order = await startOrder()
  stage.chain('ETH').move(100, 'ETH:ETH', order.terms.depositAddress, 1n)
  expect(await compare('ETH')).toEqual({ ...AGREED, 'ETH:ETH': 1n })
})

test('what is booked while the books are read is in all of their figures or in none', async () => {
  const order = await startOrder()
  const key = await mineDeposit(stage, order, ETHER, 100)
  let isBooked = false
  const transaction: Database['transaction'] = (work) =>
    stage.db.transaction((tx) =>
      work({
        query: async (text, values) => {
          if (!isBooked && text.includes('AS arriving')) {
            isBooked = true
            await confirmDeposit(stage, order, key)
          }
          return tx.query(text, values)
        },
      }),
    )
  const nowMs = stage.world.clock.nowMs()
  const turn = { kind: 'turn', nowMs, neverSwept: false } as const
  const compared = await compareChain({ ...stage.db, transaction }, stage.chain('ETH'), turn)
  assert(isBooked && compared.kind === 'compared', 'it was booked in the middle')
  expect(compared.comparisons.filter(({ difference }) => difference !== 0n)).toEqual([])
})

test.each([
  ['booked', (address: string) => noteUnswept(stage.db, 'ETH', address, stage.world.clock.nowMs())],
  [
    'swept',
    async (address: string) => {
      await stage.db.query('UPDATE unswept_addresses SET sweep_count = sweep_count + 1 WHERE address = $1', [
        address,
      ])
    },
  ],
] as const)(
  'an address where something was %s since it was asked does not go to rest',
  async (_, happens) => {
    const order = await startOrder()
    await confirmDeposit(stage, order, await mineDeposit(stage, order, ETHER, 100))
    const nowMs = stage.world.clock.nowMs()
    await claimUnswept(stage.db, 'ETH', { nowMs, dueAtMs: nowMs + 60_000 }, { step: 1, liveMax: 1 })
    const quiet = await findQuiet(stage.db, 'ETH', { nowMs, neverSwept: false }, 1)
    expect(quiet).toHaveLength(1)
    await happens(order.terms.depositAddress)
    await layToRest(stage.db, 'ETH', quiet, [])
    expect(await stage.db.query('SELECT is_resting FROM unswept_addresses')).toEqual([{ is_resting: false }])
  },
)

describe('who was asked already and cannot hold anything else', () => {
  const eth = () => stage.chain('ETH')

  /** Everybody who is asked in one reconciliation. */
  async function asked(): Promise<Set<string>> {
    const before = eth().asked.length
    const compared = await reconcileChain(stage.world, eth(), { guard: nobodyElse })
    expect(compared).toMatchObject({ kind: 'compared' })
    return new Set(eth().asked.slice(before).flat())
  }

  async function differences() {
    const found = await readReconciliations(stage.db)
    return Object.fromEntries(found.map(({ asset, difference }) => [asset, difference]))
  }

  /** The sweeper found nothing worth moving. */
  async function lookForSweeps() {
    const nowMs = stage.world.clock.nowMs()
    const dueAtMs = nowMs + 60_000
    for (const taken of await claimUnswept(
      stage.db,
      'ETH',
      { nowMs, dueAtMs },
      { step: 100, liveMax: 100 },
    )) {
      await restUnswept(stage.db, taken, dueAtMs)
    }
  }

  /** Received, booked, looked at, compared: `units` lie at its address for good. Its turn is long over. */
  async function restingOrder(units = ETHER) {
    const order = await startOrder()
    await confirmDeposit(stage, order, await mineDeposit(stage, order, units, 100))
    await lookForSweeps()
    expect(await asked(), 'asked when it goes to rest').toContain(order.terms.depositAddress)
    await endTurn()
    return order
  }

  /** Enough addresses that stay empty for the turn to take several reconciliations, and it is at the second. */
  async function endTurn() {
    await stage.db.query(
      `INSERT INTO addresses (family, address, purpose, key_index)
       SELECT 'evm', 'ready-' || i, 'deposit', 1000 + i FROM generate_series(1, 300) i`,
    )
    await stage.db.query(
      `INSERT INTO reconciliation_turns (chain, next_index) VALUES ('ETH', 1000)
       ON CONFLICT (chain) DO UPDATE SET next_index = 1000`,
    )
  }

  test('is not asked until its turn comes, and what it holds counts all the same', async () => {
    const order = await restingOrder()
    for (const first of [1, 100, 200, 300]) {
      const all = await asked()
      expect(all).not.toContain(order.terms.depositAddress)
      expect(
        [...all].filter((address) => address.startsWith('ready-')).length,
        `from ${first}`,
      ).toBeLessThanOrEqual(100)
      expect(all).toContain(RESERVE)
      expect(await differences()).toEqual(AGREED)
    }
    await asked()
    expect(await asked(), 'in turn').toContain(order.terms.depositAddress)
    expect(await differences()).toEqual(AGREED)
  })

  test('is asked again as soon as something is on its way there, while it is booked, and after that', async () => {
    const order = await restingOrder()
    const { depositAddress } = order.terms
    expect(await asked()).not.toContain(depositAddress)
    const key = await mineDeposit(stage, order, 5n * ETHER, 100)
    expect(await asked(), 'mined').toContain(depositAddress)
    expect(await differences()).toEqual(AGREED)
    await confirmDeposit(stage, order, key)
    expect(await asked(), 'booked').toContain(depositAddress)
    expect(await differences()).toEqual(AGREED)
    await lookForSweeps()
    await asked()
    expect(await asked(), 'at rest again').not.toContain(depositAddress)
    expect(await differences()).toEqual(AGREED)
  })

  test('is asked again when a sweep begins, and when what was booked is taken back', async () => {
    const order = await restingOrder()
    const { depositAddress } = order.terms
    const isAsked = async () => (await asked()).has(depositAddress)
    stage.advance(60_001)
    const nowMs = stage.world.clock.nowMs()
    const [taken] = await claimUnswept(
      stage.db,
      'ETH',
      { nowMs, dueAtMs: nowMs + 1 },
      { step: 1, liveMax: 1 },
    )
    assert(taken !== undefined, 'the address is due')
    expect(await isAsked()).toBe(false)
    await beginSweep(stage.db, taken, 'sweep-ETH-1-1:1')
    expect(await isAsked()).toBe(true)
    await leaveUnswept(stage.db, 'ETH', 'sweep-ETH-1-1:1', nowMs + 60_000)
    await asked()
    expect(await isAsked(), 'at rest again').toBe(false)
    await wakeUnswept(stage.db, 'ETH', depositAddress)
    expect(await isAsked()).toBe(true)
  })

  test('is asked again when a stray that was booked there is taken back', async () => {
    const order = await restingOrder()
    const { depositAddress } = order.terms
    const stray = { asset: 'ETH:ETH', units: 7n, purpose: 'deposit', height: 100 } as const
    await strayDeposit(stage, { ...stray, address: depositAddress })
    await bookHouseDeposits(stage.world, 'ETH', 100 + chainFacts.ETH.confirmations, 0, nobodyElse)
    await lookForSweeps()
    await asked()
    expect(await asked(), 'at rest again').not.toContain(depositAddress)
    expect(await differences()).toEqual(AGREED)
    eth().move(100, 'ETH:ETH', depositAddress, -7n)
    const hash = (await eth().blockHash(100)) ?? ''
    await stage.db.transaction((tx) => unmineHouseDeposits(tx, 'ETH', hash, 0, stage.world.clock.nowMs()))
    expect(await asked()).toContain(depositAddress)
    expect(await differences()).toEqual(AGREED)
  })

  test('a unit that leaves or reaches it unseen is found in its turn, and stays found', async () => {
    const order = await restingOrder()
    eth().move(100, 'ETH:ETH', order.terms.depositAddress, -1n)
    await asked()
    expect(await differences(), 'before its turn').toEqual(AGREED)
    for (let turns = 0; turns < 4; turns += 1) await asked()
    for (let turns = 0; turns < 8; turns += 1) {
      await asked()
      expect(await differences()).toEqual({ ...AGREED, 'ETH:ETH': -1n })
    }
    expect(await isOutflowStopped(stage.db, 'ETH')).toBe(true)
    eth().move(100, 'ETH:ETH', order.terms.depositAddress, 1n)
    await asked()
    expect(await differences()).toEqual(AGREED)
  })

  test('a unit at an address that never received anything is found in its turn, and stays found', async () => {
    await startOrder()
    await endTurn()
    eth().move(100, 'USDC:ERC20', 'ready-250', 1n)
    await asked()
    await asked()
    expect(await differences()).toEqual(AGREED)
    for (let turns = 0; turns < 8; turns += 1) await asked()
    expect(await differences()).toEqual({ ...AGREED, 'USDC:ERC20': 1n })
    expect(await asked()).toContain('ready-250')
  })

  test('on a coin chain those in turn stay in turn until the difference they make is explained', async () => {
    await stage.db.query(
      `INSERT INTO addresses (family, address, purpose, key_index)
       SELECT 'bitcoin', 'ready-' || i, 'deposit', i FROM generate_series(0, 249) i`,
    )
    const btc = stage.chain('BTC')
    const difference = async () => {
      await reconcileChain(stage.world, btc, { guard: nobodyElse })
      return (await readReconciliations(stage.db)).find(({ asset }) => asset === 'BTC:BTC')?.difference
    }
    btc.move(100, 'BTC:BTC', 'ready-150', 1n)
    expect(await difference()).toBe(0n)
    for (let turns = 0; turns < 5; turns += 1) expect(await difference()).toBe(1n)
    expect(await isOutflowStopped(stage.db, 'BTC')).toBe(true)
    btc.move(100, 'BTC:BTC', 'ready-150', -1n)
    for (let turns = 0; turns < 5; turns += 1) expect(await difference()).toBe(0n)
  })

  test('the audit asks everybody', async () => {
    const order = await restingOrder()
    await asked()
    await compareChain(stage.db, eth(), { kind: 'all' })
    expect(eth().asked.at(-1)).toContain(order.terms.depositAddress)
    expect(eth().asked.at(-1)).toContain('ready-300')
  })
})

test('nothing is concluded while books and node stand on different blocks', async () => {
  await startOrder()
  const eth = stage.chain('ETH')
  eth.setHead(132)
  expect(await compare('ETH'), 'a little behind is fine: it is asked at the height of the books').toEqual(
    AGREED,
  )
  eth.setHead(133)
  expect(await compare('ETH')).toBe('the books are 33 blocks behind ETH')
  eth.setHead(99)
  expect(await compare('ETH')).toBe('the node of ETH is 1 blocks behind the books')
  eth.setHead(100)
  eth.onBalance = () => eth.fork(100)
  expect(await compare('ETH'), 'reorganised while asked').toBe('ETH no longer has block 100 of the books')

  const btc = stage.chain('BTC')
  expect(await compare('BTC')).toEqual({ 'BTC:BTC': 0n })
  btc.onBalance = () => btc.setHead(101)
  expect(await compare('BTC'), 'a block came while asked').toBe('BTC is at block 101, the books at 100')
  expect(await reconcileChain(stage.world, btc, { guard: nobodyElse })).toMatchObject({
    kind: 'inconclusive',
  })
  expect(await readReconciliations(stage.db)).toEqual([])
})

test.each([
  ['SOL', 'SOL:SOL'],
  ['EOS', 'EOS:EOS'],
  ['ETH', 'ETH:ETH'],
] as const)(
  'blocks of %s that come while it is asked what it holds keep nobody from comparing',
  async (id, asset) => {
    await fundReserve(stage, asset, 5n * ETHER)
    const chain = stage.chain(id)
    chain.move(100, asset, RESERVE, -1n)
    // The watcher has not read the newest yet, as always over a network.
    let slot = 102
    chain.setHead(slot)
    chain.onBalance = () => {
      slot += 20
      chain.setHead(slot)
    }
    expect(await compare(id)).toMatchObject({ [asset]: -1n })
    chain.setHead(200)
    expect(await compare(id)).toBe(`the books are 100 blocks behind ${id}`)
  },
)

test.each(['confirmed', 'failed'] as const)(
  'what an outflow took that is booked as %s above the block of the books is no difference',
  async (end) => {
    const order = await startOrder()
    await confirmDeposit(stage, order, await mineDeposit(stage, order, ETHER, 100))
    const { payoutId, txHash } = await sendPayout(stage, order)
    const units = end === 'confirmed' ? 100n * ETHER : 0n
    minePayout(stage, order, { txHash, height: 103, units, cost: 7n })
    // By a worker that asked the node itself.
    const eth = stage.chain('ETH')
    eth.setHead(103)
    const cost = amountOf('ETH:ETH', 7n)
    const block = { height: 103, hash: (await eth.blockHash(103)) ?? '' }
    const fact =
      end === 'confirmed'
        ? ({ kind: 'PayoutConfirmed', payoutId, txHash, cost } as const)
        : ({ kind: 'PayoutFailed', payoutId, problem: 'DESTINATION_PROBLEM', cost } as const)
    await apply(stage.world, order.terms.id, `${payoutId}:${end}`, fact, async (sql) => {
      await endOutflow(sql, payoutId, ['broadcast'], end, { block, cost })
    })
    expect(await compare('ETH')).toBe('an outflow of ETH is booked above block 100 of the books')
    await lookAt(stage, 'ETH', 103)
    expect(await compare('ETH')).toEqual(AGREED)
  },
)

test('on a coin chain the list of coins and what a stranger sends to a change address are seen through', async () => {
  await fundReserve(stage, 'BTC:BTC', 50_000n)
  const coin = (txHash: string, satoshi: bigint, purpose: 'reserve' | 'change', address: string) =>
    upsertCoin(
      stage.db,
      'BTC',
      { txHash, index: 0, satoshi, address, key: { purpose, index: 0 } },
      { height: 50, hash: 'h' },
    )
  await coin('house-tx-BTC:BTC-50000', 50_000n, 'reserve', RESERVE)
  expect(await compare('BTC')).toEqual({ 'BTC:BTC': 0n })
  await coin('house-tx-BTC:BTC-546', 546n, 'change', 'change-1')
  await strayDeposit(stage, {
    asset: 'BTC:BTC',
    units: 546n,
    address: 'change-1',
    purpose: 'change',
    height: 60,
  })
  expect(await compare('BTC')).toEqual({ 'BTC:BTC': 0n })
  expect(await compareChain(stage.db, stage.chain('BTC'), { kind: 'all' })).toMatchObject({
    coins: { asset: 'BTC:BTC', units: 50_546n },
  })
})

test.each([
  ['a unit is missing on the chain', -1n],
  ['the chain has a unit that nobody booked', 1n],
])('%s: found, named, outflows stop at the third look and go on when it is mended', async (_, unit) => {
  await startOrder()
  const eth = stage.chain('ETH')
  const look = async () => {
    await reconcileChain(stage.world, eth, { guard: nobodyElse })
    return isOutflowStopped(stage.db, 'ETH')
  }
  expect(await look()).toBe(false)
  eth.move(100, 'USDT:ERC20', RESERVE, unit)
  const sinceMs = stage.world.clock.nowMs()
  expect(await look()).toBe(false)
  stage.advance(1_000)
  expect(await look()).toBe(false)
  expect(stage.logged.filter(({ level }) => level === 'error')).toEqual([])
  expect(await look()).toBe(true)
  expect(await look()).toBe(true)
  expect(await isOutflowStopped(stage.db, 'BNB')).toBe(false)
  expect(stage.logged.filter(({ level }) => level === 'error')).toEqual([
    expect.objectContaining({ facts: expect.objectContaining({ asset: 'USDT:ERC20', chain: 'ETH' }) }),
  ])
  expect((await readReconciliations(stage.db)).filter(({ difference }) => difference !== 0n)).toMatchObject([
    { asset: 'USDT:ERC20', difference: unit, differingCount: 4, differsSinceMs: sinceMs },
  ])

  eth.move(100, 'USDT:ERC20', RESERVE, -unit)
  expect(await look()).toBe(false)
  expect((await readReconciliations(stage.db)).every(({ differsSinceMs }) => differsSinceMs === null)).toBe(
    true,
  )
  expect(stage.logged.at(-1)).toMatchObject({
    level: 'warn',
    message: 'ledger and chain agree: outflows go on',
  })
})

test('the books are added up anew in turn: whatever is bent in them, the journal is believed and compared', async () => {
  await startOrder()
  const eth = stage.chain('ETH')
  const difference = async () => {
    await reconcileChain(stage.world, eth, { guard: nobodyElse })
    return (await readReconciliations(stage.db)).find(({ asset }) => asset === 'ETH:ETH')?.difference
  }
  expect(await difference()).toBe(0n)
  await stage.corrupt(
    `INSERT INTO journal (bucket, owner, entry_key, line, asset, debit, credit, units, at_ms)
     VALUES (0, 'house', 'forged', 1, 'ETH:ETH', 'wallet', 'capital', 1, 1)`,
  )
  expect(await difference()).toBe(-1n)
  expect(stage.logged.at(-1)).toMatchObject({ level: 'warn', message: 'ledger and chain differ' })
  expect(stage.logged.at(-2)).toMatchObject({ level: 'error', facts: { bucket: 0, asset: 'ETH:ETH' } })
  await stage.corrupt(`DELETE FROM journal WHERE entry_key = 'forged'`)
  expect(await difference()).toBe(0n)
  await stage.corrupt(`UPDATE wallet_sums SET units = units + 5`)
  expect(await difference()).toBe(0n)
  await stage.corrupt(`INSERT INTO wallet_movements VALUES (7, 'ETH:ETH', 3)`)
  expect(await difference()).toBe(0n)
  expect(await difference()).toBe(0n)
})

test('a long journal is added up a few buckets at a time, and every bucket has its turn', async () => {
  await startOrder()
  const eth = stage.chain('ETH')
  const pace = { buckets: 10 }
  const look = async () => {
    pace.buckets = 10
    await reconcileChain(stage.world, eth, { pace, guard: nobodyElse })
    return (await readReconciliations(stage.db)).find(({ asset }) => asset === 'ETH:ETH')?.difference
  }
  await stage.corrupt(
    `INSERT INTO journal (bucket, owner, entry_key, line, asset, debit, credit, units, at_ms)
     VALUES (35, 'CB0000000000000035', 'forged', 1, 'ETH:ETH', 'wallet', 'capital', 1, 1)`,
  )
  const found = []
  for (let turns = 0; turns < 12; turns += 1) found.push(await look())
  expect(found).toEqual([0n, 0n, 0n, -1n, -1n, -1n, -1n, -1n, -1n, -1n, -1n, -1n])
})

test('where adding up takes so long that it fails, fewer buckets are tried the next time', async () => {
  await startOrder()
  const db: Database = {
    ...stage.db,
    transaction: async (work) =>
      stage.db.transaction(async (tx) =>
        work({
          query: async (text, values) => {
            if (text.includes('FROM journal')) throw new Error('canceling statement due to statement timeout')
            return tx.query(text, values)
          },
        }),
      ),
    query: async (text, values) => {
      if (text.includes('FROM journal')) throw new Error('canceling statement due to statement timeout')
      return stage.db.query(text, values)
    },
  }
  const pace = { buckets: 100 }
  const tried = []
  for (let tries = 0; tries < 5; tries += 1) {
    const compared = reconcileChain({ ...stage.world, db }, stage.chain('ETH'), { pace, guard: nobodyElse })
    await expect(compared).rejects.toThrow('statement timeout')
    tried.push(pace.buckets)
  }
  expect(tried).toEqual([25, 6, 1, 1, 1])
})

test('two differences apart, or an inconclusive look between, are not three in a row and are not forgotten', async () => {
  await startOrder()
  const eth = stage.chain('ETH')
  eth.move(100, 'ETH:ETH', RESERVE, 1n)
  await reconcileChain(stage.world, eth, { guard: nobodyElse })
  await reconcileChain(stage.world, eth, { guard: nobodyElse })
  eth.setHead(200)
  expect(await reconcileChain(stage.world, eth, { guard: nobodyElse })).toMatchObject({
    kind: 'inconclusive',
  })
  expect(await isOutflowStopped(stage.db, 'ETH')).toBe(false)
  eth.setHead(100)
  await reconcileChain(stage.world, eth, { guard: nobodyElse })
  expect(await isOutflowStopped(stage.db, 'ETH')).toBe(true)
})

test('what was compared by who lost the lease meanwhile is not counted', async () => {
  await startOrder()
  const eth = stage.chain('ETH')
  eth.move(100, 'ETH:ETH', RESERVE, 1n)
  const lease = await takeLease(stage.db, 'reconcile:ETH', 'me', 0, SECOND_MS)
  assert(lease !== null, 'nobody else compares')
  const guard = (tx: Sql) => requireLease(tx, lease)
  await reconcileChain(stage.world, eth, { guard })
  const counted = async () =>
    (await readReconciliations(stage.db)).map(({ differingCount }) => differingCount)
  const before = await counted()
  expect(Math.max(...before)).toBe(1)
  let overtaken: Promise<Lease | null> | undefined
  eth.onBalance = () => {
    overtaken ??= takeLease(stage.db, 'reconcile:ETH', 'another', 2 * SECOND_MS, SECOND_MS)
  }
  const afterwards = async (tx: Sql) => {
    expect(await overtaken).not.toBeNull()
    await guard(tx)
  }
  const late = reconcileChain(stage.world, eth, { guard: afterwards })
  await expect(late).rejects.toThrow('the lease reconcile:ETH was lost')
  expect(await counted()).toEqual(before)
})

test('a comparison that took long is due again only after nine times as long', async () => {
  const eth = stage.chain('ETH')
  await stage.db.query(`INSERT INTO addresses VALUES ('evm', '${RESERVE}', 'reserve', 0)`)
  eth.onBalance = () => stage.advance(10)
  expect(await reconcileChain(stage.world, eth, { guard: nobodyElse })).toMatchObject({ kind: 'compared' })
  eth.onBalance = () => {}
  stage.advance(269)
  expect(await reconcileChain(stage.world, eth, { guard: nobodyElse })).toBeNull()
  stage.advance(1)
  expect(await reconcileChain(stage.world, eth, { guard: nobodyElse })).toMatchObject({ kind: 'compared' })
})

test.each([
  ['forwards while it is made', 3 * HOUR_MS, 0],
  ['back after it was made', 0, -24 * HOUR_MS],
])('a comparison is made within two hours, though the clock was set %s', async (_, meanwhileMs, afterMs) => {
  const { world } = stage
  let jumpMs = meanwhileMs
  stage.chain('ETH').onBalance = () => {
    stage.advance(jumpMs)
    jumpMs = 0
  }
  await fundReserve(stage, 'ETH:ETH', ETHER)
  await reconcileChain(world, stage.chain('ETH'), { guard: nobodyElse })
  stage.advance(afterMs)
  if (afterMs === 0) expect(await reconcileChain(world, stage.chain('ETH'), { guard: nobodyElse })).toBeNull()
  stage.advance(2 * HOUR_MS)
  expect(await reconcileChain(world, stage.chain('ETH'), { guard: nobodyElse })).toMatchObject({
    kind: 'compared',
  })
})
