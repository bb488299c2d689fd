import { type AssetId, assetOf } from '../domain/catalog/assets.ts'
import { type ChainId, chainFacts, chainIds, type EvmChainId, evmChains } from '../domain/catalog/networks.ts'
import {
  type ChainSettings,
  mainGenesisBlockId,
  mainGenesisHash,
  mainnetChainIds,
  networkNames,
  tokensOn,
} from './chain_settings.ts'
import type { Environment } from './environment.ts'
import { isTestNetwork } from './test_networks.ts'
import { contractVariable, EOS_MAIN, STELLAR_MAIN, type VariableName, variableOf } from './variables.ts'

const networkVariables = {
  BTC: 'CAMBIST_BTC_NETWORK',
  ETH: 'CAMBIST_ETH_CHAIN_ID',
  BNB: 'CAMBIST_BNB_CHAIN_ID',
  XRP: 'CAMBIST_XRP_NETWORK_ID',
  XLM: 'CAMBIST_XLM_NETWORK',
  TRX: 'CAMBIST_TRX_GENESIS',
  EOS: 'CAMBIST_EOS_CHAIN_ID',
  SOL: 'CAMBIST_SOL_GENESIS',
} as const satisfies Record<ChainId, VariableName>

const mainNetworks: Readonly<Record<ChainId, string | number>> = {
  BTC: 'mainnet',
  ...mainnetChainIds,
  XRP: 0,
  XLM: STELLAR_MAIN,
  TRX: mainGenesisBlockId,
  EOS: EOS_MAIN,
  SOL: mainGenesisHash,
}

/** Refuses networks and contracts that would make one coin pass for another. */
export function keepNetworksApart(from: Environment, chains: ChainSettings): void {
  refuseMixed(from, chains)
  refuseTwins(from, chains)
  refuseForeignContracts(from, chains)
}

/**
 * Whatever is offered can be exchanged for everything else: beside a main network, the coins of a test network, which are
 * given away, would buy real ones. A network that is neither may be somebody's own, and goes with both.
 */
function refuseMixed(from: Environment, chains: ChainSettings): void {
  const names = networkNames(chains)
  // Whoever has no node of a chain offers nothing on it, and its network is a default that nobody looked at.
  const offered = chainIds.filter((chain) => chains[chain].rpcUrl !== null)
  const main = offered.find((chain) => names[chain] === mainNetworks[chain])
  if (main === undefined) return
  for (const chain of offered.filter((each) => isTestNetwork(each, names[each]))) {
    from.report(
      networkVariables[chain],
      `is a test network, whose coins are worth nothing, and CAMBIST_${main}_URL is of a main one: the one would buy the other; unset CAMBIST_${chain}_URL, or set ${networkVariables[main]} to a test network too`,
    )
  }
}

/** EVM chains share their addresses, so a node of the one would do for the other, and start-up finds what is configured. */
function refuseTwins(from: Environment, chains: ChainSettings): void {
  const named = new Map<number, EvmChainId>()
  for (const chain of evmChains) {
    const { rpcUrl, evmChainId } = chains[chain]
    if (rpcUrl === null) continue
    const other = evmChains.find((each) => each !== chain && mainnetChainIds[each] === evmChainId)
    if (other !== undefined) {
      from.report(
        networkVariables[chain],
        `is ${evmChainId}, the chain id of ${chainFacts[other].name}, whose coin would go at the price of ${chain}; set it to ${mainnetChainIds[chain]}`,
      )
      continue
    }
    const twin = named.get(evmChainId)
    named.set(evmChainId, twin ?? chain)
    if (twin === undefined) continue
    from.report(
      networkVariables[chain],
      `is ${evmChainId} as ${networkVariables[twin]} is: what is on that chain would be counted as ${twin} and as ${chain}; set it to that of another chain, or unset CAMBIST_${chain}_URL`,
    )
  }
}

/** Start-up finds a contract with the decimals that it looks for: those of USDT and USDC are the same. */
function refuseForeignContracts(from: Environment, chains: ChainSettings): void {
  const names = networkNames(chains)
  for (const chain of chainIds) {
    const isMain = names[chain] === mainNetworks[chain]
    const tokens = Object.entries(tokensOn(chains, chain)) as [AssetId, string][]
    const taken = new Map<string, AssetId>()
    for (const [asset] of tokens) {
      const published = variableOf(contractVariable(asset)).default
      if (isMain && typeof published === 'string') take(taken, asset, published)
    }
    for (const [asset, contract] of tokens) {
      const owner = take(taken, asset, contract)
      if (owner === asset) continue
      const { currency, network } = assetOf(owner)
      from.report(
        contractVariable(asset),
        `is the contract of ${currency} on ${network}; set it to that of ${assetOf(asset).currency}`,
      )
    }
  }
}

/** Whose contract it is: the first one's that named it. Hex means the same in capitals. */
function take(taken: Map<string, AssetId>, asset: AssetId, contract: string): AssetId {
  const key = contract.toLowerCase()
  const owner = taken.get(key) ?? asset
  taken.set(key, owner)
  return owner
}
