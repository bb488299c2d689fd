import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Chain } from '../../chains/chain.ts'
import type { Database } from '../../db/database.ts'
import { findOutflow, type StoredOutflow } from '../../db/outflows.ts'
import { leaveRejected } from '../../db/unswept.ts'
import { assert } from '../../domain/assert.ts'
import { amountOf } from '../../domain/money/amount.ts'
import { refuse } from '../../domain/outcome.ts'
import type { Intent } from '../../domain/payouts/intent.ts'
import { MINUTE_MS } from '../../domain/time.ts'
import { endAgain, giveUpOrphan, orphanOutflows } from '../payouts/orphan.ts'
import { workPayouts } from '../payouts/work.ts'
import { type BooksStage, lookAt, openBooksStage } from '../testing/books_stage.ts'
import { nobodyElse } from '../testing/nobody_else.ts'
import { payingChain } from '../testing/paying_chain.ts'
import { deepDeposit, openReserve } from '../testing/sweeping.ts'
import { worldWithSigner } from '../testing/willing_signer.ts'
import { planSweeps } from './plan.ts'

/**
 * What: as long as a sweep that was final and has lost its block may be mined again, nothing else is planned for its address, also
 * when what had been planned after it has ended meanwhile: the same money would be swept twice.
 * How: a real PostgreSQL, a deposit on a chain on paper whose block becomes another one.
 */
let stage: BooksStage

beforeAll(async () => {
  stage = await openBooksStage('orphaned_sweep')
})

beforeEach(async () => {
  await stage.reset()
  await openReserve(stage)
})

afterAll(() => stage?.stop())

const ETHER = 10n ** 18n
const MINED = 101
const MINED_AGAIN = { txHash: 'again', intent: { family: 'evm' } as Intent }
const END = { succeeded: true, block: { height: MINED, hash: 'another' }, cost: amountOf('ETH:ETH', 1n) }

function sweeps() {
  return stage.db.query<{ id: string; state: string }>(
    'SELECT payout_id AS id, state FROM outflows ORDER BY payout_id',
  )
}

async function sweeping() {
  return (await stage.db.query('SELECT sweeping FROM unswept_addresses'))[0]?.sweeping
}

/** One sweep is final, another is planned for what has come in since; then the first one's block is another one. */
async function sweptAndPlanned(chain: Chain) {
  const order = await deepDeposit(stage)
  const { depositAddress } = order.terms
  await planSweeps(stage.world, chain)
  await workPayouts(worldWithSigner(stage), chain, 'deposits')
  const [first] = await sweeps()
  stage.chain('ETH').move(MINED, 'ETH:ETH', depositAddress, -ETHER)
  stage.chain('ETH').mined(`tx-${first?.id}`, MINED, 21_000n)
  await lookAt(stage, 'ETH', 200)
  stage.advance(1_000)
  await workPayouts(worldWithSigner(stage), chain, 'deposits')
  stage.chain('ETH').move(110, 'ETH:ETH', depositAddress, ETHER)
  await planSweeps(stage.world, chain)
  const [confirmed, planned] = await sweeps()
  expect([confirmed?.state, planned?.state]).toEqual(['confirmed', 'planned'])
  return { first: String(first?.id), second: String(planned?.id), depositAddress }
}

async function loseBlock(depositAddress: string, db: Database = stage.db): Promise<void> {
  stage.chain('ETH').move(MINED, 'ETH:ETH', depositAddress, ETHER)
  await stage.db.query("INSERT INTO chain_blocks (chain, height, hash) VALUES ('ETH', $1, 'another')", [
    MINED,
  ])
  await orphanOutflows({ ...stage.world, db }, 'ETH', { kind: 'replaced', aboveHeight: 0 }, 1, nobodyElse)
}

/** Nothing can be drafted at present, and what was sent waits. */
function dear(): Chain {
  return payingChain(stage, {
    balance: (asset, addresses, height) => stage.chain('ETH').balance(asset, addresses, height ?? 200),
    bid: async () => refuse({ code: 'fee_cap', message: 'fees are above the cap' }),
    lookup: async () => ({ where: 'mempool' }),
  })
}

function usual(): Chain {
  return payingChain(stage, {
    balance: (asset, addresses, height) => stage.chain('ETH').balance(asset, addresses, height ?? 200),
  })
}

test('when a sweep that is planned ends, its address waits for an earlier one that has lost its block', async () => {
  const { first, second, depositAddress } = await sweptAndPlanned(usual())
  await loseBlock(depositAddress)
  stage.advance(MINUTE_MS)
  await workPayouts(worldWithSigner(stage), dear(), 'deposits')
  expect(await sweeps()).toEqual([
    { id: first, state: 'orphaned' },
    { id: second, state: 'cancelled' },
  ])
  expect(await sweeping()).toBe(first)
  stage.advance(24 * 60 * MINUTE_MS)
  await planSweeps(stage.world, usual())
  expect(await sweeps()).toHaveLength(2)
})

test.each([
  ['is final again', 'confirmed', (first: StoredOutflow) => endAgain(stage.world, first, MINED_AGAIN, END)],
  [
    'can never be mined again',
    'failed',
    (first: StoredOutflow) => giveUpOrphan(stage.world, first, nobodyElse),
  ],
] as const)('its address is free when a sweep that has lost its block %s', async (_, state, end) => {
  const { first, depositAddress } = await sweptAndPlanned(usual())
  await loseBlock(depositAddress)
  stage.advance(MINUTE_MS)
  await workPayouts(worldWithSigner(stage), dear(), 'deposits')
  expect(await sweeping()).toBe(first)
  const orphaned = await findOutflow(stage.db, first)
  assert(orphaned?.state === 'orphaned', 'its block is another one')
  await end(orphaned)
  expect((await sweeps())[0]).toEqual({ id: first, state })
  expect(await sweeping()).toBeNull()
})

test.each<[string, (second: string) => Promise<unknown>]>([
  ['cannot be drafted', () => workPayouts(worldWithSigner(stage), dear(), 'deposits')],
  [
    'is rejected',
    (second) =>
      stage.db.transaction((tx) =>
        leaveRejected(tx, 'ETH', second, { nowMs: stage.world.clock.nowMs(), leastMs: 0 }),
      ),
  ],
])(
  'so it does when that one loses its block at the very moment at which the planned one %s',
  async (_, end) => {
    const { first, second, depositAddress } = await sweptAndPlanned(usual())
    const written = Promise.withResolvers<void>()
    const committing = Promise.withResolvers<void>()
    const slow: Database = {
      ...stage.db,
      transaction: (work) =>
        stage.db.transaction(async (tx) => {
          const value = await work(tx)
          written.resolve()
          await committing.promise
          return value
        }),
    }
    const losing = loseBlock(depositAddress, slow)
    await written.promise
    stage.advance(MINUTE_MS)
    const working = end(second)
    const isWaiting = async () =>
      (await stage.asOwner.query("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'")).length > 0
    while (!(await isWaiting()));
    committing.resolve()
    await Promise.all([losing, working])
    expect((await sweeps())[0]).toEqual({ id: first, state: 'orphaned' })
    expect(await sweeping()).toBe(first)
  },
)
