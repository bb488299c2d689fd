import { createSecretKey } from 'node:crypto'
import { mnemonicToSeedSync } from '@scure/bip39'
import { sealedFor } from '../../domain/orders/seal.ts'
import type {
  BitcoinIntent,
  Coin,
  EosIntent,
  EvmIntent,
  KeyPath,
  OutflowKind,
  SolanaIntent,
  StellarIntent,
  TronIntent,
  XrpIntent,
} from '../../domain/payouts/intent.ts'
import { HOUR_MS } from '../../domain/time.ts'
import { makeSeal } from '../../engine/seal.ts'
import { deriveKeys } from '../derivation.ts'
import { localSigner } from '../local_signer.ts'
import type { SignerSettings } from '../settings.ts'
import type { Authority } from '../signer.ts'
import { memoryStore } from './memory_store.ts'

/** The words that every development node knows; nobody keeps money under them. */
const seed = mnemonicToSeedSync(`${'test '.repeat(11)}junk`)
export const keys = deriveKeys(seed, { bitcoin: 'regtest', xrpNetworkId: 31337 })
const sealKey = createSecretKey(Buffer.alloc(32, 7))

export const usdt = '0xdAC17F958D2ee523a2206206994597C13D831ec7'
export const customerEvm = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'
export const customerBitcoin = 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080'
export const otherBitcoin = 'bcrt1q6rz28mcfaxtmd6v789l9rrlrusdprr9pz3cppk'
export const customerXrp = 'rPT1Sjq2YGrBMTttX4GZHjKu9dyfzbpAYe'
/** The example of SEP-23. */
export const customerStellar = 'GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVSGZ'
export const stellarPassphrase = 'Standalone Network ; February 2017'
export const customerTron = 'TJRabPrwbZy45sbavfcjinPJC18kjpRTv8'
export const usdtTron = 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t'
export const eosAccount = 'mycambist123'
export const customerEos = 'binancecleos'
export const customerSolana = '7UkEVmiaC9pPb5DtFrP4pW2ykVAHpmGLUALV9WVRwAo2'
export const usdcSolana = 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v'
export const otherEvm = '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC'

export const settings: SignerSettings = {
  bitcoin: { network: 'regtest', feeRateSatPerVbMax: 200n, feeSatoshiMax: 100_000n },
  evm: {
    ETH: {
      chainId: 31337,
      gasLimitMax: 200_000n,
      feePerGasWeiMax: 500_000_000_000n,
      sweepGasWeiMax: 10n ** 17n,
    },
    BNB: { chainId: 56, gasLimitMax: 200_000n, feePerGasWeiMax: 50_000_000_000n, sweepGasWeiMax: 10n ** 16n },
  },
  xrp: { networkId: 31337, feeDropsMax: 1_000n },
  stellar: { passphrase: stellarPassphrase, feeStroopsMax: 1_000n },
  tron: { feeLimitSunMax: 50_000_000n, sweepGasSunMax: 60_000_000n },
  eos: {
    chainId: 'aa'.repeat(32),
    account: eosAccount,
    publicKey: 'PUB_K1_5Af6VUHbWKtpxQTmsFVeyAkmWmWXcDcpMeVB27SdySkW2FcgWN',
  },
  solana: { feeLamportsMax: 100_000n },
  contracts: { 'USDT:ERC20': usdt.toLowerCase(), 'USDT:TRC20': usdtTron, 'USDC:SOL': usdcSolana },
  payoutUnitsMax: {
    'BTC:BTC': 200_000_000n,
    'ETH:ETH': 10n * 10n ** 18n,
    'BNB:BNB': 10n * 10n ** 18n,
    'USDT:ERC20': 10_000n * 10n ** 18n,
    'XRP:XRP': 100_000_000n,
    'XLM:XLM': 1_000_000_000n,
    'TRX:TRX': 1_000_000_000n,
    'EOS:EOS': 1_000_000n,
    'USDT:TRC20': 10_000n * 10n ** 18n,
    'SOL:SOL': 100_000_000_000n,
    'USDC:SOL': 10_000n * 10n ** 18n,
  },
  limits: [
    { asset: 'BTC:BTC', windowMs: HOUR_MS, unitsMax: 300_000_000n },
    { asset: 'BTC:BTC', windowMs: 24 * HOUR_MS, unitsMax: 400_000_000n },
  ],
}

export function coin(
  number: number,
  satoshi: bigint,
  key: KeyPath = { purpose: 'deposit', index: number },
): Coin {
  const txHash = number.toString(16).padStart(2, '0').repeat(32)
  return { txHash, index: number, satoshi, address: keys.address('bitcoin', key), key }
}

export function bitcoinIntent(changes: Partial<BitcoinIntent> = {}): BitcoinIntent {
  const key: KeyPath = { purpose: 'change', index: 4 }
  return {
    family: 'bitcoin',
    chain: 'BTC',
    payoutId: 'CB1:1',
    attempt: 1,
    inputs: [coin(1, 100_000_000n), coin(2, 50_000_000n, { purpose: 'reserve', index: 0 })],
    payment: { address: customerBitcoin, satoshi: 120_000_000n },
    change: { address: keys.address('bitcoin', key), satoshi: 29_998_000n, key },
    feeSatoshi: 2_000n,
    ...changes,
  }
}

export function evmIntent(changes: Partial<EvmIntent> = {}): EvmIntent {
  return {
    family: 'evm',
    chain: 'ETH',
    evmChainId: 31337,
    payoutId: 'CB1:1',
    attempt: 1,
    from: { purpose: 'reserve', index: 0 },
    nonce: 5,
    to: customerEvm,
    units: 10n ** 18n,
    token: null,
    gasLimit: 21_000n,
    maxFeePerGasWei: 30_000_000_000n,
    maxPriorityFeePerGasWei: 1_000_000_000n,
    ...changes,
  }
}

export function xrpIntent(changes: Partial<XrpIntent> = {}): XrpIntent {
  return {
    family: 'xrp',
    chain: 'XRP',
    networkId: 31337,
    payoutId: 'CB1:1',
    attempt: 1,
    from: { purpose: 'reserve', index: 0 },
    sequence: 5,
    payment: { to: customerXrp, tag: 48_213, drops: 25_000_000n },
    feeDrops: 15n,
    lastLedgerSequence: 1_000,
    ...changes,
  }
}

export function stellarIntent(changes: Partial<StellarIntent> = {}): StellarIntent {
  return {
    family: 'stellar',
    chain: 'XLM',
    passphrase: stellarPassphrase,
    payoutId: 'CB1:1',
    attempt: 1,
    from: { purpose: 'reserve', index: 0 },
    sequence: (60n << 32n) + 6n,
    payment: { to: customerStellar, memo: '48213', stroops: 250_000_000n, creates: false },
    feeStroops: 200n,
    maxTimeS: 1_800_000_000,
    ...changes,
  }
}

export function tronIntent(changes: Partial<TronIntent> = {}): TronIntent {
  return {
    family: 'tron',
    chain: 'TRX',
    payoutId: 'CB1:1',
    attempt: 1,
    from: { purpose: 'reserve', index: 0 },
    to: customerTron,
    units: 25_000_000n,
    token: null,
    feeLimitSun: 0n,
    reference: { id: `${'0'.repeat(12)}abcd${'ef'.repeat(24)}`, timeMs: 1_790_000_000_000 },
    expirationMs: 1_790_000_060_000,
    timestampMs: 1_789_999_990_000,
    ...changes,
  }
}

export function eosIntent(changes: Partial<EosIntent> = {}): EosIntent {
  return {
    family: 'eos',
    chain: 'EOS',
    chainId: 'aa'.repeat(32),
    payoutId: 'CB1:1',
    attempt: 1,
    from: { purpose: 'reserve', index: 0 },
    account: eosAccount,
    payment: { to: customerEos, memo: '48213', units: 250_000n },
    reference: { id: `0001abcd${'0'.repeat(8)}12345678${'ef'.repeat(20)}`, timeMs: 1_790_000_000_500 },
    expirationMs: 1_790_000_061_000,
    netWordsMax: 1_234_567,
    ...changes,
  }
}

export function solanaIntent(changes: Partial<SolanaIntent> = {}): SolanaIntent {
  return {
    family: 'solana',
    chain: 'SOL',
    payoutId: 'CB1:1',
    attempt: 1,
    from: { purpose: 'reserve', index: 0 },
    payer: { purpose: 'reserve', index: 0 },
    to: customerSolana,
    units: 25_000_000n,
    token: null,
    computeUnits: 60_000,
    unitPriceMicroLamports: 100n,
    reference: { slot: 1_100, blockhash: '4uQeVj5tqViQh7yWWGStvkEG1Zmhx6uasJtWCJziofM', height: 1_000 },
    lastHeight: 1_151,
    ...changes,
  }
}

/** An authority as the service writes it: sealed with the key that the signer knows. */
export function sealed({ payeeKey = null, ...changes }: Partial<Omit<Authority, 'seal'>> = {}): Authority {
  const terms = {
    orderId: 'CB1',
    payoutAsset: 'ETH:ETH' as const,
    destination: customerEvm,
    destinationTag: null,
    depositAsset: 'ETH:ETH' as const,
    refundAddress: null,
    ...changes,
  }
  const kind: OutflowKind = changes.kind ?? 'payout'
  return { ...terms, kind, payeeKey, seal: makeSeal(sealKey, terms, sealedFor({ kind })) }
}

export function startSigner(changes: Partial<SignerSettings> = {}, store = memoryStore()) {
  const clock = { now: 1_000_000_000, nowMs: () => clock.now }
  const signer = localSigner({ seed, store, sealKey, settings: { ...settings, ...changes }, clock })
  return { signer, store, clock }
}
