import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { listUnclaimed } from '../../db/house_deposits.ts'
import {
  type BooksStage,
  confirmDeposit,
  confirmPayout,
  mineDeposit,
  openBooksStage,
  placeOrder,
  sendPayout,
} from '../testing/books_stage.ts'

/**
 * What: of what no order could use, an operator is told what may still count: given back by hand, it would be paid twice.
 * How: a real PostgreSQL, and an order that is paid once more while its payout is under way.
 */
let stage: BooksStage

beforeAll(async () => {
  stage = await openBooksStage('unclaimed')
})
beforeEach(() => stage.reset())
afterAll(() => stage?.stop())

async function told() {
  const rows = await listUnclaimed(stage.db)
  return rows.map(({ kind, units, status, may_count }) => ({ kind, units, status, may_count }))
}

test('what came to an order under way may count until that one is done; dust may not', async () => {
  const order = await placeOrder(stage, 'BTC:BTC', 'ETH:ETH', { asks: 1_000_000n, promises: 10n ** 18n })
  await confirmDeposit(stage, order, await mineDeposit(stage, order, 1_000_000n, 100))
  const payout = await sendPayout(stage, order)
  for (const units of [500_000n, 3n])
    await confirmDeposit(stage, order, await mineDeposit(stage, order, units, 101))
  const dust = { kind: 'dust', units: 3n, may_count: false }
  expect(await told()).toEqual([
    { ...dust, status: 'WITHDRAW' },
    { kind: 'extra', units: 500_000n, status: 'WITHDRAW', may_count: true },
  ])
  await confirmPayout(stage, order, { ...payout, cost: 1n })
  expect(await told()).toEqual([
    { ...dust, status: 'DONE' },
    { kind: 'extra', units: 500_000n, status: 'DONE', may_count: false },
  ])
})
