import { assert } from '../domain/assert.ts'
import { assetOf } from '../domain/catalog/assets.ts'
import { chainFacts } from '../domain/catalog/networks.ts'
import { type Amount, parseAmount } from '../domain/money/amount.ts'
import type { Policy } from './policy.ts'

/** Spec 8: BTC 3 to 6; the larger number from the configured amount on. */
export function requiredConfirmations({ largeDeposits }: Policy, amount: Amount): number {
  const asset = assetOf(amount.asset)
  const { confirmations, confirmationsLarge } = chainFacts[asset.chain]
  const threshold = largeDeposits[asset.currency]
  if (threshold === undefined) return confirmations
  const large = parseAmount(asset, threshold)
  assert(large.ok, `the threshold for large ${asset.currency} deposits is an amount`)
  return amount.units >= large.value.units ? confirmationsLarge : confirmations
}
