import { getAddress, isAddress } from 'viem/utils'
import { type AssetId, isAssetId } from '../domain/catalog/assets.ts'
import { type AddressFamily, chainFacts, isChainId } from '../domain/catalog/networks.ts'
import type { OrderId } from '../domain/orders/identifiers.ts'
import { accept, type Outcome } from '../domain/outcome.ts'
import type {
  BitcoinIntent,
  Coin,
  EosIntent,
  EvmIntent,
  Intent,
  KeyPath,
  PayoutId,
  PayoutKind,
  SolanaIntent,
  StellarIntent,
  TronIntent,
  XrpIntent,
} from '../domain/payouts/intent.ts'
import { KEY_INDEX_MAX } from './derivation.ts'
import { refuseToSign } from './rejections.ts'
import type { Authority, SignRejection } from './signer.ts'
import { canonicalSolanaAddress } from './solana_address.ts'
import { canonicalTronAddress } from './tron_address.ts'

/**
 * What was asked, checked field by field and built anew from the checked fields alone: whoever asks may be
 * anyone who reached the socket or the database, and what reaches the keys has passed here.
 */
export function checkRequest(
  intent: unknown,
  authority: unknown,
): Outcome<{ intent: Intent; authority: Authority }, SignRejection> {
  try {
    const request = { intent: readIntent(intent), authority: readAuthority(authority) }
    const { payoutId } = request.intent
    if (payoutId.slice(0, payoutId.lastIndexOf(':')) !== request.authority.orderId) {
      throw new Malformed('intent.payoutId is not of the order in authority.orderId')
    }
    return accept(request)
  } catch (error) {
    if (error instanceof Malformed) return refuseToSign('malformed', error.message)
    throw error
  }
}

/** Checks what an `addresses` request names; throws `Malformed` when it is not one. */
export function checkAddressRequest(family: unknown, purpose: unknown, from: unknown, count: unknown) {
  return {
    family: oneOf('family', family, families),
    purpose: oneOf('purpose', purpose, purposes),
    from: integer('from', from, 0, KEY_INDEX_MAX),
    count: integer('count', count, 1, ADDRESSES_MAX),
  }
}

/** Checks what a `room` request names; throws `Malformed` when it is no asset. */
export function checkRoomRequest(value: unknown): AssetId {
  return asset('asset', value)
}

/** Checks what a `lastSigned` request names; throws `Malformed` when no outflow is called that. */
export function checkPayoutRequest(value: unknown): PayoutId {
  return payoutName('payoutId', value)
}

/** Checks what a `lastOutflow` request names; throws `Malformed` when no order is called that. */
export function checkOrderRequest(value: unknown): OrderId {
  return orderName('orderId', value)
}

const ADDRESSES_MAX = 1_000
/** About 34 kB, a third of what nodes relay. */
const INPUTS_MAX = 500
/**
 * As many as the record can hold. Where time alone ends an attempt, one follows the other every minute for as long as a network
 * takes none, and whoever could sign no more for a number of an account could never again send after it.
 */
const ATTEMPTS_MAX = 2 ** 15 - 1
const SATOSHI_MAX = 21_000_000n * 100_000_000n
const WORD_MAX = 2n ** 256n - 1n
const UINT32_MAX = 2 ** 32 - 1
const DROPS_MAX = 10n ** 17n
const INT64_MAX = 2n ** 63n - 1n
/** What JSON says exactly: nine billion TRX, or as many USDT. */
const SUN_MAX = 2n ** 53n - 1n
const families = [
  'bitcoin',
  'evm',
  'xrp',
  'stellar',
  'tron',
  'eos',
  'solana',
] as const satisfies readonly AddressFamily[]
const purposes = ['deposit', 'reserve', 'change'] as const
const kinds = ['payout', 'refund', 'filler', 'sweep'] as const satisfies readonly PayoutKind[]

/** The request itself is wrong; the message names the field and may be shown to whoever asked. */
export class Malformed extends Error {}

type Fields = Readonly<Record<string, unknown>>

function readAuthority(value: unknown): Authority {
  const terms = ['orderId', 'payoutAsset', 'destination', 'destinationTag', 'depositAsset', 'refundAddress']
  const fields = record('authority', value, ['kind', ...terms, 'payeeKey', 'seal'])
  return {
    kind: oneOf('authority.kind', fields.kind, kinds),
    orderId: orderName('authority.orderId', fields.orderId),
    payoutAsset: asset('authority.payoutAsset', fields.payoutAsset),
    destination: text('authority.destination', fields.destination, /^[\s\S]{0,200}$/),
    destinationTag: orNull(fields.destinationTag, (tag) =>
      text('authority.destinationTag', tag, /^[\s\S]{0,256}$/u),
    ),
    depositAsset: asset('authority.depositAsset', fields.depositAsset),
    refundAddress: orNull(fields.refundAddress, (address) =>
      text('authority.refundAddress', address, /^[\s\S]{0,200}$/),
    ),
    payeeKey: orNull(fields.payeeKey, (key) => readKey('authority.payeeKey', key)),
    seal: text('authority.seal', fields.seal, /^[0-9a-f]{64}$/),
  }
}

function readIntent(value: unknown): Intent {
  const family = typeof value === 'object' && value !== null && 'family' in value ? value.family : undefined
  switch (oneOf('intent.family', family, families)) {
    case 'bitcoin':
      return readBitcoinIntent(value)
    case 'evm':
      return readEvmIntent(value)
    case 'xrp':
      return readXrpIntent(value)
    case 'stellar':
      return readStellarIntent(value)
    case 'tron':
      return readTronIntent(value)
    case 'eos':
      return readEosIntent(value)
    case 'solana':
      return readSolanaIntent(value)
  }
}

function readXrpIntent(value: unknown): XrpIntent {
  const names = ['family', 'chain', 'networkId', 'payoutId', 'attempt', 'from', 'sequence', 'payment']
  const fields = record('intent', value, [...names, 'feeDrops', 'lastLedgerSequence'])
  return {
    family: 'xrp',
    ...readIdentity(fields, 'xrp'),
    networkId: integer('intent.networkId', fields.networkId, 0, UINT32_MAX),
    from: readKey('intent.from', fields.from),
    sequence: integer('intent.sequence', fields.sequence, 0, UINT32_MAX),
    payment: orNull(fields.payment, (payment) => {
      const parts = record('intent.payment', payment, ['to', 'tag', 'drops'])
      return {
        to: text('intent.payment.to', parts.to, /^r[1-9A-HJ-NP-Za-km-z]{24,34}$/),
        tag: orNull(parts.tag, (tag) => integer('intent.payment.tag', tag, 0, UINT32_MAX)),
        drops: bounded('intent.payment.drops', parts.drops, 1n, DROPS_MAX),
      }
    }),
    feeDrops: bounded('intent.feeDrops', fields.feeDrops, 1n, DROPS_MAX),
    lastLedgerSequence: integer('intent.lastLedgerSequence', fields.lastLedgerSequence, 1, UINT32_MAX),
  }
}

function readStellarIntent(value: unknown): StellarIntent {
  const names = ['family', 'chain', 'passphrase', 'payoutId', 'attempt', 'from', 'sequence', 'payment']
  const fields = record('intent', value, [...names, 'feeStroops', 'maxTimeS'])
  return {
    family: 'stellar',
    ...readIdentity(fields, 'stellar'),
    passphrase: text('intent.passphrase', fields.passphrase, /^[ -~]{8,200}$/),
    from: readKey('intent.from', fields.from),
    sequence: bounded('intent.sequence', fields.sequence, 1n, INT64_MAX),
    payment: orNull(fields.payment, (payment) => {
      const parts = record('intent.payment', payment, ['to', 'memo', 'stroops', 'creates'])
      return {
        to: text('intent.payment.to', parts.to, /^(G[A-Z2-7]{55}|M[A-Z2-7]{68})$/),
        memo: orNull(parts.memo, (memo) => text('intent.payment.memo', memo, /^\P{Cc}{1,28}$/u)),
        stroops: bounded('intent.payment.stroops', parts.stroops, 1n, INT64_MAX),
        creates: boolean('intent.payment.creates', parts.creates),
      }
    }),
    feeStroops: bounded('intent.feeStroops', fields.feeStroops, 1n, BigInt(UINT32_MAX)),
    // A transaction that never ends could come back any time.
    maxTimeS: integer('intent.maxTimeS', fields.maxTimeS, 1, Number.MAX_SAFE_INTEGER),
  }
}

function readTronIntent(value: unknown): TronIntent {
  const names = ['family', 'chain', 'payoutId', 'attempt', 'from', 'to', 'units', 'token', 'feeLimitSun']
  const fields = record('intent', value, [...names, 'reference', 'expirationMs', 'timestampMs'])
  const reference = record('intent.reference', fields.reference, ['id', 'timeMs'])
  const time = (name: string, given: unknown) => integer(name, given, 0, Number.MAX_SAFE_INTEGER)
  return {
    family: 'tron',
    ...readIdentity(fields, 'tron'),
    from: readKey('intent.from', fields.from),
    to: tronAddress('intent.to', fields.to),
    units: bounded('intent.units', fields.units, 1n, SUN_MAX),
    token: orNull(fields.token, (token) => tronAddress('intent.token', token)),
    feeLimitSun: bounded('intent.feeLimitSun', fields.feeLimitSun, 0n, SUN_MAX),
    reference: {
      id: text('intent.reference.id', reference.id, /^[0-9a-f]{64}$/),
      timeMs: time('intent.reference.timeMs', reference.timeMs),
    },
    expirationMs: time('intent.expirationMs', fields.expirationMs),
    timestampMs: time('intent.timestampMs', fields.timestampMs),
  }
}

function readEosIntent(value: unknown): EosIntent {
  const names = ['family', 'chain', 'chainId', 'payoutId', 'attempt', 'from', 'account', 'payment']
  const fields = record('intent', value, [...names, 'reference', 'expirationMs', 'netWordsMax'])
  const payment = record('intent.payment', fields.payment, ['to', 'memo', 'units'])
  const reference = record('intent.reference', fields.reference, ['id', 'timeMs'])
  const time = (name: string, given: unknown) => integer(name, given, 0, Number.MAX_SAFE_INTEGER)
  return {
    family: 'eos',
    ...readIdentity(fields, 'eos'),
    chainId: text('intent.chainId', fields.chainId, /^[0-9a-f]{64}$/),
    from: readKey('intent.from', fields.from),
    account: text('intent.account', fields.account, eosName),
    payment: {
      to: text('intent.payment.to', payment.to, eosName),
      memo: text('intent.payment.memo', payment.memo, /^\P{Cc}{0,256}$/u),
      units: bounded('intent.payment.units', payment.units, 1n, EOS_UNITS_MAX),
    },
    reference: {
      id: text('intent.reference.id', reference.id, /^[0-9a-f]{64}$/),
      timeMs: time('intent.reference.timeMs', reference.timeMs),
    },
    expirationMs: time('intent.expirationMs', fields.expirationMs),
    netWordsMax: integer('intent.netWordsMax', fields.netWordsMax, 1, UINT32_MAX),
  }
}

/** 1 to 12 letters, without a dot at an end. */
const eosName = /^[a-z1-5](?:[a-z1-5.]{0,10}[a-z1-5])?$/
/** What a token contract counts in: https://github.com/AntelopeIO/cdt, asset::max_amount */
const EOS_UNITS_MAX = 2n ** 62n - 1n

function tronAddress(name: string, value: unknown): string {
  const address = canonicalTronAddress(text(name, value, /^T.{33}$/))
  if (address === null) throw new Malformed(`${name} is not an address of TRON`)
  return address
}

const UINT64_MAX = 2n ** 64n - 1n
/** What one transaction may use at most: https://solana.com/docs/core/fees#compute-unit-limit */
const COMPUTE_UNITS_MAX = 1_400_000

function readSolanaIntent(value: unknown): SolanaIntent {
  const names = ['family', 'chain', 'payoutId', 'attempt', 'from', 'payer', 'to', 'units', 'token']
  const more = ['computeUnits', 'unitPriceMicroLamports', 'reference', 'lastHeight']
  const fields = record('intent', value, [...names, ...more])
  const reference = record('intent.reference', fields.reference, ['slot', 'blockhash', 'height'])
  const count = (name: string, given: unknown) => integer(name, given, 0, Number.MAX_SAFE_INTEGER)
  return {
    family: 'solana',
    ...readIdentity(fields, 'solana'),
    from: readKey('intent.from', fields.from),
    payer: readKey('intent.payer', fields.payer),
    to: solanaAddress('intent.to', fields.to),
    units: bounded('intent.units', fields.units, 1n, UINT64_MAX),
    token: orNull(fields.token, (token) => solanaAddress('intent.token', token)),
    computeUnits: integer('intent.computeUnits', fields.computeUnits, 1, COMPUTE_UNITS_MAX),
    unitPriceMicroLamports: bounded(
      'intent.unitPriceMicroLamports',
      fields.unitPriceMicroLamports,
      0n,
      UINT64_MAX,
    ),
    reference: {
      slot: count('intent.reference.slot', reference.slot),
      blockhash: solanaAddress('intent.reference.blockhash', reference.blockhash),
      height: count('intent.reference.height', reference.height),
    },
    lastHeight: count('intent.lastHeight', fields.lastHeight),
  }
}

/** A blockhash is 32 bytes in base58 as well. */
function solanaAddress(name: string, value: unknown): string {
  const address = canonicalSolanaAddress(text(name, value, /^.{32,44}$/))
  if (address === null) throw new Malformed(`${name} is not 32 bytes in base58`)
  return address
}

function readBitcoinIntent(value: unknown): BitcoinIntent {
  const names = ['family', 'chain', 'payoutId', 'attempt', 'inputs', 'payment', 'change', 'feeSatoshi']
  const fields = record('intent', value, names)
  const payment = record('intent.payment', fields.payment, ['address', 'satoshi'])
  return {
    family: 'bitcoin',
    ...readIdentity(fields, 'bitcoin'),
    inputs: readInputs(fields.inputs),
    payment: {
      address: text('intent.payment.address', payment.address, bitcoinAddressShape),
      satoshi: satoshi('intent.payment.satoshi', payment.satoshi),
    },
    change: orNull(fields.change, (change) => {
      const parts = record('intent.change', change, ['address', 'satoshi', 'key'])
      return {
        address: text('intent.change.address', parts.address, bitcoinAddressShape),
        satoshi: satoshi('intent.change.satoshi', parts.satoshi),
        key: readKey('intent.change.key', parts.key),
      }
    }),
    feeSatoshi: satoshi('intent.feeSatoshi', fields.feeSatoshi),
  }
}

function readInputs(value: unknown): readonly Coin[] {
  if (!Array.isArray(value) || value.length < 1 || value.length > INPUTS_MAX) {
    throw new Malformed(`intent.inputs has 1 to ${INPUTS_MAX} coins`)
  }
  const coins = Array.from(value, (item, at): Coin => {
    const name = `intent.inputs[${at}]`
    const fields = record(name, item, ['txHash', 'index', 'satoshi', 'address', 'key'])
    return {
      txHash: text(`${name}.txHash`, fields.txHash, /^[0-9a-f]{64}$/),
      index: integer(`${name}.index`, fields.index, 0, 2 ** 32 - 1),
      satoshi: satoshi(`${name}.satoshi`, fields.satoshi),
      address: text(`${name}.address`, fields.address, bitcoinAddressShape),
      key: readKey(`${name}.key`, fields.key),
    }
  })
  if (new Set(coins.map((coin) => `${coin.txHash}:${coin.index}`)).size !== coins.length) {
    throw new Malformed('intent.inputs names a coin twice')
  }
  return coins
}

function readEvmIntent(value: unknown): EvmIntent {
  const names = [
    'family',
    'chain',
    'evmChainId',
    'payoutId',
    'attempt',
    'from',
    'nonce',
    'to',
    'units',
    'token',
  ]
  const fees = ['gasLimit', 'maxFeePerGasWei', 'maxPriorityFeePerGasWei']
  const fields = record('intent', value, [...names, ...fees])
  const intent: EvmIntent = {
    family: 'evm',
    ...readIdentity(fields, 'evm'),
    evmChainId: integer('intent.evmChainId', fields.evmChainId, 1, Number.MAX_SAFE_INTEGER),
    from: readKey('intent.from', fields.from),
    nonce: integer('intent.nonce', fields.nonce, 0, Number.MAX_SAFE_INTEGER),
    to: evmAddress('intent.to', fields.to),
    units: bounded('intent.units', fields.units, 0n, WORD_MAX),
    token: orNull(fields.token, (token) => evmAddress('intent.token', token)),
    gasLimit: bounded('intent.gasLimit', fields.gasLimit, 21_000n, WORD_MAX),
    maxFeePerGasWei: bounded('intent.maxFeePerGasWei', fields.maxFeePerGasWei, 1n, WORD_MAX),
    maxPriorityFeePerGasWei: bounded(
      'intent.maxPriorityFeePerGasWei',
      fields.maxPriorityFeePerGasWei,
      0n,
      WORD_MAX,
    ),
  }
  if (intent.maxPriorityFeePerGasWei > intent.maxFeePerGasWei) {
    throw new Malformed('intent.maxPriorityFeePerGasWei is more than maxFeePerGasWei')
  }
  return intent
}

function readIdentity(fields: Fields, family: Intent['family']) {
  const chain = text('intent.chain', fields.chain, /^[A-Z]{1,10}$/)
  if (!isChainId(chain) || chainFacts[chain].family !== family) {
    throw new Malformed(`intent.chain is not a chain of the family ${family}`)
  }
  return {
    chain,
    payoutId: payoutName('intent.payoutId', fields.payoutId),
    attempt: integer('intent.attempt', fields.attempt, 1, ATTEMPTS_MAX),
  }
}

function orderName(name: string, value: unknown): OrderId {
  return text(name, value, /^[A-Za-z0-9_-]{1,64}$/)
}

function payoutName(name: string, value: unknown): PayoutId {
  return text(name, value, /^[A-Za-z0-9_-]{1,64}:[1-9]\d{0,8}$/)
}

function readKey(name: string, value: unknown): KeyPath {
  const fields = record(name, value, ['purpose', 'index'])
  return {
    purpose: oneOf(`${name}.purpose`, fields.purpose, purposes),
    index: integer(`${name}.index`, fields.index, 0, KEY_INDEX_MAX),
  }
}

/** An object with exactly these fields of its own. */
function record(name: string, value: unknown, names: readonly string[]): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new Malformed(`${name} is not an object`)
  }
  for (const key of names) if (!Object.hasOwn(value, key)) throw new Malformed(`${name}.${key} is missing`)
  if (Object.keys(value).length !== names.length) throw new Malformed(`${name} has a field that is not known`)
  return value as Fields
}

function orNull<Value>(value: unknown, read: (value: unknown) => Value): Value | null {
  return value === null ? null : read(value)
}

function text(name: string, value: unknown, shape: RegExp): string {
  if (typeof value !== 'string' || !shape.test(value)) throw new Malformed(`${name} is malformed`)
  return value
}

function oneOf<const Word extends string>(name: string, value: unknown, words: readonly Word[]): Word {
  const word = words.find((word) => word === value)
  if (word === undefined) throw new Malformed(`${name} is one of ${words.join(', ')}`)
  return word
}

function asset(name: string, value: unknown): AssetId {
  if (typeof value !== 'string' || !isAssetId(value)) throw new Malformed(`${name} is not an asset we know`)
  return value
}

function boolean(name: string, value: unknown): boolean {
  if (typeof value !== 'boolean') throw new Malformed(`${name} is true or false`)
  return value
}

function integer(name: string, value: unknown, min: number, max: number): number {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < min || value > max) {
    throw new Malformed(`${name} is a whole number from ${min} to ${max}`)
  }
  return value + 0 // -0 becomes 0
}

function bounded(name: string, value: unknown, min: bigint, max: bigint): bigint {
  if (typeof value !== 'bigint' || value < min || value > max) {
    throw new Malformed(`${name} is a bigint from ${min} to ${max}`)
  }
  return value
}

function satoshi(name: string, value: unknown): bigint {
  return bounded(name, value, 1n, SATOSHI_MAX)
}

/** Whether it is an address of the configured network is checked where the transaction is built. */
const bitcoinAddressShape = /^[0-9A-Za-z]{14,90}$/

function evmAddress(name: string, value: unknown): string {
  const address = text(name, value, /^0x[0-9a-fA-F]{40}$/)
  if (!isAddress(address) || getAddress(address) !== address) {
    throw new Malformed(`${name} is not in its checksummed (EIP-55) form`)
  }
  return address
}
