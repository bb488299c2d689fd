import { type AssetId, assetOf, assets } from '../domain/catalog/assets.ts'
import { type Amount, amountOf, parseAmount } from '../domain/money/amount.ts'
import type { Environment } from './environment.ts'
import { contractVariable } from './variables.ts'

const bitcoinNetworks = ['main', 'test', 'signet', 'regtest'] as const
export type BitcoinNetwork = (typeof bitcoinNetworks)[number]

export type BitcoinSettings = {
  readonly url: string
  readonly network: BitcoinNetwork
  /** Deposits above it wait for the larger number of confirmations. */
  readonly largeAmount: Amount
  readonly feeCapMilliSatPerVb: bigint
}

export type EvmSettings = {
  readonly url: string
  readonly evmChainId: number
  readonly feeCapWeiPerGas: bigint
  /** Tokens that are offered on this chain, by their contracts. */
  readonly contracts: Readonly<Partial<Record<AssetId, string>>>
}

/** Null: not configured, so its currencies are not offered. */
export type ChainSettings = {
  readonly BTC: BitcoinSettings | null
  readonly ETH: EvmSettings | null
  readonly BNB: EvmSettings | null
}

const mainnetChainIds = { ETH: 1, BNB: 56 } as const

export function readChains(from: Environment): ChainSettings {
  return { BTC: readBitcoin(from), ETH: readEvm(from, 'ETH'), BNB: readEvm(from, 'BNB') }
}

/**
 * Whether real money is at stake: any configured chain is a main network. A process without node addresses
 * (a signer on its own) is judged by the networks alone, whose defaults are the main ones.
 */
export function isMainnet(from: Environment, chains: ChainSettings): boolean {
  const isConfigured = chains.BTC !== null || chains.ETH !== null || chains.BNB !== null
  const isMain = {
    BTC: from.text('CAMBIST_BTC_NETWORK') === 'main',
    ETH: Number(from.text('CAMBIST_ETH_CHAIN_ID')) === mainnetChainIds.ETH,
    BNB: Number(from.text('CAMBIST_BNB_CHAIN_ID')) === mainnetChainIds.BNB,
  }
  return (['BTC', 'ETH', 'BNB'] as const).some(
    (chain) => isMain[chain] && (!isConfigured || chains[chain] !== null),
  )
}

function readBitcoin(from: Environment): BitcoinSettings | null {
  const url = from.url('CAMBIST_BTC_URL', ['http:', 'https:'])
  // Read even when BTC is off, so that a mistake shows before the day it is switched on.
  const network = from.oneOf('CAMBIST_BTC_NETWORK', bitcoinNetworks)
  const large = parseAmount(assetOf('BTC:BTC'), from.text('CAMBIST_BTC_LARGE_AMOUNT') ?? '')
  if (!large.ok) from.report('CAMBIST_BTC_LARGE_AMOUNT', large.rejection.message)
  const feeCapMilliSatPerVb = readCap(from, 'CAMBIST_BTC_FEE_CAP_SAT_PER_VB', 3)
  if (url === null) return null
  return {
    url,
    network,
    largeAmount: large.ok ? large.value : amountOf('BTC:BTC', 0n),
    feeCapMilliSatPerVb,
  }
}

function readEvm(from: Environment, chain: 'ETH' | 'BNB'): EvmSettings | null {
  const url = from.url(`CAMBIST_${chain}_URL`, ['http:', 'https:'])
  const evmChainId = from.integer(`CAMBIST_${chain}_CHAIN_ID`, 1, 2 ** 50)
  const feeCapWeiPerGas = readCap(from, `CAMBIST_${chain}_FEE_CAP_GWEI`, 9)
  const contracts = readContracts(from, chain, evmChainId === mainnetChainIds[chain])
  return url === null ? null : { url, evmChainId, feeCapWeiPerGas, contracts }
}

function readCap(from: Environment, name: Parameters<Environment['decimal']>[0], decimals: number): bigint {
  const cap = from.decimal(name, decimals)
  if (cap === 0n) from.report(name, 'must be above zero: nothing could be paid')
  return cap
}

/** The built-in contracts are those of mainnet: elsewhere they would be somebody else's, or nobody's. */
function readContracts(from: Environment, chain: 'ETH' | 'BNB', isMain: boolean): EvmSettings['contracts'] {
  const contracts: Partial<Record<AssetId, string>> = {}
  for (const asset of assets.filter((each) => each.chain === chain && !each.isNative)) {
    const name = contractVariable(asset.id)
    const contract = isMain || from.isSet(name) ? from.text(name) : null
    if (contract === null) continue
    if (!/^0x[0-9a-fA-F]{40}$/.test(contract))
      from.report(name, 'must be a contract address: 0x and 40 hex digits')
    contracts[asset.id] = contract
  }
  return contracts
}
