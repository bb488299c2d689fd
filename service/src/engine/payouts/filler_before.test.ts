import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { attemptsOf, insertAttempt } from '../../db/attempts.ts'
import { upsertCoin } from '../../db/coins.ts'
import { findOrder } from '../../db/orders.ts'
import { findOutflow } from '../../db/outflows.ts'
import { assert } from '../../domain/assert.ts'
import { stringifyExact } from '../../domain/exact_json.ts'
import { accept } from '../../domain/outcome.ts'
import type { BitcoinIntent, Coin, Intent, PayoutId } from '../../domain/payouts/intent.ts'
import {
  type BooksStage,
  confirmDeposit,
  fundReserve,
  lookAt,
  mineDeposit,
  openBooksStage,
  placeOrder,
  sendPayout,
} from '../testing/books_stage.ts'
import { payingChain } from '../testing/paying_chain.ts'
import { pricedOrder } from '../testing/priced_order.ts'
import { openReserve } from '../testing/sweeping.ts'
import { worldWithSigner } from '../testing/willing_signer.ts'
import { sendAttempt } from './send.ts'
import { fillerIdOf, takeBackCoins } from './take_back.ts'
import { workPayouts } from './work.ts'

/**
 * What: a filler that a restored database has forgotten is drafted anew, and is what the signer has signed of it before: that is written
 * down and sent, each attempt of it, and ends the gap. What does not exclude what it stands in for is not taken for it.
 * How: a real PostgreSQL, chains on paper, and a signer that answers what it signed in the lost hours.
 */
let stage: BooksStage

beforeAll(async () => {
  stage = await openBooksStage('filler_before')
})

beforeEach(() => stage.reset())

afterAll(() => stage?.stop())

const COST = 21_000n
const FILLER = 'house-ETH-0:1'
const LOST_FEES = [77n, 99n]

test('each attempt that was signed in the lost hours is written down as it was, and found in its block', async () => {
  await openReserve(stage)
  const { id } = await pricedOrder(stage)
  const asked: Intent[] = []
  const world = worldWithSigner(stage, {
    sign: async (intent) => {
      const { payoutId, attempt } = intent
      const tx = { txHash: `tx-${payoutId}-${attempt}`, bytes: 'ff' }
      if (payoutId !== FILLER || intent.family !== 'evm') return accept(tx)
      asked.push(intent)
      return accept({ ...tx, intent: { ...intent, maxFeePerGasWei: LOST_FEES[attempt - 1] ?? 0n } })
    },
  })
  const sent: string[] = []
  const chain = payingChain(stage, {
    broadcast: async ({ txHash }) => {
      sent.push(txHash)
      return 'refused'
    },
  })
  const feesOf = async () =>
    (await attemptsOf(stage.db, FILLER)).map(
      ({ intent }) => intent.family === 'evm' && intent.maxFeePerGasWei,
    )
  for (let minutes = 0; (await feesOf()).length < 2 && minutes < 60; minutes += 1) {
    stage.advance(60_000)
    await lookAt(stage, 'BTC', 100)
    await workPayouts(world, chain)
  }
  stage.chain('ETH').mined(`tx-${FILLER}-2`, 101, COST)
  await lookAt(stage, 'ETH', 124)
  for (let minutes = 0; minutes < 3; minutes += 1) {
    stage.advance(60_000)
    await lookAt(stage, 'BTC', 100)
    await workPayouts(world, chain)
  }
  expect(await feesOf()).toEqual(LOST_FEES)
  expect(asked.map((intent) => intent.family === 'evm' && intent.maxFeePerGasWei)).toEqual([2n, 154n])
  expect(sent).toContain(`tx-${FILLER}-1`)
  expect((await findOutflow(stage.db, FILLER))?.state).toBe('confirmed')
  expect((await findOrder(stage.db, id))?.state.status).toBe('EMERGENCY')
})

const COIN = 100_000_000n

const [a, b, c] = ['a', 'b', 'c'].map(
  (txHash): Coin => ({
    txHash,
    index: 0,
    satoshi: COIN,
    address: `deposit-${txHash}`,
    key: { purpose: 'deposit', index: 1 },
  }),
) as [Coin, Coin, Coin]

function spending(payoutId: PayoutId, inputs: readonly Coin[]): BitcoinIntent {
  const payment = { address: 'change-7', satoshi: COIN }
  return {
    family: 'bitcoin',
    chain: 'BTC',
    payoutId,
    attempt: 1,
    inputs,
    payment,
    change: null,
    feeSatoshi: 1n,
  }
}

test.each([
  { before: [a, c], state: 'broadcast' },
  { before: [b, c], state: 'planned' },
])('on Bitcoin it has to spend a coin of every attempt: $state', async ({ before, state }) => {
  await stage.db.query(
    `INSERT INTO addresses (family, address, purpose, key_index) VALUES ('bitcoin', 'change-7', 'change', 7)`,
  )
  await fundReserve(stage, 'BTC:BTC', 10n * COIN)
  for (const coin of [a, b, c]) await upsertCoin(stage.db, 'BTC', coin, { height: 1, hash: 'h' })
  const amounts = { asks: 100n * 10n ** 18n, promises: COIN }
  const order = await placeOrder(stage, 'USDT:ERC20', 'BTC:BTC', amounts)
  await confirmDeposit(stage, order, await mineDeposit(stage, order, amounts.asks, 60))
  const { payoutId } = await sendPayout(stage, order)
  await stage.db.query('UPDATE attempts SET intent = $1', [stringifyExact(spending(payoutId, [a]))])
  const stuck = await findOutflow(stage.db, payoutId)
  assert(stuck !== null, 'the payout is planned')
  const fillerId = fillerIdOf(stuck)
  const lost = spending(fillerId, before)
  const world = worldWithSigner(stage, {
    sign: async () => accept({ txHash: 'tx', bytes: 'ff', intent: lost }),
  })
  await takeBackCoins(world, { ...stuck, claimedAtHeight: null })
  await insertAttempt(stage.db, spending(fillerId, [a]), 1)
  const filler = await findOutflow(stage.db, fillerId)
  const [attempt] = await attemptsOf(stage.db, fillerId)
  assert(filler !== null && attempt !== undefined, 'the filler is drafted')
  const chain = { ...stage.chain('BTC'), broadcast: async () => 'accepted' as const }
  const progress = await sendAttempt(world, chain, { ...filler, claimedAtHeight: null }, attempt)
  expect((await findOutflow(stage.db, fillerId))?.state).toBe(state)
  const [written] = await attemptsOf(stage.db, fillerId)
  if (state === 'broadcast') expect(written).toMatchObject({ intent: lost, tx: { txHash: 'tx' } })
  else {
    expect(written).toMatchObject({ intent: { inputs: [a] }, tx: null })
    expect(progress).toMatchObject({ kind: 'trouble', refusal: 'conflict' })
  }
})
