import { assert } from '../assert.ts'
import { parseDecimal, powerOfTen } from '../money/decimal.ts'
import { type Currency, type CurrencyCode, currencies, currencyCodes } from './currencies.ts'
import { type ChainId, chainFacts, type NetworkId, networkChains } from './networks.ts'

/** A currency on a network: the thing that reserves, deposits and payouts are counted in. */
export type AssetId = `${CurrencyCode}:${NetworkId}`

export type Asset = {
  readonly id: AssetId
  readonly currency: CurrencyCode
  readonly network: NetworkId
  readonly chain: ChainId
  /** The chain's own coin, which also pays for transactions; otherwise a token contract. */
  readonly isNative: boolean
  /** Decimals on the chain: 6 for USDT on ERC20, 18 on BEP20. */
  readonly chainDecimals: number
  /**
   * Decimals the ledger counts in: the most that any network of the currency has, so that what the chain
   * says is booked exactly and one currency has one scale.
   */
  readonly decimals: number
  /** Decimals the interface shows. */
  readonly precision: number
  /** The least that the interface can show, in ledger units. */
  readonly step: bigint
  /** In ledger units. */
  readonly minAmount: bigint
  readonly maxAmount: bigint
  readonly minPayout: bigint
  readonly minCredit: bigint
}

export const assets: readonly Asset[] = currencyCodes.flatMap((code) => {
  const currency: Currency = currencies[code]
  const networks = Object.entries(currency.networks) as [NetworkId, { decimals: number }][]
  const decimals = Math.max(...networks.map(([, { decimals }]) => decimals))
  const step = powerOfTen(decimals - currency.precision)
  const exact = (text: string) => {
    const parsed = parseDecimal(text, currency.precision)
    assert(parsed.ok, `${code}: ${text} has at most ${currency.precision} decimals`)
    return parsed.value * step
  }
  return networks.map(([network, { decimals: chainDecimals }]): Asset => {
    assert(currency.precision <= chainDecimals, `${code} on ${network} can carry what the interface shows`)
    const chain = networkChains[network]
    return {
      id: `${code}:${network}`,
      currency: code,
      network,
      chain,
      isNative: chainFacts[chain].native === code && network === chain,
      chainDecimals,
      decimals,
      precision: currency.precision,
      step,
      minAmount: exact(currency.minAmount),
      maxAmount: exact(currency.maxAmount),
      minPayout: exact(currency.minPayout),
      minCredit: exact(currency.minCredit),
    }
  })
})

const assetsById = new Map(assets.map((asset) => [asset.id as string, asset]))

export function isAssetId(text: string): text is AssetId {
  return assetsById.has(text)
}

export function assetOf(id: AssetId): Asset {
  const asset = assetsById.get(id)
  assert(asset !== undefined, `the catalogue has ${id}`)
  return asset
}

export function findAsset(currency: CurrencyCode, network: NetworkId): Asset | undefined {
  return assetsById.get(`${currency}:${network}`)
}

export function assetIdsOn(chain: ChainId): readonly AssetId[] {
  return assets.filter((asset) => asset.chain === chain).map(({ id }) => id)
}

/** The asset that pays for transactions on a chain. */
export function nativeAsset(chain: ChainId): Asset {
  return assetOf(`${chainFacts[chain].native}:${chain}`)
}
