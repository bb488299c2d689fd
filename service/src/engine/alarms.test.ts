import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { amountOf } from '../domain/money/amount.ts'
import { openAlarms, type RungLoop } from './alarms.ts'
import { apply } from './apply.ts'
import {
  type BooksStage,
  confirmDeposit,
  mineDeposit,
  openBooksStage,
  placeOrder,
} from './testing/books_stage.ts'

/**
 * What: whoever writes down what is due rings the loop that does it, and no other.
 * How: a real PostgreSQL and an order that goes from its deposit to its payout, fact by fact.
 */
let stage: BooksStage

beforeAll(async () => {
  stage = await openBooksStage('alarms')
})
beforeEach(() => stage.reset())
afterAll(() => stage?.stop())

const LOOPS: readonly RungLoop[] = ['exchange', 'expire', 'market', 'relay', 'payouts BTC', 'payouts ETH']

/** The loops whose rest ended while `act` was done. */
async function rungBy(act: () => Promise<unknown>): Promise<readonly RungLoop[]> {
  const signals = LOOPS.map((loop) => [loop, stage.world.alarms.of(loop).signal] as const)
  await act()
  return signals.filter(([, signal]) => signal.aborted).map(([loop]) => loop)
}

test('a change of an order rings those who have something to do by it', async () => {
  const order = await placeOrder(stage, 'BTC:BTC', 'USDT:ERC20', { asks: 1_000n, promises: 500n })
  let key = ''
  const seen = await rungBy(async () => {
    key = await mineDeposit(stage, order, 1_000n, 101)
  })
  expect(seen).toEqual(['relay'])
  expect(await rungBy(() => confirmDeposit(stage, order, key))).toEqual(['exchange', 'relay'])
  const price = () => apply(stage.world, order.terms.id, 'priced:1', { kind: 'ExchangePriced', quote: null })
  expect(await rungBy(price)).toEqual(['relay', 'payouts ETH'])
  expect(await rungBy(price), 'what is known already changes nothing').toEqual([])
})

test('a refund rings those who pay on the chain that the deposit came from', async () => {
  const order = await placeOrder(stage, 'BTC:BTC', 'USDT:ERC20', { asks: 10_000_000n, promises: 500n })
  await confirmDeposit(stage, order, await mineDeposit(stage, order, 5_000_000n, 101))
  const refund = {
    amount: amountOf('BTC:BTC', 4_999_000n),
    networkFee: amountOf('BTC:BTC', 1_000n),
    address: 'back',
  }
  const choose = () =>
    apply(stage.world, order.terms.id, 'chosen', { kind: 'ActionChosen', action: 'refund', refund })
  expect(await rungBy(choose)).toEqual(['relay', 'payouts BTC'])
})

test('a bell is rung for all who hear it, and the next one for those who listen then', () => {
  const alarms = openAlarms()
  const first = alarms.of('market').signal
  alarms.ringAll()
  expect(first.aborted).toBe(true)
  expect(alarms.of('market').signal.aborted).toBe(false)
  alarms.ring('relay')
  expect(alarms.of('market').signal.aborted).toBe(false)
})
