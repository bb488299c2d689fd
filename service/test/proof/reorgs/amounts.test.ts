import { expect, test } from 'vitest'
import { checkPaid, checkRefunded, type EndedRow, type ShownOrder } from './amounts.ts'

/**
 * What: the verdict of the storm notices who pays or keeps something else than what was shown, though his own books agree with it.
 * How: a bitcoin is worth 60,000 dollars, the fee is 1 % or 0.5 %, and a payout costs 2 dollars.
 */
const BTC = 100_000_000n
/** With the most decimals that it has on any network. */
const USD = 10n ** 18n
const MICRO = 10n ** 12n

const fixed: ShownOrder = {
  rate_type: 'fixed',
  deposit_amount: 0.1,
  receive_amount: 5_938.613861,
  fee: 59.386139,
  network_fee: 2,
}
const float: ShownOrder = { ...fixed, rate_type: 'float', receive_amount: 5_968.159203, fee: 29.840797 }

const row: EndedRow = {
  from_asset: 'BTC:BTC',
  to_asset: 'USDT:TRC20',
  settled_received: BTC / 10n,
  settled_paid: 5_938_613_861n * MICRO,
  settled_rate: '59386.13861',
  refund_units: null,
  refund_network_fee: null,
  was_asked: false,
  shown_refund_fee: null,
}

test('what was shown, and what the market gives for a half', () => {
  expect(checkPaid(fixed, row)).toEqual([])
  const half = { ...row, settled_received: BTC / 20n, was_asked: true }
  expect(checkPaid(fixed, { ...half, settled_paid: 2_969_306_930n * MICRO })).toEqual([])
  expect(
    checkPaid(float, { ...half, settled_paid: 2_983_084_577n * MICRO, settled_rate: '59661.69154' }),
  ).toEqual([])
})

test('a fixed order that is paid a hundredth less, at a rate of its own', () => {
  const less = { ...row, settled_paid: 5_879_227_722n * MICRO, settled_rate: '58792.27722' }
  expect(checkPaid(fixed, less)).toEqual([
    `it paid ${5_879_227_722n * MICRO}, and ${5_938_613_861n * MICRO} was shown`,
  ])
})

test('a fee that is taken twice, at a rate of its own', () => {
  const twice = { ...row, settled_paid: 5_938_466_868n * MICRO, settled_rate: '59384.66868' }
  expect(checkPaid(float, twice)).toEqual([
    expect.stringMatching(
      /^it paid 5938466868\d{12} for 10000000, and by what was shown that is 59\d{20} to 59\d{20}$/,
    ),
  ])
  const half = { ...row, settled_received: BTC / 20n, was_asked: true }
  const priced = { ...half, settled_paid: 2_938_927_555n * MICRO, settled_rate: '58778.5511' }
  expect(checkPaid(fixed, priced)).toEqual([
    expect.stringMatching(/^it paid 2938927555\d{12} for 5000000, and by what was shown/),
  ])
})

test('a refund that keeps more than it said, which its books call a cost', () => {
  const refunded: EndedRow = {
    ...row,
    from_asset: 'USDT:TRC20',
    refund_units: 998n * USD,
    refund_network_fee: 2n * USD,
    was_asked: true,
    shown_refund_fee: '1.9',
  }
  expect(checkRefunded(refunded)).toEqual([])
  const half = { ...refunded, refund_units: 500n * USD, refund_network_fee: 500n * USD }
  expect(checkRefunded(half)).toEqual([
    `it kept ${500n * USD} for its refund of ${500n * USD}, and should keep ${(76n * USD) / 10n} at the most`,
  ])
  expect(checkRefunded({ ...half, shown_refund_fee: null })).toHaveLength(1)
})
