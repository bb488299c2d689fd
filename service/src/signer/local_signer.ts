import type { KeyObject } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { assert } from '../domain/assert.ts'
import { type AssetId, assetOf } from '../domain/catalog/assets.ts'
import { chainFacts, excludesOnChain } from '../domain/catalog/networks.ts'
import type { Amount } from '../domain/money/amount.ts'
import { accept, type Outcome } from '../domain/outcome.ts'
import type { Intent, SignedTx } from '../domain/payouts/intent.ts'
import type { InstantMs } from '../domain/time.ts'
import { canonicalSolanaAddress } from './addresses/solana_address.ts'
import { canonicalTronAddress } from './addresses/tron_address.ts'
import { amountThatLeaves } from './amount_that_leaves.ts'
import { addressesOf, keysOf } from './derive_addresses.ts'
import { refuseToSign } from './rejections.ts'
import { fillsSame, findReplacementProblem } from './replacement.ts'
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
  Signed,
  SignedRecord,
  SignedStore,
  Signer,
  SignRejection,
} from './signer.ts'
import { buildTransaction, type SigningParts } from './transactions/build_transaction.ts'
import { canonicalEvmAddress } from './transactions/evm_transaction.ts'

type Parts = SigningParts & {
  readonly store: SignedStore
  readonly sealKey: KeyObject
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

async function sign(parts: Parts, asked: Intent, by: Authority): Promise<Outcome<Signed, SignRejection>> {
  const request = checkRequest(asked, by)
  if (!request.ok) return request
  const { intent, authority } = request.value
  if (!isSealIntact(parts.sealKey, authority)) {
    return refuseToSign('seal_broken', `the terms of ${authority.orderId} are not the ones that were sealed`)
  }
  const earlier = await parts.store.attempts(intent.payoutId)
  // A repeat is answered before anything that may have changed since: a refund address, a cap, a contract.
  const before = earlier.find((record) => record.attempt === intent.attempt)
  if (before !== undefined) return answerStored(before, intent, authority.kind)

  const amount = await amountThatLeaves(parts, intent, authority)
  if (!amount.ok) return amount
  const conflict = findConflict(intent, earlier, authority.kind)
  if (conflict !== null) return refuseToSign('conflict', conflict)
  const tx = await buildTransaction(parts, intent)
  if (!tx.ok) return tx
  return storeOnce(parts, { intent, amount: amount.value, tx: tx.value, kind: authority.kind })
}

/** Writes before it answers: what the caller gets is what the store holds, whoever wrote it. */
async function storeOnce(
  parts: Parts,
  { intent, amount, tx, kind }: { intent: Intent; amount: Amount; tx: SignedTx; kind: Authority['kind'] },
): Promise<Outcome<Signed, SignRejection>> {
  const { payoutId, attempt } = intent
  const { asset, units } = amount
  // A later attempt that excludes the first on chain spends nothing more: the payout was counted with its first.
  const isCounted = units > 0n && (attempt === 1 || !excludesOnChain[intent.family])
  const limits = isCounted ? limitsOn(parts.settings, asset) : []
  const record = { payoutId, attempt, intent, asset, units, tx, atMs: parts.clock.nowMs() }
  const stored = await parts.store.insertOnce(record, limits)
  if (stored === 'limit_exceeded')
    return refuseToSign('limit_exceeded', `${payoutId} would pass a limit on ${asset} over time`)
  if (stored === 'overtaken')
    return refuseToSign('conflict', `a later outflow of the order of ${payoutId} was signed already`)
  const isIts = stored.payoutId === payoutId && stored.attempt === attempt
  return isIts ? answerStored(stored, intent, kind) : answerSame(stored, intent, kind)
}

/**
 * The very transaction was signed under another name. A sweep that a restored database plans under the next name may be
 * one that it has forgotten, which nobody sent: it goes from us to us, under whatever name. Anything else would be paid
 * once and counted twice.
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
  const countsEveryAttempt = !excludesOnChain[chainFacts[assetOf(asset).chain].family]
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

/**
 * A filler has one name for ever: one that a restored database has forgotten is planned and drafted anew, at another fee, and refused it
 * would leave its gap open for good. It goes from us to us, and what was signed of it is answered.
 */
function answerStored(
  stored: SignedRecord,
  intent: Intent,
  kind: Authority['kind'],
): Outcome<Signed, SignRejection> {
  const tx = { txHash: stored.tx.txHash, bytes: stored.tx.bytes }
  if (isDeepStrictEqual(stored.intent, intent)) return accept(tx)
  if (kind === 'filler' && stored.units === 0n && fillsSame(intent, stored.intent))
    return accept({ ...tx, intent: stored.intent })
  return refuseToSign(
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
