import { assert } from '../../src/domain/assert.ts'
import { type AssetId, assetOf } from '../../src/domain/catalog/assets.ts'
import { chainFacts } from '../../src/domain/catalog/networks.ts'
import { parseAmount } from '../../src/domain/money/amount.ts'

/** How deep so many ledger units have to be before anything is made of them. */
export type RequiredDepth = (asset: AssetId, units: bigint) => number

/** Said once more (spec 8): the service must not be asked about itself. */
const CONFIRMATIONS_LARGE = 6

/** On Bitcoin it is more from `largeBtc` on. */
export function requiredDepth(largeBtc: string): RequiredDepth {
  const large = parseAmount(assetOf('BTC:BTC'), largeBtc)
  assert(large.ok, `${largeBtc} is an amount`)
  const { units: largeUnits } = large.value
  return (asset, units) =>
    asset === 'BTC:BTC' && units >= largeUnits
      ? CONFIRMATIONS_LARGE
      : chainFacts[assetOf(asset).chain].confirmations
}
