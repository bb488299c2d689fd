import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Chain, TxStatus } from '../../chains/chain.ts'
import { attemptsOf } from '../../db/attempts.ts'
import type { ClaimedOutflow } from '../../db/claim_outflows.ts'
import { lockSpendableCoins, markSpent, unmineCoins, upsertCoin } from '../../db/coins.ts'
import { findOutflow } from '../../db/outflows.ts'
import { assert } from '../../domain/assert.ts'
import { stringifyExact } from '../../domain/exact_json.ts'
import { amountOf } from '../../domain/money/amount.ts'
import type { Coin } from '../../domain/payouts/intent.ts'
import {
  type BooksStage,
  confirmDeposit,
  fundReserve,
  mineDeposit,
  openBooksStage,
  placeOrder,
  sendPayout,
  writeAttempt,
} from '../testing/books_stage.ts'
import { nobodyElse } from '../testing/nobody_else.ts'
import { worldSigningNothing } from '../testing/willing_signer.ts'
import { endExcluded } from './excluded.ts'
import { followOutflow } from './follow.ts'
import { orphanOutflows } from './orphan.ts'
import { followRejected } from './rejected.ts'
import { fillerIdOf, readFillerFunds, takeBackCoins } from './take_back.ts'

/**
 * What: after a reorganisation deeper than the confirmations a filler is mined again by an attempt that spends other coins; the list of
 * coins says what the chain says, and a payout that was given one of them meanwhile ends.
 * How: a real PostgreSQL, orders moved by facts, and a chain that says what the test wants.
 */
let stage: BooksStage

beforeAll(async () => {
  stage = await openBooksStage('mined_again')
})

beforeEach(async () => {
  await stage.reset()
  await stage.db.query(
    `INSERT INTO addresses (family, address, purpose, key_index)
     VALUES ('bitcoin', 'change-7', 'change', 7), ('bitcoin', 'change-8', 'change', 8)`,
  )
  await fundReserve(stage, 'BTC:BTC', 10n * COIN)
  for (const coin of [a, b, c]) await upsertCoin(stage.db, 'BTC', coin, { height: 1, hash: 'h' })
})

afterAll(() => stage?.stop())

const ETHER = 10n ** 18n
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

/** Another attempt of it is with the network. */
async function attempt(payoutId: string, number: number, inputs: readonly Coin[]): Promise<void> {
  if (number > 1 || !payoutId.startsWith('CB'))
    await writeAttempt(stage, payoutId, number, `${payoutId}-tx-${number}`)
  await stage.db.query('UPDATE attempts SET intent = $3 WHERE payout_id = $1 AND attempt = $2', [
    payoutId,
    number,
    stringifyExact({ family: 'bitcoin', inputs }),
  ])
}

/** A payout of these coins, which the network has. */
async function pay(inputs: readonly Coin[]): Promise<string> {
  const order = await placeOrder(stage, 'USDT:ERC20', 'BTC:BTC', { asks: 100n * ETHER, promises: COIN })
  await confirmDeposit(stage, order, await mineDeposit(stage, order, 100n * ETHER, 60))
  const { payoutId } = await sendPayout(stage, order)
  await attempt(payoutId, 1, inputs)
  await markSpent(stage.db, 'BTC', inputs, payoutId)
  return payoutId
}

/** Its filler, planned. */
async function fill(payoutId: string): Promise<string> {
  const stuck = await outflow(payoutId)
  await takeBackCoins(worldSigningNothing(stage), stuck)
  return fillerIdOf(stuck)
}

async function outflow(payoutId: string): Promise<ClaimedOutflow> {
  const found = await findOutflow(stage.db, payoutId)
  assert(found !== null, `${payoutId} is planned`)
  return { ...found, claimedAtHeight: null }
}

/** It is deep in the chain by this attempt of it, and by no other. */
async function bury(payoutId: string, number: number, height: number): Promise<void> {
  const attempts = await attemptsOf(stage.db, payoutId)
  const txHash = attempts.find((one) => one.attempt === number)?.tx?.txHash
  const block = { height, hash: (await stage.chain('BTC').blockHash(height)) ?? '' }
  const found: TxStatus = { where: 'block', block, succeeded: true, cost: amountOf('BTC:BTC', 10n) }
  const chain: Chain = {
    ...stage.chain('BTC'),
    lookup: async (hash) => (hash === txHash ? found : { where: 'absent' }),
  }
  expect(await followOutflow(worldSigningNothing(stage), chain, await outflow(payoutId), attempts)).toEqual({
    kind: 'done',
  })
  expect(await stateOf(payoutId)).toBe('confirmed')
}

/** The chain leaves the block at this height. */
async function leave(height: number): Promise<void> {
  const block = { height, hash: (await stage.chain('BTC').blockHash(height)) ?? '' }
  const lost = { kind: 'named', blocks: [block] } as const
  await orphanOutflows(worldSigningNothing(stage), 'BTC', lost, height, nobodyElse)
}

function unmine(coin: Coin): Promise<unknown> {
  return stage.db.query('UPDATE coins SET block_height = NULL, block_hash = NULL WHERE tx_hash = $1', [
    coin.txHash,
  ])
}

async function stateOf(payoutId: string) {
  return (await outflow(payoutId)).state
}

async function spenders() {
  const rows = await stage.db.query<{ tx_hash: string; spent_by: string | null }>(
    'SELECT tx_hash, spent_by FROM coins',
  )
  return Object.fromEntries(rows.map(({ tx_hash, spent_by }) => [tx_hash, spent_by]))
}

/** As far as the chain can tell; it was asked about so many attempts. */
function chainWithoutProof(asked: number[]): Chain {
  return {
    ...stage.chain('BTC'),
    areExcluded: async (attempts) => {
      asked.push(attempts.length)
      return false
    },
  }
}

async function isExcluded(payoutId: string, asked: number[] = []): Promise<boolean> {
  await stage.db.query("UPDATE attempts SET answer = 'refused' WHERE payout_id = $1", [payoutId])
  return endExcluded(worldSigningNothing(stage), chainWithoutProof(asked), await outflow(payoutId))
}

test('a coin that loses its block is given to nobody, and is still whose it was when it is mined again', async () => {
  const payoutId = await pay([a])
  const change: Coin = { ...c, txHash: 'change', key: { purpose: 'change', index: 7 } }
  await upsertCoin(stage.db, 'BTC', change, { height: 1, hash: 'h' })
  const free = async () => (await lockSpendableCoins(stage.db, 'BTC', 100, 3)).map(({ txHash }) => txHash)
  expect(await free()).toEqual(['b', 'c', 'change'])
  await unmineCoins(stage.db, 'BTC', 'h')
  expect(await free()).toEqual([])
  for (const coin of [a, b]) await upsertCoin(stage.db, 'BTC', coin, { height: 2, hash: 'again' })
  expect(await free()).toEqual(['b'])
  await upsertCoin(stage.db, 'BTC', c, { height: 99, hash: 'not deep yet' })
  expect(await free()).toEqual(['b'])
  await upsertCoin(stage.db, 'BTC', c, { height: 98, hash: 'deep' })
  expect(await free()).toEqual(['b', 'c'])
  expect(await spenders()).toEqual({ a: payoutId, b: null, c: null, change: null })
})

test('a coin that a filler does not spend after all is free', async () => {
  const filler = await fill(await pay([a, b]))
  await attempt(filler, 1, [a, b])
  await bury(filler, 1, 80)
  expect(await spenders()).toEqual({ a: filler, b: filler, c: null })
  await leave(80)
  await unmine(b)
  const funds = await readFillerFunds(stage.db, await outflow(filler))
  expect(funds.model === 'coins' && funds.coins, 'what it is raised with').toEqual([a])
  await attempt(filler, 2, [a])
  await stage.db.query("UPDATE outflows SET state = 'orphaned' WHERE payout_id = $1", [filler])
  await bury(filler, 2, 81)
  expect(await spenders()).toEqual({ a: filler, b: null, c: null })
})

/** A filler was final without coin b, which a payout was given then; now it is final with it. */
async function overtake(inputs: readonly Coin[]) {
  const filler = await fill(await pay([a, b]))
  await attempt(filler, 1, [a, b])
  await attempt(filler, 2, [a])
  await bury(filler, 2, 80)
  expect(await spenders()).toEqual({ a: filler, b: null, c: null })
  const payoutId = await pay(inputs)
  await leave(80)
  expect(await isExcluded(payoutId), 'the filler is in no block').toBe(false)
  const stuck = await fill(payoutId)
  return { payoutId, filler, stuck }
}

test('a payout whose coin a filler has spent after all ends, whatever the chain can prove', async () => {
  const { payoutId, filler } = await overtake([b, c])
  await bury(filler, 1, 81)
  expect(await spenders()).toEqual({ a: filler, b: filler, c: payoutId })
  const asked: number[] = []
  expect(await isExcluded(payoutId, asked)).toBe(true)
  expect(asked).toEqual([])
  expect(await stateOf(payoutId)).toBe('failed')
  expect(await spenders()).toEqual({ a: filler, b: filler, c: null })
  const orders = await stage.db.query('SELECT status, emergency_reasons FROM orders ORDER BY order_id')
  expect(orders.at(-1)).toEqual({ status: 'EMERGENCY', emergency_reasons: ['NETWORK_PROBLEM'] })
})

/** A payout of coins a and b is deep in the block at 81, after the filler that had excluded it, by coin a, had lost its own. */
async function payInsteadOfFiller() {
  const payoutId = await pay([a, b])
  const filler = await fill(payoutId)
  await attempt(filler, 1, [a])
  await bury(filler, 1, 80)
  expect(await spenders()).toEqual({ a: filler, b: null, c: null })
  await leave(80)
  await findRejectedIn(payoutId, filler, 81)
  return { payoutId, filler }
}

/** The payout is deep in the block at this height, which is found by its filler. */
async function findRejectedIn(payoutId: string, filler: string, height: number): Promise<void> {
  const found: TxStatus = {
    where: 'block',
    block: { height, hash: (await stage.chain('BTC').blockHash(height)) ?? '' },
    succeeded: true,
    cost: amountOf('BTC:BTC', 10n),
  }
  const [mined] = await attemptsOf(stage.db, payoutId)
  const lookup: Chain['lookup'] = async (hash) => (hash === mined?.tx?.txHash ? found : { where: 'absent' })
  const chain = { ...stage.chain('BTC'), lookup }
  expect(await followRejected(worldSigningNothing(stage), chain, await outflow(filler))).toEqual({
    kind: 'done',
  })
  expect([await stateOf(payoutId), await stateOf(filler)]).toEqual(['failed', 'failed'])
  expect(await spenders()).toEqual({ a: payoutId, b: payoutId, c: null })
  expect(stage.logged.at(-1)).toMatchObject({ level: 'error', facts: { payout: payoutId } })
}

test('a payout that its filler had excluded is mined when the filler has lost its block: it has the coins, and is told of', async () => {
  await payInsteadOfFiller()
})

test('when that payout loses its block its filler goes on: one of the two has the coins and is booked', async () => {
  const { payoutId, filler } = await payInsteadOfFiller()
  for (const height of [81, 82]) {
    await leave(height)
    await leave(height)
    expect([await stateOf(payoutId), await stateOf(filler)]).toEqual(['failed', 'signed'])
    expect(await bookedOf(payoutId)).toBe(0n)
    if (height === 81) await findRejectedIn(payoutId, filler, 82)
  }
  await bury(filler, 1, 83)
  expect(await stateOf(payoutId)).toBe('failed')
  expect(await spenders()).toEqual({ a: filler, b: null, c: null })
  expect(await stage.db.query('SELECT 1 FROM outflows WHERE is_block_lost')).toEqual([])
})

test('when that filler can never be mined either, both have ended and nobody has the coins', async () => {
  const { payoutId, filler } = await payInsteadOfFiller()
  await leave(81)
  const chain: Chain = { ...stage.chain('BTC'), areExcluded: async () => true }
  expect(await endExcluded(worldSigningNothing(stage), chain, await outflow(filler))).toBe(true)
  expect([await stateOf(payoutId), await stateOf(filler)]).toEqual(['failed', 'failed'])
  expect(await spenders()).toEqual({ a: null, b: null, c: null })
  expect(await stage.db.query('SELECT 1 FROM outflows WHERE is_block_lost')).toEqual([])
})

/** What blocks that it was found in, and lost, have cost by the books. */
async function bookedOf(payoutId: string) {
  const [row] = await stage.db.query<{ units: bigint }>(
    `SELECT coalesce(sum(CASE WHEN debit = 'network_costs' THEN units ELSE -units END), 0)::numeric(78,0) AS units FROM journal
     WHERE entry_key LIKE $1 || ':block_%' AND 'network_costs' IN (debit, credit)`,
    [payoutId],
  )
  return row?.units
}

test('nor does it while the filler that has its coin has lost its block once more', async () => {
  const { payoutId, filler } = await overtake([b, c])
  await bury(filler, 1, 81)
  await leave(81)
  expect(await spenders()).toEqual({ a: filler, b: filler, c: payoutId })
  const asked: number[] = []
  expect(await isExcluded(payoutId, asked)).toBe(false)
  expect(asked).toEqual([1])
})

test('it does not end as long as its own filler may be mined without that coin', async () => {
  const { payoutId, filler, stuck } = await overtake([b, c])
  await attempt(stuck, 1, [c])
  await bury(filler, 1, 81)
  const asked: number[] = []
  expect(await isExcluded(payoutId, asked)).toBe(false)
  expect(asked, 'only of that one').toEqual([1])
  await bury(stuck, 1, 82)
  expect(await stateOf(payoutId)).toBe('failed')
  expect(await spenders()).toEqual({ a: filler, b: filler, c: stuck })
})

test.each(['payout', 'filler'] as const)(
  'the %s has the coin when the chain turns round once more, and keeps it when the filler before it is mined without',
  async (which) => {
    const { payoutId, filler, stuck } = await overtake([b, c])
    await bury(filler, 1, 81)
    await attempt(stuck, 1, [b, c])
    await leave(81)
    const winner = which === 'payout' ? payoutId : stuck
    await bury(winner, 1, 82)
    expect(await spenders()).toEqual({ a: filler, b: winner, c: winner })
    await bury(filler, 2, 83)
    expect(await spenders()).toEqual({ a: filler, b: winner, c: winner })
  },
)

test('a payout that was final and lost its coin to a filler stays owed', async () => {
  const { payoutId, filler } = await overtake([b])
  await bury(payoutId, 1, 82)
  await leave(82)
  await bury(filler, 1, 83)
  expect(await spenders()).toEqual({ a: filler, b: filler, c: null })
  expect(await isExcluded(payoutId)).toBe(true)
  expect(await stateOf(payoutId)).toBe('failed')
  expect(stage.logged.filter(({ level }) => level === 'error')).toHaveLength(1)
})
