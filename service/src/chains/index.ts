import type { ChainId } from '../domain/catalog/networks.ts'
import { bitcoin } from './bitcoin/index.ts'
import type { Chain } from './chain.ts'
import { evm } from './evm/index.ts'
import { stellar } from './stellar/index.ts'
import { tron } from './tron/index.ts'
import { xrp } from './xrp/index.ts'

/** What every connector needs to be built: its node, its caps, and where payouts of account chains leave from. */
type Settings = {
  readonly BTC: {
    readonly rpcUrl: string | null
    readonly network: 'mainnet' | 'testnet' | 'regtest'
    readonly milliSatPerVbMax: bigint
  }
  readonly ETH: EvmChain
  readonly BNB: EvmChain
  readonly XRP: {
    readonly rpcUrl: string | null
    readonly networkId: number
    readonly feeDropsMax: bigint
  }
  readonly XLM: {
    readonly rpcUrl: string | null
    readonly passphrase: string
    readonly feeStroopsMax: bigint
  }
  readonly TRX: Omit<Parameters<typeof tron>[0], 'id' | 'rpcUrl' | 'timeoutMs' | 'reserveAddress'> & {
    readonly rpcUrl: string | null
  }
  readonly nodeTimeoutMs: number
}

type EvmChain = Omit<Parameters<typeof evm>[0], 'id' | 'rpcUrl' | 'timeoutMs' | 'reserveAddress'> & {
  readonly rpcUrl: string | null
}

/** What is bid while a node has too little data for an estimate. */
const FALLBACK_MILLI_SAT_PER_VB = 5_000n

type Factory = (settings: Settings, reserveAddress: () => Promise<string>) => Chain | null

/** A new network is one folder and one line here. Each runs service/test/contract/chain_contract.ts. */
export const chainFactories = {
  BTC: ({ BTC: { rpcUrl, network, milliSatPerVbMax }, nodeTimeoutMs: timeoutMs }) =>
    rpcUrl === null
      ? null
      : bitcoin({
          id: 'BTC',
          rpcUrl,
          network,
          milliSatPerVbMax,
          milliSatPerVbFallback:
            milliSatPerVbMax < FALLBACK_MILLI_SAT_PER_VB ? milliSatPerVbMax : FALLBACK_MILLI_SAT_PER_VB,
          timeoutMs,
        }),
  ETH: (settings, reserveAddress) => buildEvm('ETH', settings, reserveAddress),
  BNB: (settings, reserveAddress) => buildEvm('BNB', settings, reserveAddress),
  TRX: ({ TRX: { rpcUrl, ...settings }, nodeTimeoutMs: timeoutMs }, reserveAddress) =>
    rpcUrl === null ? null : tron({ id: 'TRX', rpcUrl, ...settings, timeoutMs, reserveAddress }),
  XRP: ({ XRP: { rpcUrl, networkId, feeDropsMax }, nodeTimeoutMs: timeoutMs }, reserveAddress) =>
    rpcUrl === null ? null : xrp({ id: 'XRP', rpcUrl, networkId, feeDropsMax, timeoutMs, reserveAddress }),
  XLM: (
    { XLM: { rpcUrl: horizonUrl, passphrase, feeStroopsMax }, nodeTimeoutMs: timeoutMs },
    reserveAddress,
  ) =>
    horizonUrl === null
      ? null
      : stellar({ id: 'XLM', horizonUrl, passphrase, feeStroopsMax, timeoutMs, reserveAddress }),
} as const satisfies Record<ChainId, Factory>

function buildEvm(
  id: 'ETH' | 'BNB',
  settings: Settings,
  reserveAddress: () => Promise<string>,
): Chain | null {
  const { rpcUrl, evmChainId, tokens, maxFeePerGasWeiMax } = settings[id]
  if (rpcUrl === null) return null
  const timeoutMs = settings.nodeTimeoutMs
  return evm({ id, rpcUrl, evmChainId, tokens, maxFeePerGasWeiMax, timeoutMs, reserveAddress })
}

/** The chains that have a node; a chain without one is not offered. */
export function buildChains(
  settings: Settings,
  reserveAddress: (chain: ChainId) => Promise<string>,
): ReadonlyMap<ChainId, Chain> {
  const chains = new Map<ChainId, Chain>()
  for (const [id, factory] of Object.entries(chainFactories) as [ChainId, Factory][]) {
    const chain = factory(settings, () => reserveAddress(id))
    if (chain !== null) chains.set(id, chain)
  }
  return chains
}
