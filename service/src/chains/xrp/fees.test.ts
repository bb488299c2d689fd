import { expect, test } from 'vitest'
import { fromChainUnits } from '../../domain/money/amount.ts'
import { estimateAt, feeWithin } from './fees.ts'

test('a quote says that a payout is above the cap where a bid is refused by it', () => {
  const asked = { feeDrops: 5_000n, ledger: 1 }
  for (const [cap, isAboveFeeCap] of [
    [5_000n, false],
    [4_999n, true],
  ] as const) {
    expect(estimateAt(cap, asked)).toEqual({ cost: fromChainUnits('XRP:XRP', 7_500n), isAboveFeeCap })
    expect(feeWithin(cap, asked).ok).toBe(!isAboveFeeCap)
  }
})
