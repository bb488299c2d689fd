import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { chainFacts } from '../../domain/catalog/networks.ts'
import { HOUR_MS } from '../../domain/time.ts'
import { workPayouts } from '../payouts/work.ts'
import { type BooksStage, lookAt, openBooksStage } from '../testing/books_stage.ts'
import { payingChain } from '../testing/paying_chain.ts'
import { deepDeposit, openReserve } from '../testing/sweeping.ts'
import { worldWithSigner } from '../testing/willing_signer.ts'
import { planSweeps } from './plan.ts'

/**
 * What: a sweep that the chain executes and rejects costs its gas, and is tried again ever less often.
 * How: a real PostgreSQL, and a chain on paper whose simulation agrees each time and whose blocks do not.
 */
let stage: BooksStage

beforeAll(async () => {
  stage = await openBooksStage('rejected')
})

beforeEach(async () => {
  await stage.reset()
  await openReserve(stage)
})

afterAll(() => stage?.stop())

const DAYS = 30
const BLOCKS_A_TRY = chainFacts.ETH.confirmations

function sweeps() {
  return stage.db.query<{ id: string; state: string }>(
    'SELECT payout_id AS id, state FROM outflows ORDER BY planned_at_ms, payout_id',
  )
}

test('what the chain rejects again and again for a month costs its gas a few times, not thousands', async () => {
  await deepDeposit(stage)
  const [chain, world] = [payingChain(stage), worldWithSigner(stage)]
  for (let head = 100, hour = 0; hour < DAYS * 24; hour += 1) {
    await planSweeps(world, chain)
    await workPayouts(world, chain, 'deposits')
    const sent = (await sweeps()).find(({ state }) => state === 'broadcast')
    if (sent !== undefined) {
      stage.chain('ETH').mined(`tx-${sent.id}`, head + 1, 21_000n, false)
      head += BLOCKS_A_TRY
    }
    stage.advance(HOUR_MS)
    await lookAt(stage, 'ETH', head)
    await workPayouts(world, chain, 'deposits')
  }
  const tried = await sweeps()
  expect(new Set(tried.map(({ state }) => state))).toEqual(new Set(['failed']))
  expect(tried.length).toBeLessThan(15)
})
