import { expect, test } from 'vitest'
import { fromChainUnits } from '../../domain/money/amount.ts'
import { askedFee, estimateAt, feeWithin } from './fees.ts'
import { NoAnswer } from './horizon.ts'
import { scriptedHorizon } from './testing/scripted_horizon.ts'

const askedOf = (feeCharged: object, base = '100') =>
  askedFee(scriptedHorizon({ '/fee_stats': () => ({ last_ledger_base_fee: base, fee_charged: feeCharged }) }))

test('what contracts pay for their resources is not what a payment is asked', async () => {
  // As Horizon told it of ledgers in which every second transaction called a contract.
  const mixed = { mode: '100', p50: '11582', p90: '1200000', p99: '6094640' }
  expect(await askedOf(mixed)).toBe(100n)
})

test('where ledgers are full, it is what payments are charged then, and never less than the base fee', async () => {
  expect(await askedOf({ mode: '5000', p90: '5000' })).toBe(5_000n)
  expect(await askedOf({ mode: '100', p90: '100' }, '200')).toBe(200n)
})

test('a Horizon that does not say is no answer', async () => {
  await expect(askedOf({ p90: '100' })).rejects.toThrow(NoAnswer)
})

test('a quote says that a payout is above the cap where a bid is refused by it', () => {
  for (const [cap, isAboveFeeCap] of [
    [5_000n, false],
    [4_999n, true],
  ] as const) {
    expect(estimateAt(cap, 5_000n)).toEqual({ cost: fromChainUnits('XLM:XLM', 10_000n), isAboveFeeCap })
    expect(feeWithin(cap, 5_000n).ok).toBe(!isAboveFeeCap)
  }
})
