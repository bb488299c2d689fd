import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { readHead, rewindHead } from '../../db/chain_heads.ts'
import { type ClaimedOutflow, claimOutflows, postponeOutflow } from '../../db/claim_outflows.ts'
import { lockSpendableCoins, markSpent, upsertCoin } from '../../db/coins.ts'
import { planOutflow } from '../../db/outflows.ts'
import { assert } from '../../domain/assert.ts'
import { HOUR_MS } from '../../domain/time.ts'
import { type BooksStage, lookAt, openBooksStage } from '../testing/books_stage.ts'
import { worldWithSigner } from '../testing/willing_signer.ts'
import { CLAIM_MS, claimKeeper } from './claim.ts'
import { ringDue } from './work.ts'

/**
 * What: what waits for a block is not asked for before there is one, and no coin is given to two payouts.
 * How: a real PostgreSQL, and workers that come again and again or all at once.
 */
let stage: BooksStage

beforeAll(async () => {
  stage = await openBooksStage('claims')
})

beforeEach(() => stage.reset())

afterAll(() => stage?.stop())

function claim(): Promise<ClaimedOutflow[]> {
  const { clock } = stage.world
  const time = { nowMs: clock.nowMs(), wallMs: clock.wallMs(), claimMs: 100 }
  return claimOutflows(stage.db, 'ETH', 'reserve', time, 10)
}

/** Claimed by a worker that lets it go again, to be looked at so. */
async function leaveAt(atHeight: number | 'next' | null): Promise<void> {
  const [claimed] = await claim()
  assert(claimed !== undefined, 'the outflow is due')
  await postponeOutflow(stage.db, claimed, { dueAtMs: stage.world.clock.nowMs(), atHeight }, null)
}

beforeEach(() =>
  planOutflow(
    stage.db,
    { payoutId: 'house-ETH-1:1', kind: 'filler', asset: 'ETH:ETH', units: 0n, address: 'us', tag: null },
    stage.world.clock.nowMs(),
  ),
)

test('what was claimed before the clock was set back is claimed again', async () => {
  stage.advance(HOUR_MS)
  expect(await claim()).toHaveLength(1)
  stage.advance(-HOUR_MS)
  expect(await claim()).toHaveLength(1)
  expect(await claim(), 'by a clock that is right').toEqual([])
})

test.each([
  ['some time', null],
  ['the next block', 'next'],
  ['a certain block', 105],
] as const)(
  'what was put off until %s before the clock was set back is looked at again',
  async (_, atHeight) => {
    await lookAt(stage, 'ETH', 100)
    stage.advance(8 * HOUR_MS)
    await leaveAt(atHeight)
    stage.advance(-8 * HOUR_MS)
    await leaveAt(atHeight)
    expect(await claim(), 'by a clock that is right').toHaveLength(atHeight === null ? 1 : 0)
  },
)

test('who is at work while the clock is set back keeps what it has claimed', async () => {
  stage.advance(HOUR_MS)
  const [claimed] = await claim()
  assert(claimed !== undefined, 'the outflow is due')
  const keep = claimKeeper(worldWithSigner(stage, {}), claimed)
  stage.advance(-HOUR_MS)
  await keep()
  expect(await claim()).toEqual([])
  stage.advance(CLAIM_MS + 1)
  expect(await claim(), 'it is gone').toHaveLength(1)
})

test('what has been in trouble since a time that is still to come has been so since now', async () => {
  const since = async () => {
    const [claimed] = await claim()
    assert(claimed !== undefined, 'the outflow is due')
    const nowMs = stage.world.clock.nowMs()
    await postponeOutflow(
      stage.db,
      claimed,
      { dueAtMs: nowMs, atHeight: null },
      { message: 'no funds', nowMs },
    )
    const [row] = await stage.db.query<{ ms: number }>('SELECT trouble_since_ms AS ms FROM outflows')
    return (row?.ms ?? 0) - nowMs
  }
  stage.advance(8 * HOUR_MS)
  expect(await since()).toBe(0)
  stage.advance(-8 * HOUR_MS)
  expect(await since()).toBe(0)
  stage.advance(1_000)
  expect(await since(), 'it goes on').toBe(-1_000)
})

test('what waits for the next block is left alone until it was looked at', async () => {
  await leaveAt('next')
  expect(await claim()).toEqual([])
  await lookAt(stage, 'ETH', 101)
  expect(await claim()).toHaveLength(1)
})

test('who pays on a chain is rung when something is due there, and at no other time', async () => {
  const rung = async () => {
    const { alarms } = stage.world
    const [eth, btc] = [alarms.of('payouts ETH').signal, alarms.of('payouts BTC').signal]
    await ringDue(worldWithSigner(stage, {}))
    expect(btc.aborted, 'nothing leaves there').toBe(false)
    return eth.aborted
  }
  expect(await rung()).toBe(true)
  const [claimed] = await claim()
  assert(claimed !== undefined, 'the outflow is due')
  expect(await rung(), 'somebody is at it').toBe(false)
  stage.advance(101)
  expect(await rung(), 'who had it is gone').toBe(true)
  await leaveAt('next')
  expect(await rung()).toBe(false)
  await lookAt(stage, 'ETH', 101)
  expect(await rung()).toBe(true)
})

test('a block that was looked at while a worker had it is the next one', async () => {
  const [claimed] = await claim()
  assert(claimed !== undefined, 'the outflow is due')
  // What the worker has asked the node may be from before this block.
  await lookAt(stage, 'ETH', 101)
  await postponeOutflow(stage.db, claimed, { dueAtMs: stage.world.clock.nowMs(), atHeight: 'next' }, null)
  expect(await claim()).toHaveLength(1)
})

test('what waits for a certain block is left alone until that one was looked at', async () => {
  await leaveAt(105)
  await lookAt(stage, 'ETH', 104)
  expect(await claim()).toEqual([])
  await lookAt(stage, 'ETH', 105)
  expect(await claim()).toHaveLength(1)
})

test('a chain that stands still, or goes back, keeps nobody waiting for a block', async () => {
  await leaveAt('next')
  stage.advance(19_999)
  expect(await claim()).toEqual([])
  stage.advance(1)
  expect(await claim(), 'twenty seconds without a block').toHaveLength(1)

  stage.advance(1_000)
  await leaveAt(105)
  const head = await readHead(stage.db, 'ETH')
  assert(head !== null, 'the chain is looked at')
  await stage.db.transaction((tx) => rewindHead(tx, 'ETH', head.block, 0))
  expect(await claim(), 'a reorganisation').toHaveLength(1)
})

test('of many who draft at once, each gets coins that nobody else gets', async () => {
  const take = (payout: string) =>
    stage.db.transaction(async (tx) => {
      const [largest] = await lockSpendableCoins(tx, 'BTC', 100, 3)
      if (largest === undefined) return null
      await markSpent(tx, 'BTC', [largest], payout)
      return largest
    })
  for (const [index, satoshi] of [500n, 700n, 600n].entries()) {
    const key = { purpose: 'change' as const, index }
    await upsertCoin(
      stage.db,
      'BTC',
      { txHash: 'tx', index, satoshi, address: 'us', key },
      { height: 1, hash: 'h' },
    )
  }
  const taken = await Promise.all(Array.from({ length: 12 }, (_, payout) => take(`payout-${payout}`)))
  const coins = taken.filter((coin) => coin !== null)
  expect(coins.map(({ satoshi }) => satoshi).sort()).toEqual([500n, 600n, 700n])
  await expect(stage.db.transaction((tx) => markSpent(tx, 'BTC', coins, 'another'))).rejects.toThrow(
    "nobody else's",
  )
})
