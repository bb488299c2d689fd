import { expect, test } from 'vitest'
import type { AssetId } from '../catalog/assets.ts'
import { amountOf } from '../money/amount.ts'
import { type Holding, isWorthSweeping, nextSweepStep, sweepIdOf } from './sweep.ts'

/** What: which of the things at an address is moved next, if any is worth it. How: amounts at the very edge. */
function holding(asset: AssetId, units: bigint, cost: bigint | null, missing: bigint | null = null): Holding {
  return {
    amount: amountOf(asset, units),
    cost: cost === null ? null : amountOf(asset, cost),
    hasGas: missing === null,
    missingGas: amountOf('ETH:ETH', missing ?? 0n),
  }
}

test.each([
  ['ten times the cost', 1_000n, 100n, 10n, true],
  ['one unit less', 999n, 100n, 10n, false],
  ['another multiple', 999n, 100n, 9n, true],
  ['without a price', 10n ** 30n, null, 10n, false],
  ['nothing, even for nothing', 0n, 0n, 10n, false],
] as const)('%s', (_, units, cost, multiple, isWorth) => {
  expect(isWorthSweeping(holding('USDT:ERC20', units, cost), multiple)).toBe(isWorth)
})

test('a token with gas is swept, one without gets its gas first', () => {
  const sweep = nextSweepStep([holding('USDT:ERC20', 1_000n, 1n)], 10n)
  expect(sweep).toEqual({ kind: 'sweep', amount: amountOf('USDT:ERC20', 1_000n) })
  const gas = nextSweepStep([holding('USDT:ERC20', 1_000n, 1n, 77n)], 10n)
  expect(gas).toEqual({ kind: 'bring_gas', amount: amountOf('ETH:ETH', 77n) })
})

test('the first that is worth it is taken, and the coin that pays for it waits', () => {
  const holdings = [
    holding('USDC:ERC20', 9n, 1n),
    holding('USDT:ERC20', 1_000n, 1n, 77n),
    holding('ETH:ETH', 1_000n, 1n),
  ]
  expect(nextSweepStep(holdings, 10n)).toMatchObject({ kind: 'bring_gas' })
  expect(nextSweepStep([...holdings.slice(0, 1), ...holdings.slice(2)], 10n)).toEqual({
    kind: 'sweep',
    amount: amountOf('ETH:ETH', 1_000n),
  })
  expect(nextSweepStep(holdings.slice(0, 1), 10n)).toBeNull()
  expect(nextSweepStep([], 10n)).toBeNull()
})

test('every sweep of an address has an id of its own', () => {
  expect(sweepIdOf('ETH', 7, 2)).toBe('sweep-ETH-7-2:1')
})
