import type { AssetId } from '../../domain/catalog/assets.ts'
import type { AddressFamily } from '../../domain/catalog/networks.ts'
import type { OrderId } from '../../domain/orders/identifiers.ts'
import { accept, type Outcome } from '../../domain/outcome.ts'
import type { Intent, OutflowKind, PayoutId } from '../../domain/payouts/intent.ts'
import { KEY_INDEX_MAX } from '../derivation.ts'
import { refuseToSign } from '../rejections.ts'
import type { Authority, SignRejection } from '../signer.ts'
import { readBitcoinIntent } from './bitcoin_intent.ts'
import { readEosIntent } from './eos_intent.ts'
import { readEvmIntent } from './evm_intent.ts'
import { asset, integer, Malformed, oneOf, orNull, record, text } from './fields.ts'
import { orderName, payoutName, purposes, readKey } from './names.ts'
import { readSolanaIntent } from './solana_intent.ts'
import { readStellarIntent } from './stellar_intent.ts'
import { readTronIntent } from './tron_intent.ts'
import { readXrpIntent } from './xrp_intent.ts'

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
const families = [
  'bitcoin',
  'evm',
  'xrp',
  'stellar',
  'tron',
  'eos',
  'solana',
] as const satisfies readonly AddressFamily[]
const kinds = ['payout', 'refund', 'filler', 'sweep'] as const satisfies readonly OutflowKind[]

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
