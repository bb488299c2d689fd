import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { amountOf } from '../domain/money/amount.ts'
import type { Fact } from '../domain/orders/facts.ts'
import { apply } from './apply.ts'
import {
  type BooksStage,
  confirmDeposit,
  confirmPayout,
  mineDeposit,
  openBooksStage,
  placeOrder,
  sendPayout,
  tell,
} from './testing/books_stage.ts'
import { paidOrder } from './testing/priced_order.ts'

/**
 * What: the log tells once that a deposit lost its block after its money may have left, and that nothing is missing any more.
 * How: a real PostgreSQL, and facts as the watcher tells them of a reorganisation.
 */
let stage: BooksStage

beforeAll(async () => {
  stage = await openBooksStage('warn_of_deposits')
})

beforeEach(() => stage.reset())

afterAll(() => stage?.stop())

const PART = 500_000n

function unmined(key: string): Fact {
  return { kind: 'DepositUnmined', key }
}

async function minedAgain(id: string, key: string, units: bigint, hash: string): Promise<void> {
  await tell(stage, id, `${key}:mined:${hash}`, {
    kind: 'DepositSeen',
    key,
    txHash: 'again',
    amount: amountOf('BTC:BTC', units),
    seenAtMs: stage.world.clock.nowMs(),
    block: { height: 101, hash },
  })
}

function confirmedAgain(id: string, key: string, hash: string): Promise<void> {
  return tell(stage, id, `${key}:confirmed:${hash}`, { kind: 'DepositConfirmed', key })
}

const MISSING = /^a deposit lost its block, and what was paid for it may have left/
const BACK = 'what an order was paid for is confirmed again: nothing of it is missing'

test('that a deposit lost its block after its payout left is said once, however often that is heard, and so is that it is back', async () => {
  const { order, id, key } = await paidOrder(stage)
  await confirmPayout(stage, order, { ...(await sendPayout(stage, order)), cost: 1n })
  const extra = await mineDeposit(stage, order, PART, 100)
  await confirmDeposit(stage, order, extra)
  stage.logged.length = 0
  await tell(stage, id, `${key}:unmined:a@0`, unmined(key))
  await apply(stage.world, id, `${key}:unmined:a@0`, unmined(key))
  const facts = { order: id, status: 'DONE', deposit: key, asset: 'BTC:BTC', amount: '0.01' }
  const missing = { level: 'error', facts, message: expect.stringMatching(MISSING) }
  expect(stage.logged).toEqual([missing])
  await minedAgain(id, key, 1_000_000n, 'b')
  await tell(stage, id, `${key}:unmined:b@1`, unmined(key))
  await tell(stage, id, `${extra}:unmined:a@0`, unmined(extra))
  expect(stage.logged, 'it is missing already, and what was never used is not').toEqual([missing])
  await minedAgain(id, key, 1_000_000n, 'c')
  await confirmedAgain(id, key, 'c')
  expect(stage.logged).toEqual([missing, { level: 'info', facts, message: BACK }])
})

test('of several that lost their blocks each is told of, and only the last that is back says that nothing is missing', async () => {
  const order = await placeOrder(stage, 'BTC:BTC', 'ETH:ETH', { asks: 2n * PART + 1n, promises: 10n ** 18n })
  const { id } = order.terms
  const parts = [PART, PART + 1n]
  const keys: string[] = []
  for (const units of parts) keys.push(await mineDeposit(stage, order, units, 100))
  for (const key of keys) await confirmDeposit(stage, order, key)
  await sendPayout(stage, order)
  for (const key of keys) await tell(stage, id, `${key}:unmined:a@0`, unmined(key))
  expect(stage.logged.map(({ level, facts }) => [level, facts])).toEqual(
    keys.map((deposit, at) => [
      'error',
      expect.objectContaining({ deposit, status: 'WITHDRAW', amount: ['0.005', '0.00500001'][at] }),
    ]),
  )
  for (const [at, key] of keys.entries()) {
    await minedAgain(id, key, parts[at] ?? 0n, 'b')
    await confirmedAgain(id, key, 'b')
    expect(stage.logged.filter(({ message }) => message === BACK)).toHaveLength(at)
  }
})

test('a deposit that loses its block before anything left is no such news', async () => {
  const { id, key } = await paidOrder(stage)
  await tell(stage, id, 'priced:1', { kind: 'ExchangePriced', quote: null })
  await tell(stage, id, `${key}:unmined:a@0`, unmined(key))
  await minedAgain(id, key, 1_000_000n, 'b')
  await confirmedAgain(id, key, 'b')
  expect(stage.logged).toEqual([])
})
