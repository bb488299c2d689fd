import { addressOfScript } from '../src/chains/bitcoin/addresses.ts'
import { bitcoin } from '../src/chains/bitcoin/index.ts'
import type { Chain } from '../src/chains/chain.ts'
import { textOf as placeOf } from '../src/chains/eos/address.ts'
import { eos } from '../src/chains/eos/index.ts'
import { checksummed } from '../src/chains/evm/decode.ts'
import { evm } from '../src/chains/evm/index.ts'
import { solana } from '../src/chains/solana/index.ts'
import { textOf as muxedOf } from '../src/chains/stellar/address.ts'
import { stellar } from '../src/chains/stellar/index.ts'
import { base58Of } from '../src/chains/tron/address.ts'
import { tron } from '../src/chains/tron/index.ts'
import { textOf as xAddressOf } from '../src/chains/xrp/address.ts'
import { xrp } from '../src/chains/xrp/index.ts'
import type { AssetId } from '../src/domain/catalog/assets.ts'
import type { ChainId } from '../src/domain/catalog/networks.ts'
import { EOS_CHAIN_ID, LISTED_TOKENS, OWN_ACCOUNT, ownProgram, ownTag } from './blocks/own_addresses.ts'
import { ownSolanaAddress } from './blocks/solana_block.ts'

/** A chain whose blocks are looked at. A new one is an entry here and in nodes/block_nodes.ts. */
export type ScannedChain = {
  /** How many are looked at. */
  readonly blocks: number
  /** What the three payments in a block are of. */
  readonly pays: readonly AssetId[]
  /** The address of a key, as it is kept. */
  readonly addressOf: (index: number) => string
  /** What kept addresses begin with, and how many characters follow in which they differ. */
  readonly spelled: readonly [beginning: string, rest: number]
  /** Where payouts leave from; null where they spend coins. */
  readonly reserve: string | null
  readonly connect: (url: string) => Chain
}

const timeoutMs = 30_000
const EVM_RESERVE = '0x3333333333333333333333333333333333333333'
const TRX_RESERVE = base58Of(`41${'33'.repeat(20)}`)
const SOL_RESERVE = ownSolanaAddress(2 ** 31)
const xrpAddress = (index: number) =>
  xAddressOf({ account: OWN_ACCOUNT.XRP, tag: ownTag(index) }, { isMain: true })
const stellarAddress = (index: number) => muxedOf({ account: OWN_ACCOUNT.XLM, id: String(ownTag(index)) })

export const scannedChains: Readonly<Record<ChainId, ScannedChain>> = {
  BTC: {
    blocks: 15,
    pays: ['BTC:BTC', 'BTC:BTC', 'BTC:BTC'],
    addressOf: (index) => {
      const script = Buffer.concat([Buffer.from([0x00, 0x14]), ownProgram('BTC', index)])
      return addressOfScript('regtest', script) ?? ''
    },
    spelled: ['bcrt1q', 38],
    reserve: null,
    connect: (rpcUrl) => {
      const caps = { milliSatPerVbMax: 1_000_000n, feeSatoshiMax: 100_000_000n }
      return bitcoin({
        id: 'BTC',
        rpcUrl,
        network: 'regtest',
        timeoutMs,
        ...caps,
        milliSatPerVbFallback: 1_000n,
      })
    },
  },
  ETH: {
    ...evmChain('ETH', (usdt, usdc) => ({ 'USDT:ERC20': usdt, 'USDC:ERC20': usdc })),
    blocks: 41,
    pays: ['USDT:ERC20', 'USDC:ERC20', 'ETH:ETH'],
  },
  BNB: {
    ...evmChain('BNB', (usdt, usdc) => ({ 'USDT:BEP20': usdt, 'USDC:BEP20': usdc })),
    blocks: 81,
    pays: ['USDT:BEP20', 'USDC:BEP20', 'BNB:BNB'],
  },
  XRP: {
    blocks: 41,
    pays: ['XRP:XRP', 'XRP:XRP', 'XRP:XRP'],
    addressOf: xrpAddress,
    spelled: [xrpAddress(0).slice(0, 30), 17],
    reserve: OWN_ACCOUNT.XRP,
    connect: (rpcUrl) =>
      xrp({
        id: 'XRP',
        rpcUrl,
        networkId: 0,
        feeDropsMax: 1_000_000n,
        timeoutMs,
        reserveAddress: () => OWN_ACCOUNT.XRP,
      }),
  },
  XLM: {
    blocks: 41,
    pays: ['XLM:XLM', 'XLM:XLM', 'XLM:XLM'],
    addressOf: stellarAddress,
    spelled: [stellarAddress(0).slice(0, 52), 17],
    reserve: OWN_ACCOUNT.XLM,
    connect: (horizonUrl) =>
      stellar({
        id: 'XLM',
        horizonUrl,
        passphrase: 'Public Global Stellar Network ; September 2015',
        feeStroopsMax: 10_000_000n,
        timeoutMs,
        reserveAddress: () => OWN_ACCOUNT.XLM,
      }),
  },
  TRX: {
    blocks: 61,
    pays: ['USDT:TRC20', 'USDT:TRC20', 'TRX:TRX'],
    addressOf: (index) => base58Of(`41${ownProgram('TRX', index).toString('hex')}`),
    spelled: ['T', 33],
    reserve: TRX_RESERVE,
    connect: (rpcUrl) =>
      tron({
        id: 'TRX',
        rpcUrl,
        genesisBlockId: '',
        tokens: { 'USDT:TRC20': base58Of(LISTED_TOKENS.TRX) },
        feeLimitSunMax: 100_000_000n,
        timeoutMs,
        reserveAddress: () => TRX_RESERVE,
      }),
  },
  SOL: {
    blocks: 41,
    pays: ['USDC:SOL', 'USDC:SOL', 'SOL:SOL'],
    addressOf: ownSolanaAddress,
    spelled: [ownSolanaAddress(0).slice(0, 14), 30],
    reserve: SOL_RESERVE,
    connect: (rpcUrl) =>
      solana({
        id: 'SOL',
        rpcUrl,
        genesisHash: '',
        tokens: { 'USDC:SOL': LISTED_TOKENS.SOL },
        feeLamportsMax: 5_000_000n,
        timeoutMs,
        reserveAddress: () => SOL_RESERVE,
      }),
  },
  EOS: {
    blocks: 81,
    pays: ['EOS:EOS', 'EOS:EOS', 'EOS:EOS'],
    addressOf: (index) => placeOf({ account: OWN_ACCOUNT.EOS, memo: String(ownTag(index)) }),
    spelled: [`${OWN_ACCOUNT.EOS}/`, 16],
    reserve: OWN_ACCOUNT.EOS,
    connect: (rpcUrl) =>
      eos({
        id: 'EOS',
        rpcUrl,
        chainId: EOS_CHAIN_ID,
        account: OWN_ACCOUNT.EOS,
        publicKey: '',
        timeoutMs,
      }),
  },
}

type EvmTokens = Partial<Record<AssetId, `0x${string}`>>

function evmChain(id: 'ETH' | 'BNB', list: (usdt: `0x${string}`, usdc: `0x${string}`) => EvmTokens) {
  const [usdt, usdc] = LISTED_TOKENS[id]
  return {
    addressOf: (index: number) => checksummed(`0x${ownProgram(id, index).toString('hex')}`),
    spelled: ['0x', 40] as const,
    reserve: EVM_RESERVE,
    connect: (rpcUrl: string) =>
      evm({
        id,
        rpcUrl,
        evmChainId: 1,
        tokens: list(usdt, usdc),
        maxFeePerGasWeiMax: 10n ** 12n,
        gasLimitMax: 1_000_000n,
        timeoutMs,
        reserveAddress: () => EVM_RESERVE,
      }),
  }
}
