import { decode, encode, encodeForSigning } from 'ripple-binary-codec'
import { verify } from 'ripple-keypairs'
import { type CurrencyAmount, type IssuedAmount, sha512Half } from './entries.ts'

/** The fields that this simulator acts on; the codec has checked their form. */
export type XrpFields = {
  readonly TransactionType: string
  readonly Account: string
  readonly Fee: string
  readonly Sequence: number
  readonly Flags?: number
  readonly LastLedgerSequence?: number
  readonly NetworkID?: number
  readonly SigningPubKey: string
  readonly TxnSignature?: string
  readonly TicketSequence?: number
  readonly Destination?: string
  readonly DestinationTag?: number
  readonly Amount?: CurrencyAmount
  readonly SendMax?: CurrencyAmount
  readonly DeliverMin?: CurrencyAmount
  readonly SetFlag?: number
  readonly ClearFlag?: number
  readonly LimitAmount?: IssuedAmount
  readonly TakerPays?: CurrencyAmount
  readonly TakerGets?: CurrencyAmount
}

export type XrpTransaction = {
  /** Its hash, under which everybody finds it. */
  readonly id: string
  readonly fields: XrpFields
  readonly blob: string
  /** A trouble: charge the fee and fail with this `tec` code. */
  readonly failWith?: string
  /** Left out: it waits for as long as it may still get in. */
  readonly held?: Held
}

/** What a server holds of what it was handed: indexes of ledgers. */
export type Held = {
  /** The first ledger that it may be in. */
  readonly from: number
  /** The last one; it is forgotten with the next. */
  readonly until: number
  readonly isQueued?: true
}

const PREFIX_TRANSACTION = '54584E00' // TXN

/** Throws on bytes that are no transaction, are spelt in another way than the only right one, or are not signed by their key. */
export function decodeTransaction(blob: string): XrpTransaction {
  const fields = decode(blob) as unknown as XrpFields
  if (encode(fields) !== blob.toUpperCase()) throw new Error('fails local checks: not canonical')
  if (!isSigned(fields)) throw new Error('fails local checks: Invalid signature.')
  return { id: sha512Half(PREFIX_TRANSACTION, blob), fields, blob: blob.toUpperCase() }
}

function isSigned(fields: XrpFields): boolean {
  try {
    return verify(encodeForSigning(fields), fields.TxnSignature ?? '', fields.SigningPubKey)
  } catch {
    return false
  }
}
