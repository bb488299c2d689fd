import type { AssetId } from '../domain/catalog/assets.ts'
import type { BitcoinNetwork, EvmChainId } from '../domain/catalog/networks.ts'
import type { Intent } from '../domain/payouts/intent.ts'
import type { SpendLimit } from './signer.ts'

/** Caps are the signer's own last word, apart from the ones a chain's connector bids under. */
export type BitcoinSettings = {
  readonly network: BitcoinNetwork
  readonly feeRateSatPerVbMax: bigint
  readonly feeSatoshiMax: bigint
}

export type EvmSettings = {
  readonly chainId: number
  readonly gasLimitMax: bigint
  readonly feePerGasWeiMax: bigint
  /** The most coin that one transaction may bring to a deposit address of ours, for the gas of a sweep. */
  readonly sweepGasWeiMax: bigint
}

export type XrpSettings = {
  readonly networkId: number
  readonly feeDropsMax: bigint
}

export type StellarSettings = {
  readonly passphrase: string
  readonly feeStroopsMax: bigint
}

export type TronSettings = {
  /** The most that the energy of one call may cost. */
  readonly feeLimitSunMax: bigint
  /** The most coin that one transaction may bring to a deposit address of ours, for the energy of a sweep. */
  readonly sweepGasSunMax: bigint
}

export type EosSettings = {
  readonly chainId: string
  /** The account that our key is there for. */
  readonly account: string
  /** The public half of our key, as whoever made the account was told it. */
  readonly publicKey: string
}

export type SolanaSettings = {
  /** The most that one transaction may pay the network, without accounts that it makes. */
  readonly feeLamportsMax: bigint
}

export type SignerSettings = {
  readonly bitcoin: BitcoinSettings
  /** Left out, nothing is signed there. */
  readonly xrp?: XrpSettings
  /** Left out, nothing is signed there. */
  readonly stellar?: StellarSettings
  /** Left out, nothing is signed there. */
  readonly tron?: TronSettings
  /** Left out, nothing is signed there. */
  readonly eos?: EosSettings
  /** Left out, nothing is signed there. */
  readonly solana?: SolanaSettings
  /** A chain that is left out is not signed for. */
  readonly evm: Readonly<Partial<Record<EvmChainId, EvmSettings>>>
  /** Token contracts that may be called, by asset; any other is refused. */
  readonly contracts: Readonly<Partial<Record<AssetId, string>>>
  /** The most one payout may be, in ledger units; an asset that is left out is not paid at all. */
  readonly payoutUnitsMax: Readonly<Partial<Record<AssetId, bigint>>>
  readonly limits: readonly SpendLimit[]
}

/** Undefined for a chain that is not configured. */
export function evmSettingsOf({ evm }: SignerSettings, { chain }: Intent): EvmSettings | undefined {
  return Object.entries(evm).find(([id]) => id === chain)?.[1]
}
