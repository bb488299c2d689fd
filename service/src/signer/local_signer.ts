import type { KeyObject } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { assert } from '../domain/assert.ts'
import { type AssetId, assetOf, assets, nativeAsset } from '../domain/catalog/assets.ts'
import { chainFacts } from '../domain/catalog/networks.ts'
import { type Amount, amountOf, fromChainUnits } from '../domain/money/amount.ts'
import { accept, type Outcome } from '../domain/outcome.ts'
import {
  type EvmIntent,
  type Intent,
  type KeyPath,
  paysSomebody,
  type SignedTx,
  type SolanaIntent,
  type TronIntent,
} from '../domain/payouts/intent.ts'
import type { InstantMs } from '../domain/time.ts'
import { isEosPayee } from './addresses/eos_address.ts'
import { canonicalSolanaAddress, solanaAddress } from './addresses/solana_address.ts'
import { canonicalTronAddress } from './addresses/tron_address.ts'
import type { Keys } from './derivation.ts'
import { addressesOf, keysOf } from './derive_addresses.ts'
import { loadInTurn } from './load_in_turn.ts'
import { refuseToSign } from './rejections.ts'
import { excludesOnChain, findReplacementProblem } from './replacement.ts'
import {
  checkOrderRequest,
  checkPayoutRequest,
  checkRequest,
  checkRoomRequest,
} from './requests/check_request.ts'
import { isSealIntact } from './seal.ts'
import type { SignerSettings } from './settings.ts'
import type {
  Authority,
  CheckedLimit,
  Room,
  SignedRecord,
  SignedStore,
  Signer,
  SignRejection,
} from './signer.ts'
import { canonicalBitcoinAddress, signBitcoin } from './transactions/bitcoin_transaction.ts'
import { canonicalEvmAddress, signEvm } from './transactions/evm_transaction.ts'
import { signTron } from './transactions/tron_transaction.ts'
import { isXrpPayee, signXrp } from './transactions/xrp_transaction.ts'

/** Reserve addresses 0 to 15 count as ours; fillers and sweeps go to no other unless `payeeKey` says so. */
const RESERVE_ADDRESSES = 16

type Parts = {
  readonly keys: Keys
  readonly store: SignedStore
  readonly sealKey: KeyObject
  readonly settings: SignerSettings
  readonly clock: { nowMs(): InstantMs }
}

/** The signer in this process. */
export function localSigner(options: {
  /** The BIP-39 seed out of the keystore. */
  readonly seed: Uint8Array
  readonly store: SignedStore
  readonly sealKey: KeyObject
  readonly settings: SignerSettings
  readonly clock: { nowMs(): InstantMs }
}): Signer {
  const { seed, store, sealKey, clock } = options
  const settings = { ...options.settings, contracts: checksummed(options.settings.contracts) }
  const keys = keysOf(seed, settings)
  const parts: Parts = { keys, store, sealKey, settings, clock }
  return {
    addresses: addressesOf(keys, settings),
    room: async (asset) => roomFor(parts, checkRoomRequest(asset)),
    lastSigned: async (payoutId) => (await store.attempts(checkPayoutRequest(payoutId))).at(-1)?.attempt ?? 0,
    lastOutflow: async (orderId) => store.lastOutflow(checkOrderRequest(orderId)),
    sign: (intent, authority) => sign(parts, intent, authority),
  }
}

function checksummed(contracts: SignerSettings['contracts']): SignerSettings['contracts'] {
  return Object.fromEntries(
    Object.entries(contracts).map(([asset, text]) => {
      const address = canonicalEvmAddress(text) ?? canonicalTronAddress(text) ?? canonicalSolanaAddress(text)
      assert(address !== null, `the contract of ${asset} is an address`)
      return [asset, address]
    }),
  )
}

async function sign(parts: Parts, asked: Intent, by: Authority): Promise<Outcome<SignedTx, SignRejection>> {
  const request = checkRequest(asked, by)
  if (!request.ok) return request
  const { intent, authority } = request.value
  if (!isSealIntact(parts.sealKey, authority)) {
    return refuseToSign('seal_broken', `the terms of ${authority.orderId} are not the ones that were sealed`)
  }
  const earlier = await parts.store.attempts(intent.payoutId)
  // A repeat is answered before anything that may have changed since: a refund address, a cap, a contract.
  const before = earlier.find((record) => record.attempt === intent.attempt)
  if (before !== undefined) return answerStored(before, intent)

  const amount = await amountThatLeaves(parts, intent, authority)
  if (!amount.ok) return amount
  const conflict = findConflict(intent, earlier, authority.kind)
  if (conflict !== null) return refuseToSign('conflict', conflict)
  const tx = await build(parts, intent)
  if (!tx.ok) return tx
  return storeOnce(parts, { intent, amount: amount.value, tx: tx.value, kind: authority.kind })
}

/** Writes before it answers: what the caller gets is what the store holds, whoever wrote it. */
async function storeOnce(
  parts: Parts,
  { intent, amount, tx, kind }: { intent: Intent; amount: Amount; tx: SignedTx; kind: Authority['kind'] },
): Promise<Outcome<SignedTx, SignRejection>> {
  const { payoutId, attempt } = intent
  const { asset, units } = amount
  // A later attempt that excludes the first on chain spends nothing more: the payout was counted with its first.
  const isCounted = units > 0n && (attempt === 1 || !excludesOnChain(intent.family))
  const limits = isCounted ? limitsOn(parts.settings, asset) : []
  const record = { payoutId, attempt, intent, asset, units, tx, atMs: parts.clock.nowMs() }
  const stored = await parts.store.insertOnce(record, limits)
  if (stored === 'limit_exceeded')
    return refuseToSign('limit_exceeded', `${payoutId} would pass a limit on ${asset} over time`)
  if (stored === 'overtaken')
    return refuseToSign('conflict', `a later outflow of the order of ${payoutId} was signed already`)
  const isIts = stored.payoutId === payoutId && stored.attempt === attempt
  return isIts ? answerStored(stored, intent) : answerSame(stored, intent, kind)
}

/**
 * The very transaction was signed under another name. A sweep that a restored database plans under the next name may be one that it has
 * forgotten, which nobody sent: it goes from us to us, under whatever name. Anything else would be paid once and counted twice.
 */
function answerSame(
  stored: SignedRecord,
  intent: Intent,
  kind: Authority['kind'],
): Outcome<SignedTx, SignRejection> {
  const { payoutId, attempt } = stored
  const isSame = isDeepStrictEqual(stored.intent, { ...intent, payoutId, attempt })
  if (kind !== 'sweep' || !isSame)
    throw new Error(
      `the transaction of ${intent.payoutId} was signed for attempt ${attempt} of ${payoutId} before`,
    )
  return accept({ txHash: stored.tx.txHash, bytes: stored.tx.bytes })
}

function limitsOn({ limits }: SignerSettings, asset: AssetId): readonly CheckedLimit[] {
  const countsEveryAttempt = !excludesOnChain(chainFacts[assetOf(asset).chain].family)
  return limits.filter((limit) => limit.asset === asset).map((limit) => ({ ...limit, countsEveryAttempt }))
}

async function roomFor({ settings, store, clock }: Parts, asset: AssetId): Promise<Room> {
  let together: bigint | null = null
  for (const limit of limitsOn(settings, asset)) {
    const left = limit.unitsMax - (await store.spent(limit, clock.nowMs()))
    if (together === null || left < together) together = left
  }
  return { onePayout: settings.payoutUnitsMax[asset] ?? 0n, together }
}

function answerStored(stored: SignedRecord, intent: Intent): Outcome<SignedTx, SignRejection> {
  return isDeepStrictEqual(stored.intent, intent)
    ? accept({ txHash: stored.tx.txHash, bytes: stored.tx.bytes })
    : refuseToSign(
        'conflict',
        `attempt ${intent.attempt} of ${intent.payoutId} was signed before with another intent`,
      )
}

function findConflict(
  intent: Intent,
  earlier: readonly SignedRecord[],
  kind: Authority['kind'],
): string | null {
  const last = earlier.at(-1)?.attempt ?? 0
  // An attempt of a sweep may have its record under another name, see `answerSame`.
  const isNext = kind === 'sweep' ? intent.attempt > last : intent.attempt === last + 1
  if (!isNext) return `attempt ${intent.attempt} of ${intent.payoutId} does not follow attempt ${last}`
  for (const record of earlier) {
    const problem = findReplacementProblem(intent, record.intent, kind)
    if (problem !== null) return problem
  }
  return null
}

/** What the intent takes out of our hands, provided that it goes where it may and is not too much at once. */
async function amountThatLeaves(
  parts: Parts,
  intent: Intent,
  authority: Authority,
): Promise<Outcome<Amount, SignRejection>> {
  const { settings } = parts
  const asset = assetIn(settings, intent)
  if (asset === null) return refuseToSign('malformed', 'intent.token is not a listed contract of its chain')
  if (authority.kind === 'filler') {
    const problem = findFillerProblem(intent, authority)
    if (problem !== null) return problem
  } else if (authority.payeeKey !== null) {
    const problem = findGasProblem(settings, intent, authority)
    if (problem !== null) return problem
  }
  if (!(await isPayeeRight(parts, intent, authority))) {
    return refuseToSign(
      'not_the_destination',
      `a ${authority.kind} of ${authority.orderId} does not go there`,
    )
  }
  if (!isAssetRight(asset, authority)) {
    return refuseToSign(
      'not_the_asset',
      `a ${authority.kind} of ${authority.orderId} is not made in ${asset}`,
    )
  }
  const chainUnits = chainUnitsOf(intent)
  if (!paysSomebody(authority)) return accept(amountOf(asset, 0n))
  if (chainUnits === 0n) return refuseToSign('malformed', `a ${authority.kind} pays something`)
  const amount = fromChainUnits(asset, chainUnits)
  const unitsMax = settings.payoutUnitsMax[asset] ?? 0n
  if (intent.attempt === 1 && amount.units > unitsMax) {
    return refuseToSign('limit_exceeded', `one payout of ${asset} is at most ${unitsMax} ledger units`)
  }
  return accept(amount)
}

function chainUnitsOf(intent: Intent): bigint {
  switch (intent.family) {
    case 'bitcoin':
      return intent.payment.satoshi
    case 'evm':
    case 'tron':
    case 'solana':
      return intent.units
    case 'xrp':
      return intent.payment?.drops ?? 0n
    case 'stellar':
      return intent.payment?.stroops ?? 0n
    case 'eos':
      return intent.payment.units
  }
}

function assetIn(settings: SignerSettings, intent: Intent): AssetId | null {
  if (!hasToken(intent) || intent.token === null) return nativeAsset(intent.chain).id
  const listed = assets.find(
    ({ id, chain, isNative }) =>
      chain === intent.chain && !isNative && settings.contracts[id] === intent.token,
  )
  return listed?.id ?? null
}

/** Families whose tokens are contracts. */
function hasToken(intent: Intent): intent is EvmIntent | TronIntent | SolanaIntent {
  return intent.family === 'evm' || intent.family === 'tron' || intent.family === 'solana'
}

async function isPayeeRight(
  { keys, settings }: Parts,
  intent: Intent,
  authority: Authority,
): Promise<boolean> {
  if (intent.family === 'xrp') return isXrpPayee(intent, authority, settings.xrp)
  if (intent.family === 'stellar') return (await stellarSigning()).isStellarPayee(intent, authority)
  if (intent.family === 'eos') return isEosPayee(intent, authority)
  const payee = intent.family === 'bitcoin' ? intent.payment.address : intent.to
  const canonical = (text: string) => {
    if (intent.family === 'bitcoin') return canonicalBitcoinAddress(text, settings.bitcoin.network)
    if (intent.family === 'solana') return canonicalSolanaAddress(text)
    return intent.family === 'tron' ? canonicalTronAddress(text) : canonicalEvmAddress(text)
  }
  const addressOf = (key: KeyPath) =>
    intent.family === 'solana' ? solanaAddress(keys, key) : keys.address(intent.family, key)
  const isReserve = () =>
    Array.from({ length: RESERVE_ADDRESSES }, (_, index) =>
      addressOf({ purpose: 'reserve', index }),
    ).includes(payee)
  switch (authority.kind) {
    case 'payout':
      return canonical(authority.destination) === payee
    case 'refund':
      return authority.refundAddress !== null && canonical(authority.refundAddress) === payee
    case 'sweep':
    case 'filler':
      if (authority.payeeKey !== null) return addressOf(authority.payeeKey) === payee
      return isReserve()
  }
}

/** Under a nonce a filler moves nothing; on coin chains everything comes back, in one output of ours. */
function findFillerProblem(intent: Intent, { payeeKey }: Authority) {
  if (intent.family === 'tron' || intent.family === 'eos' || intent.family === 'solana')
    return refuseToSign('malformed', `on ${intent.chain} nothing waits for a filler`)
  if (intent.family !== 'bitcoin') {
    const movesNothing = intent.family === 'evm' ? isEmptyTransfer(intent) : intent.payment === null
    if (payeeKey === null && movesNothing) return null
    return refuseToSign('malformed', 'a filler moves nothing, and to the reserve')
  }
  if (payeeKey !== null && payeeKey.purpose !== 'change') {
    return refuseToSign('malformed', 'authority.payeeKey is the change key that a filler pays to')
  }
  return intent.change === null ? null : refuseToSign('malformed', 'a filler has one output')
}

function isEmptyTransfer({ units, token }: EvmIntent): boolean {
  return units === 0n && token === null
}

/** Gas for a sweep: native coin from the reserve to a deposit address of ours, and not much of it. */
function findGasProblem(settings: SignerSettings, intent: Intent, { kind, payeeKey }: Authority) {
  if (kind !== 'sweep' || payeeKey?.purpose !== 'deposit' || !needsGas(intent)) {
    return refuseToSign(
      'malformed',
      'authority.payeeKey is the deposit key that a sweep of an account chain brings gas to',
    )
  }
  if (intent.from.purpose !== 'reserve' || intent.token !== null || intent.units === 0n) {
    return refuseToSign('malformed', 'gas for a sweep is native coin from the reserve')
  }
  const capOf = () => evmSettingsOf(settings, intent)?.sweepGasWeiMax
  const unitsMax = (intent.family === 'tron' ? settings.tron?.sweepGasSunMax : capOf()) ?? 0n
  return intent.units > unitsMax
    ? refuseToSign('limit_exceeded', `gas for a sweep is at most ${unitsMax} of the chain's units`)
    : null
}

/** On Solana the reserve pays for a token that leaves a deposit address, and coin pays for itself. */
function needsGas(intent: Intent): intent is EvmIntent | TronIntent {
  return intent.family === 'evm' || intent.family === 'tron'
}

/** What goes from us to us may be any asset: it does not leave. */
function isAssetRight(asset: AssetId, { kind, payoutAsset, depositAsset }: Authority): boolean {
  switch (kind) {
    case 'payout':
      return asset === payoutAsset
    case 'refund':
      return asset === depositAsset
    case 'filler':
    case 'sweep':
      return true
  }
}

async function build({ keys, settings }: Parts, intent: Intent): Promise<Outcome<SignedTx, SignRejection>> {
  if (intent.family === 'bitcoin') return signBitcoin(intent, keys, settings.bitcoin)
  if (intent.family === 'xrp') return signXrp(intent, keys, settings.xrp)
  if (intent.family === 'stellar') return (await stellarSigning()).signStellar(intent, keys, settings.stellar)
  if (intent.family === 'tron') return signTron(intent, keys, settings.tron)
  if (intent.family === 'eos') {
    const { signEos } = await loadInTurn(() => import('./transactions/eos_transaction.ts'))
    return signEos(intent, keys, settings.eos)
  }
  if (intent.family === 'solana') {
    const asset = assetIn(settings, intent)
    assert(asset !== null, 'what leaves was looked at before')
    const { signSolana } = await loadInTurn(() => import('./transactions/solana_transaction.ts'))
    return signSolana(intent, keys, settings.solana, assetOf(asset).chainDecimals)
  }
  const chain = evmSettingsOf(settings, intent)
  if (chain === undefined) return refuseToSign('malformed', `${intent.chain} is not configured`)
  return signEvm(intent, keys, chain)
}

/** Its library is slow to load, and not every service pays on Stellar. */
const stellarSigning = () => loadInTurn(() => import('./transactions/stellar_transaction.ts'))

function evmSettingsOf({ evm }: SignerSettings, { chain }: Intent) {
  return Object.entries(evm).find(([id]) => id === chain)?.[1]
}
