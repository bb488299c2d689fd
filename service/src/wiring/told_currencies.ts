import type { ChainSettings } from '../config/chain_settings.ts'
import { assets } from '../domain/catalog/assets.ts'
import type { CurrencyCode } from '../domain/catalog/currencies.ts'
import { signerCaps } from './signer_caps.ts'

/**
 * The currencies whose missing price is the operator's to know: those that are offered, among them the coin of every network, in which
 * its payouts cost, and USDT, in which half of the venues price the others.
 */
export function toldCurrencies(chains: ChainSettings): ReadonlySet<CurrencyCode> {
  const { contracts } = signerCaps(chains)
  const offered = assets.filter(
    ({ id, chain, isNative }) => chains[chain].rpcUrl !== null && (isNative || contracts[id] !== undefined),
  )
  return new Set([...offered.map(({ currency }) => currency), 'USDT'])
}
