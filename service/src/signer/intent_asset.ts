import { type AssetId, assets, nativeAsset } from '../domain/catalog/assets.ts'
import type { EvmIntent, Intent, SolanaIntent, TronIntent } from '../domain/payouts/intent.ts'
import type { SignerSettings } from './settings.ts'

/** The asset that an intent pays in, or null when its token is none of the contracts that are listed for its chain. */
export function assetIn(settings: SignerSettings, intent: Intent): AssetId | null {
  if (!hasToken(intent) || intent.token === null) return nativeAsset(intent.chain).id
  const listed = assets.find(
    ({ id, chain, isNative }) =>
      chain === intent.chain && !isNative && settings.contracts[id] === intent.token,
  )
  return listed?.id ?? null
}

/** Families whose tokens are contracts. */
function hasToken(intent: Intent): intent is EvmIntent | TronIntent | SolanaIntent {
  return intent.family === 'evm' || intent.family === 'tron' || intent.family === 'solana'
}

/** What an intent pays, in the units of its chain; without what the network takes. */
export function chainUnitsOf(intent: Intent): bigint {
  switch (intent.family) {
    case 'bitcoin':
      return intent.payment.satoshi
    case 'evm':
    case 'tron':
    case 'solana':
      return intent.units
    case 'xrp':
      return intent.payment?.drops ?? 0n
    case 'stellar':
      return intent.payment?.stroops ?? 0n
    case 'eos':
      return intent.payment.units
  }
}
