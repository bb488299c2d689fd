import { expect, test } from 'vitest'
import type { KeyPath, SolanaIntent } from './intent.ts'
import { solanaFee, solanaFeeOf, unitPriceWithin } from './solana_fee.ts'

const reserve: KeyPath = { purpose: 'reserve', index: 0 }
const deposit: KeyPath = { purpose: 'deposit', index: 0 }

test('each signature costs 5,000 lamports, and the price of all units is raised to a whole one', () => {
  expect(solanaFee(1, 0, 0n)).toBe(5_000n)
  expect(solanaFee(2, 200_000, 0n)).toBe(10_000n)
  expect(solanaFee(1, 1_000_000, 3n)).toBe(5_003n)
  expect(solanaFee(1, 1, 1n)).toBe(5_001n)
  expect(solanaFee(1, 1_000_001, 1n)).toBe(5_002n)
})

test.each([
  ['who pays for itself signs once', reserve, reserve, 5_000n],
  ['another key of the same number is another', deposit, reserve, 10_000n],
  ['another number of the same kind is another', { ...deposit, index: 1 }, deposit, 10_000n],
] as const)('%s', (_what, from, payer, fee) => {
  const intent = { from, payer, computeUnits: 1, unitPriceMicroLamports: 0n } as SolanaIntent
  expect(solanaFeeOf(intent)).toBe(fee)
})

test('the price of a unit is the most at which all of them cost no more', () => {
  expect(unitPriceWithin(7n, 3)).toBe(2_333_333n)
  expect(solanaFee(0, 3, unitPriceWithin(7n, 3))).toBe(7n)
  expect(solanaFee(0, 3, unitPriceWithin(7n, 3) + 1n)).toBe(8n)
})
