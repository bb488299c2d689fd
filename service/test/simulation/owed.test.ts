import { expect, test } from 'vitest'
import { judgeViolations } from './owed.ts'

/**
 * What: of an order that is owed what it was paid, the audit's two sentences about that are right, and everything else is wrong.
 * How: sentences of the audit, with one missing or one too many.
 */
const ID = 'CB0000000000000001'
const BOOKS = 'the books agree with themselves'
const owed = [{ order_id: ID }]

const isOver = `${BOOKS}: ${ID} (outflows): it is DONE and its outflow ${ID}:1 is not confirmed`
const cameBack = `${BOOKS}: ${ID} (outflows): the failed payout ${ID}:1 is booked as orphaned with 0.08 BTC:BTC, and that is 0 BTC:BTC`

test('what the audit has to say of it is not wrong', () => {
  expect(judgeViolations([isOver, cameBack], owed)).toEqual([])
})

test.each([
  [
    'a balance',
    `${BOOKS}: ${ID} (balances): fee_income is 0 BTC:BTC, while an order in DONE has -0.001 BTC:BTC`,
  ],
  [
    'a deposit',
    `${BOOKS}: ${ID} (deposits): the confirmed deposit ETH:a:0 of 1 ETH:ETH is booked with 2 ETH:ETH`,
  ],
  ['another payment', `${BOOKS}: ${ID} (outflows): it was paid 2 times: ${ID}:1, ${ID}:2`],
  ['an event', `${BOOKS}: ${ID} (events): it has no events`],
  ['an invariant of its own', `nothing is paid twice: ${ID} was paid 2 times: a, b`],
])('%s of the same order is', (_, violation) => {
  expect(judgeViolations([isOver, cameBack, violation], owed)).toEqual([violation])
})

test.each([
  ['that it is over', [cameBack]],
  ['that it came back', [isOver]],
])('an audit that does not say %s is wrong', (_, said) => {
  expect(judgeViolations(said, owed)).toEqual([
    `${ID} is owed what it was paid, and the audit does not say so`,
  ])
})

test('of an order that is owed nothing the same is wrong', () => {
  expect(judgeViolations([isOver, cameBack], [])).toEqual([isOver, cameBack])
})
