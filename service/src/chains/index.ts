import type { ChainId, EvmChainId } from '../domain/catalog/networks.ts'
import type { BitcoinSettings } from './bitcoin/settings.ts'
import type { Chain } from './chain.ts'
import type { EosSettings } from './eos/settings.ts'
import type { EvmSettings } from './evm/settings.ts'
import type { SolanaSettings } from './solana/settings.ts'
import type { StellarSettings } from './stellar/settings.ts'
import type { TronSettings } from './tron/settings.ts'
import type { XrpSettings } from './xrp/settings.ts'

/** What every connector needs to be built: its node, its caps, and where payouts of account chains leave from. */
type Settings = {
  readonly BTC: Told<Omit<BitcoinSettings, 'milliSatPerVbFallback' | 'scanTimeoutMs'>>
  readonly ETH: Told<EvmSettings>
  readonly BNB: Told<EvmSettings>
  readonly XRP: Told<XrpSettings>
  readonly XLM: Told<Omit<StellarSettings, 'horizonUrl'>>
  readonly TRX: Told<TronSettings>
  readonly EOS: Told<EosSettings>
  readonly SOL: Told<SolanaSettings>
  readonly nodeTimeoutMs: number
}

/** What of a connector's settings is told for it alone. */
type Told<All> = Omit<All, 'id' | 'rpcUrl' | 'timeoutMs' | 'reserveAddress'> & {
  readonly rpcUrl: string | null
}

/** What is bid while a node has too little data for an estimate. */
const FALLBACK_MILLI_SAT_PER_VB = 5_000n

type Factory = (settings: Settings, reserveAddress: () => Promise<string>) => Promise<Chain | null>

/**
 * How each chain is built. What else a new network takes: CONTRIBUTING.md, Add a network. Each runs
 * service/test/contract/chain_contract.ts. The folder of a network that has no node is not even loaded: the libraries of
 * some take longer than all the rest of the service.
 */
export const chainFactories = {
  BTC: async ({ BTC: { rpcUrl, ...settings }, nodeTimeoutMs: timeoutMs }) => {
    if (rpcUrl === null) return null
    const { bitcoin } = await import('./bitcoin/index.ts')
    const { milliSatPerVbMax } = settings
    const milliSatPerVbFallback =
      milliSatPerVbMax < FALLBACK_MILLI_SAT_PER_VB ? milliSatPerVbMax : FALLBACK_MILLI_SAT_PER_VB
    return bitcoin({ id: 'BTC', rpcUrl, ...settings, milliSatPerVbFallback, timeoutMs })
  },
  ETH: (settings, reserveAddress) => buildEvm('ETH', settings, reserveAddress),
  BNB: (settings, reserveAddress) => buildEvm('BNB', settings, reserveAddress),
  TRX: async ({ TRX: { rpcUrl, ...settings }, nodeTimeoutMs: timeoutMs }, reserveAddress) => {
    if (rpcUrl === null) return null
    const { tron } = await import('./tron/index.ts')
    return tron({ id: 'TRX', rpcUrl, ...settings, timeoutMs, reserveAddress })
  },
  SOL: async ({ SOL: { rpcUrl, ...settings }, nodeTimeoutMs: timeoutMs }, reserveAddress) => {
    if (rpcUrl === null) return null
    const { solana } = await import('./solana/index.ts')
    return solana({ id: 'SOL', rpcUrl, ...settings, timeoutMs, reserveAddress })
  },
  XRP: async ({ XRP: { rpcUrl, networkId, feeDropsMax }, nodeTimeoutMs: timeoutMs }, reserveAddress) => {
    if (rpcUrl === null) return null
    const { xrp } = await import('./xrp/index.ts')
    return xrp({ id: 'XRP', rpcUrl, networkId, feeDropsMax, timeoutMs, reserveAddress })
  },
  XLM: async ({ XLM: { rpcUrl, passphrase, feeStroopsMax }, nodeTimeoutMs: timeoutMs }, reserveAddress) => {
    if (rpcUrl === null) return null
    const { stellar } = await import('./stellar/index.ts')
    return stellar({ id: 'XLM', horizonUrl: rpcUrl, passphrase, feeStroopsMax, timeoutMs, reserveAddress })
  },
  EOS: async ({ EOS: { rpcUrl, ...settings }, nodeTimeoutMs: timeoutMs }) => {
    if (rpcUrl === null) return null
    const { eos } = await import('./eos/index.ts')
    return eos({ id: 'EOS', rpcUrl, ...settings, timeoutMs })
  },
} as const satisfies Record<ChainId, Factory>

async function buildEvm(
  id: EvmChainId,
  settings: Settings,
  reserveAddress: () => Promise<string>,
): Promise<Chain | null> {
  const { rpcUrl, ...ours } = settings[id]
  if (rpcUrl === null) return null
  const { evm } = await import('./evm/index.ts')
  return evm({ id, rpcUrl, ...ours, timeoutMs: settings.nodeTimeoutMs, reserveAddress })
}

/** The chains that have a node; a chain without one is not offered. */
export async function buildChains(
  settings: Settings,
  reserveAddress: (chain: ChainId) => Promise<string>,
): Promise<ReadonlyMap<ChainId, Chain>> {
  const chains = new Map<ChainId, Chain>()
  // One after the other: two libraries that load at the same time can require and import the same third, which Node refuses.
  for (const [id, factory] of Object.entries(chainFactories) as [ChainId, Factory][]) {
    const chain = await factory(settings, () => reserveAddress(id))
    if (chain !== null) chains.set(id, chain)
  }
  return chains
}
