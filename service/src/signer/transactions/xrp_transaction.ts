import { createHash } from 'node:crypto'
import { isValidClassicAddress, isValidXAddress, xAddressToClassicAddress } from 'ripple-address-codec'
import { encode, encodeForSigning } from 'ripple-binary-codec'
import { deriveAddress, sign } from 'ripple-keypairs'
import { accept, type Outcome } from '../../domain/outcome.ts'
import type { SignedTx, XrpIntent } from '../../domain/payouts/intent.ts'
import type { Keys } from '../derivation.ts'
import { refuseToSign } from '../rejections.ts'
import type { XrpSettings } from '../settings.ts'
import type { Authority, SignRejection } from '../signer.ts'

/** Above this the id is part of every transaction, and below it must not be: XLS-37, https://xrpl.org/docs/references/protocol/transactions/common-fields#networkid-field */
const NETWORK_ID_UNWRITTEN_MAX = 1024
/** tfFullyCanonicalSig: one signature, one hash. */
const CANONICAL = 0x8000_0000
/** `TXN\0`, under which a signed transaction is hashed. */
const TXN = '54584E00'

/** A Payment of XRP, or an AccountSet that sets nothing. Deterministic (RFC 6979). */
export function signXrp(
  intent: XrpIntent,
  keys: Keys,
  settings: XrpSettings | undefined,
): Outcome<SignedTx, SignRejection> {
  if (settings === undefined) return refuseToSign('malformed', 'XRP is not configured')
  if (intent.networkId !== settings.networkId)
    return refuseToSign('malformed', `intent.networkId is not ${settings.networkId}`)
  if (intent.from.purpose !== 'reserve' || intent.from.index !== 0)
    return refuseToSign('malformed', 'intent.from: everything leaves from the account of the reserve')
  if (intent.feeDrops > settings.feeDropsMax)
    return refuseToSign('limit_exceeded', `a fee is at most ${settings.feeDropsMax} drops`)
  const publicKey = hex(keys.publicKey('xrp', intent.from))
  const unsigned = {
    ...actionOf(intent),
    Account: deriveAddress(publicKey),
    Flags: CANONICAL,
    Fee: String(intent.feeDrops),
    Sequence: intent.sequence,
    LastLedgerSequence: intent.lastLedgerSequence,
    SigningPubKey: publicKey,
    ...(intent.networkId > NETWORK_ID_UNWRITTEN_MAX && { NetworkID: intent.networkId }),
  }
  // The zero byte says that the key is one of secp256k1.
  const signature = sign(encodeForSigning(unsigned), `00${hex(keys.privateKey('xrp', intent.from))}`)
  const bytes = encode({ ...unsigned, TxnSignature: signature })
  return accept({ txHash: sha512Half(TXN + bytes), bytes })
}

function actionOf({ payment }: XrpIntent) {
  if (payment === null) return { TransactionType: 'AccountSet' }
  const { to, tag, drops } = payment
  return {
    TransactionType: 'Payment',
    Destination: to,
    Amount: String(drops),
    ...(tag !== null && { DestinationTag: tag }),
  }
}

/** Whether the intent pays whom the order names: account and tag, which may stand inside an X-address (XLS-5). */
export function isXrpPayee(
  { payment }: XrpIntent,
  { kind, destination, destinationTag, refundAddress }: Authority,
  settings: XrpSettings | undefined,
): boolean {
  if (kind === 'filler') return payment === null
  if (payment === null || kind === 'sweep') return false
  const named =
    kind === 'payout' ? { text: destination, tag: destinationTag } : { text: refundAddress, tag: null }
  const place = named.text === null ? null : placeOf(named.text, settings?.networkId === 0)
  if (place === null || place.account !== payment.to) return false
  if (named.tag === null) return place.tag === payment.tag
  return String(payment.tag) === named.tag && (place.tag === null || place.tag === payment.tag)
}

function placeOf(text: string, isMain: boolean): { account: string; tag: number | null } | null {
  if (isValidClassicAddress(text)) return { account: text, tag: null }
  if (!isValidXAddress(text)) return null
  const { classicAddress, tag, test } = xAddressToClassicAddress(text)
  return test === isMain ? null : { account: classicAddress, tag: tag === false ? null : tag }
}

function sha512Half(text: string): string {
  return createHash('sha512').update(Buffer.from(text, 'hex')).digest('hex').slice(0, 64).toUpperCase()
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex').toUpperCase()
}
