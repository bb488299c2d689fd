import { type AssetId, assets } from '../domain/catalog/assets.ts'
import {
  type BitcoinNetwork,
  bitcoinNetworkNames,
  type ChainId,
  chainIds,
  type EvmChainId,
} from '../domain/catalog/networks.ts'
import { powerOfTen } from '../domain/money/decimal.ts'
import { eosName } from '../domain/payouts/eos_transfer.ts'
import { type Environment, refuseHash, refuseUndecodable } from './environment.ts'
import { isTestNetwork } from './test_networks.ts'
import { contractVariable, EOS_MAIN, STELLAR_MAIN, type VariableName } from './variables.ts'

type WithNode = {
  /** Null: this process has no node of the chain. Where it serves customers, the chain is then not offered. */
  readonly rpcUrl: string | null
}

type BitcoinSettings = WithNode & {
  readonly network: BitcoinNetwork
  readonly milliSatPerVbMax: bigint
  /** The most one transaction may pay its miner. */
  readonly feeSatoshiMax: bigint
}

type EvmSettings = WithNode & {
  readonly evmChainId: number
  readonly maxFeePerGasWeiMax: bigint
  readonly gasLimitMax: bigint
  /** Tokens that are offered on this chain, by their contracts. */
  readonly tokens: Readonly<Partial<Record<AssetId, `0x${string}`>>>
}

type XrpSettings = WithNode & {
  /** 0 is the main network. */
  readonly networkId: number
  readonly feeDropsMax: bigint
}

/** Its node is a Horizon. */
type StellarSettings = WithNode & {
  readonly passphrase: string
  readonly feeStroopsMax: bigint
}

type TronSettings = WithNode & {
  /** Null: what is solid is told there as well. */
  readonly solidUrl: string | null
  readonly genesisBlockId: string
  readonly feeLimitSunMax: bigint
  /** Tokens that are offered on this chain, by their contracts in base58. */
  readonly tokens: Readonly<Partial<Record<AssetId, string>>>
}

type EosSettings = WithNode & {
  readonly chainId: string
  /** '' where EOS is not configured. */
  readonly account: string
  readonly publicKey: string
}

type SolanaSettings = WithNode & {
  readonly genesisHash: string
  readonly feeLamportsMax: bigint
  /** Tokens that are offered on this chain, by their mints. */
  readonly tokens: Readonly<Partial<Record<AssetId, string>>>
}

export type ChainSettings = {
  readonly BTC: BitcoinSettings
  readonly ETH: EvmSettings
  readonly BNB: EvmSettings
  readonly XRP: XrpSettings
  readonly XLM: StellarSettings
  readonly TRX: TronSettings
  readonly EOS: EosSettings
  readonly SOL: SolanaSettings
  readonly nodeTimeoutMs: number
}

/** EIP-155. */
export const mainnetChainIds = { ETH: 1, BNB: 56 } as const satisfies Record<EvmChainId, number>

export function readChains(from: Environment): ChainSettings {
  return {
    BTC: {
      rpcUrl: readNode(from, 'CAMBIST_BTC_URL'),
      network: from.oneOf('CAMBIST_BTC_NETWORK', bitcoinNetworkNames),
      milliSatPerVbMax: readCap(from, 'CAMBIST_BTC_FEE_CAP_SAT_PER_VB', 3, 10_000n),
      feeSatoshiMax: readCap(from, 'CAMBIST_BTC_FEE_CAP_TOTAL', 8, 1n),
    },
    ETH: readEvm(from, 'ETH'),
    BNB: readEvm(from, 'BNB'),
    XRP: {
      rpcUrl: readNode(from, 'CAMBIST_XRP_URL'),
      networkId: from.integer('CAMBIST_XRP_NETWORK_ID', 0, 2 ** 32 - 1),
      feeDropsMax: readCap(from, 'CAMBIST_XRP_FEE_CAP', 6, 100n),
    },
    XLM: {
      rpcUrl: readNode(from, 'CAMBIST_XLM_URL'),
      passphrase: from.text('CAMBIST_XLM_NETWORK') ?? STELLAR_MAIN,
      feeStroopsMax: readCap(from, 'CAMBIST_XLM_FEE_CAP', 7, 100n),
    },
    TRX: readTron(from),
    EOS: readEos(from),
    SOL: readSolana(from),
    nodeTimeoutMs: from.integer('CAMBIST_NODE_TIMEOUT_SECONDS', 1, 600) * 1_000,
  }
}

function readNode(from: Environment, name: VariableName): string | null {
  refuseHash(from, name)
  refuseUndecodable(from, name)
  return from.url(name, ['http:', 'https:'])
}

export const mainGenesisBlockId = '00000000000000001ebf88508a03865c71d452e25f4d51194196a1d22b6653dc'

function readTron(from: Environment): TronSettings {
  const genesisBlockId = from.text('CAMBIST_TRX_GENESIS') ?? mainGenesisBlockId
  if (!/^[0-9a-f]{64}$/.test(genesisBlockId))
    from.report('CAMBIST_TRX_GENESIS', 'must be the id of a block: 64 hex digits in lower case')
  return {
    rpcUrl: readNode(from, 'CAMBIST_TRX_URL'),
    solidUrl: readNode(from, 'CAMBIST_TRX_SOLIDITY_URL'),
    genesisBlockId,
    feeLimitSunMax: readCap(from, 'CAMBIST_TRX_FEE_CAP', 6, 15_000n),
    tokens: readTokens(from, 'TRX', genesisBlockId === mainGenesisBlockId, {
      isContract: (text): text is string => /^T[1-9A-HJ-NP-Za-km-z]{33}$/.test(text),
      shape: 'T and 33 more in base58',
    }),
  }
}

function readEos(from: Environment): EosSettings {
  const rpcUrl = readNode(from, 'CAMBIST_EOS_URL')
  const chainId = from.text('CAMBIST_EOS_CHAIN_ID') ?? EOS_MAIN
  if (!/^[0-9a-f]{64}$/.test(chainId))
    from.report('CAMBIST_EOS_CHAIN_ID', 'must be the id of a chain: 64 hex digits in lower case')
  if (rpcUrl !== null) from.required('CAMBIST_EOS_ACCOUNT', 'with CAMBIST_EOS_URL')
  const account = from.text('CAMBIST_EOS_ACCOUNT') ?? ''
  if (account === '') return { rpcUrl, chainId, account, publicKey: '' }
  if (!eosName.test(account))
    from.report('CAMBIST_EOS_ACCOUNT', 'must be the name of an account: 1 to 12 of a-z, 1-5 and dots')
  from.required('CAMBIST_EOS_KEY', 'with CAMBIST_EOS_ACCOUNT')
  const publicKey = from.text('CAMBIST_EOS_KEY') ?? ''
  if (!/^PUB_K1_[1-9A-HJ-NP-Za-km-z]{45,55}$/.test(publicKey))
    from.report('CAMBIST_EOS_KEY', 'must be a public key as `cambist keystore eos-key` prints it: PUB_K1_…')
  return { rpcUrl, chainId, account, publicKey }
}

export const mainGenesisHash = '5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d'
const solanaAddress = /^[1-9A-HJ-NP-Za-km-z]{32,44}$/

function readSolana(from: Environment): SolanaSettings {
  const genesisHash = from.text('CAMBIST_SOL_GENESIS') ?? mainGenesisHash
  if (!solanaAddress.test(genesisHash)) from.report('CAMBIST_SOL_GENESIS', 'must be a hash in base58')
  return {
    rpcUrl: readNode(from, 'CAMBIST_SOL_URL'),
    genesisHash,
    feeLamportsMax: readCap(from, 'CAMBIST_SOL_FEE_CAP', 9, 1n),
    tokens: readTokens(from, 'SOL', genesisHash === mainGenesisHash, {
      isContract: (text): text is string => solanaAddress.test(text),
      shape: '32 to 44 letters in base58',
    }),
  }
}

function readEvm(from: Environment, chain: EvmChainId): EvmSettings {
  const evmChainId = from.integer(`CAMBIST_${chain}_CHAIN_ID`, 1, 2 ** 50)
  return {
    rpcUrl: readNode(from, `CAMBIST_${chain}_URL`),
    evmChainId,
    maxFeePerGasWeiMax: readCap(from, `CAMBIST_${chain}_FEE_CAP_GWEI`, 9, 10_000n),
    gasLimitMax: BigInt(from.integer(`CAMBIST_${chain}_GAS_LIMIT_CAP`, 21_000, 30_000_000)),
    tokens: readTokens(from, chain, evmChainId === mainnetChainIds[chain], {
      isContract,
      shape: '0x and 40 hex digits',
    }),
  }
}

/**
 * A cap in units of 10^-decimals, and at most so many whole ones: more than the dearest hours of its chain have asked. Whoever
 * writes it in the smallest units, as chains and their tools do, would have none.
 */
function readCap(from: Environment, name: VariableName, decimals: number, most: bigint): bigint {
  const cap = from.decimal(name, decimals)
  if (cap === 0n) from.report(name, 'must be above zero, or nothing could be paid')
  if (cap > most * powerOfTen(decimals))
    from.report(name, `must be at most ${most}, which no chain ever asked: a cap has to hold`)
  return cap
}

/** The built-in contracts are those of mainnet: elsewhere they would be somebody else's, or nobody's. */
function readTokens<Contract extends string>(
  from: Environment,
  chain: ChainId,
  isMain: boolean,
  { isContract, shape }: { isContract(text: string): text is Contract; readonly shape: string },
): Partial<Record<AssetId, Contract>> {
  const tokens: Partial<Record<AssetId, Contract>> = {}
  for (const asset of assets.filter((each) => each.chain === chain && !each.isNative)) {
    const name = contractVariable(asset.id)
    const contract = isMain || from.isSet(name) ? from.text(name) : null
    if (contract === null) continue
    if (isContract(contract)) tokens[asset.id] = contract
    else from.report(name, `must be a contract address: ${shape}`)
  }
  return tokens
}

function isContract(text: string): text is `0x${string}` {
  return /^0x[0-9a-fA-F]{40}$/.test(text)
}

/** The contracts of the tokens that are listed on a chain; none where it knows of no tokens. */
export function tokensOn(chains: ChainSettings, chain: ChainId): Readonly<Partial<Record<AssetId, string>>> {
  const settings = chains[chain]
  return 'tokens' in settings ? settings.tokens : {}
}

/** The contracts of all listed tokens, of whatever chain. */
export function tokensOf(chains: ChainSettings): Readonly<Partial<Record<AssetId, string>>> {
  return Object.assign({}, ...chainIds.map((chain) => tokensOn(chains, chain)))
}

/** The chains this process works for: those it has a node of; without any (a signer on its own), all that it knows enough of. */
export function activeChains(chains: ChainSettings): readonly ChainId[] {
  const withNode = chainIds.filter((chain) => chains[chain].rpcUrl !== null)
  if (withNode.length > 0) return withNode
  return chainIds.filter((chain) => chain !== 'EOS' || chains.EOS.account !== '')
}

/** What names the network of each chain. */
export function networkNames(chains: ChainSettings): Readonly<Record<ChainId, string | number>> {
  return {
    BTC: chains.BTC.network,
    ETH: chains.ETH.evmChainId,
    BNB: chains.BNB.evmChainId,
    XRP: chains.XRP.networkId,
    XLM: chains.XLM.passphrase,
    TRX: chains.TRX.genesisBlockId,
    EOS: chains.EOS.chainId,
    SOL: chains.SOL.genesisHash,
  }
}

/** Whether real money is at stake: any chain that this process works for is not known to be a test network. */
export function isMainnet(chains: ChainSettings): boolean {
  const names = networkNames(chains)
  return activeChains(chains).some((chain) => !isTestNetwork(chain, names[chain]))
}
