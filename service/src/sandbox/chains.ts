import type { Devnet } from '@cambist/devnet'
import type { ChainSettings } from '../config/chain_settings.ts'
import { type AssetId, assets } from '../domain/catalog/assets.ts'
import type { ChainId } from '../domain/catalog/networks.ts'
import { powerOfTen } from '../domain/money/decimal.ts'
import type { SignerSettings } from '../signer/settings.ts'
import { signerCaps } from '../wiring/signer_caps.ts'

const EOS_ACCOUNT = 'mycambist123'
const GWEI = powerOfTen(9)

/** The local nodes as chains are configured; `reach` may put something between us and a node. */
export async function sandboxChains(
  { BTC, ETH, BNB, XRP, XLM, TRX, EOS, SOL }: Devnet['networks'],
  reach: (chain: ChainId, rpcUrl: string) => Promise<string> = directly,
  nodeTimeoutMs = 10_000,
): Promise<ChainSettings> {
  const urlOfNode = async (chain: ChainId, node: { readonly rpcUrl: string } | undefined) =>
    node === undefined ? null : reach(chain, node.rpcUrl)
  return {
    BTC: {
      rpcUrl: await urlOfNode('BTC', BTC),
      network: 'regtest',
      milliSatPerVbMax: 500_000n,
      feeSatoshiMax: 1_000_000n,
    },
    ETH: evmSettings(ETH, 'ERC20', await urlOfNode('ETH', ETH)),
    BNB: evmSettings(BNB, 'BEP20', await urlOfNode('BNB', BNB)),
    XRP: { rpcUrl: await urlOfNode('XRP', XRP), networkId: XRP?.networkId ?? 1, feeDropsMax: 1_000_000n },
    XLM: {
      rpcUrl: await urlOfNode('XLM', XLM && { rpcUrl: XLM.horizonUrl }),
      passphrase: XLM?.passphrase ?? 'Standalone Network ; February 2017',
      feeStroopsMax: 10_000_000n,
    },
    TRX: {
      rpcUrl: TRX === undefined ? null : await reach('TRX', TRX.fullNodeUrl),
      solidUrl: null,
      genesisBlockId: TRX?.genesisBlockId ?? '',
      feeLimitSunMax: 100_000_000n,
      tokens: TRX === undefined ? {} : { 'USDT:TRC20': TRX.tokens.USDT.address },
    },
    EOS: {
      rpcUrl: await urlOfNode('EOS', EOS),
      chainId: EOS?.chainId ?? '',
      account: EOS === undefined ? '' : EOS_ACCOUNT,
      // Follows from the seed: withEosAccount.
      publicKey: '',
    },
    SOL: {
      rpcUrl: await urlOfNode('SOL', SOL),
      genesisHash: SOL?.genesisHash ?? '',
      feeLamportsMax: 10_000_000n,
      tokens: SOL === undefined ? {} : { 'USDC:SOL': SOL.mints.USDC.address },
    },
    nodeTimeoutMs,
  }
}

async function directly(_chain: ChainId, rpcUrl: string): Promise<string> {
  return rpcUrl
}

function evmSettings(
  info: Devnet['networks']['ETH'],
  network: 'ERC20' | 'BEP20',
  rpcUrl: string | null,
): ChainSettings['ETH'] {
  const tokens = Object.entries(info?.tokens ?? {}).map(([symbol, token]) => [
    `${symbol}:${network}`,
    token.address,
  ])
  return {
    rpcUrl,
    evmChainId: info?.chainId ?? 0,
    maxFeePerGasWeiMax: 500n * GWEI,
    gasLimitMax: 1_000_000n,
    tokens: Object.fromEntries(tokens) as ChainSettings['ETH']['tokens'],
  }
}

/** Limits far above anything the sandbox does: it shows that they are there, not where they should be. */
export function sandboxSignerSettings(chains: ChainSettings): SignerSettings {
  return {
    ...signerCaps(chains),
    payoutUnitsMax: Object.fromEntries(assets.map(({ id, maxAmount }) => [id, maxAmount * 2n])) as Record<
      AssetId,
      bigint
    >,
    limits: [],
  }
}
