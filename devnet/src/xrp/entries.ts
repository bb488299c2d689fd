import { createHash } from 'node:crypto'
import { decodeAccountID } from 'ripple-address-codec'
import type { State } from '../simulated/state.ts'

/** https://xrpl.org/docs/references/protocol/ledger-data/ledger-entry-types/accountroot */
export type AccountRoot = Threaded & {
  readonly LedgerEntryType: 'AccountRoot'
  readonly Account: string
  /** In drops: a millionth of an XRP. */
  readonly Balance: string
  readonly Flags: number
  readonly OwnerCount: number
  readonly Sequence: number
}

/** What two accounts owe each other in one currency: positive is what the low one holds of the high one. */
export type RippleState = Threaded & {
  readonly LedgerEntryType: 'RippleState'
  readonly Balance: IssuedAmount
  readonly LowLimit: IssuedAmount
  readonly HighLimit: IssuedAmount
  readonly Flags: number
}

/** Sells XRP for what somebody issued. */
export type Offer = Threaded & {
  readonly LedgerEntryType: 'Offer'
  readonly Account: string
  readonly Sequence: number
  readonly TakerPays: IssuedAmount
  readonly TakerGets: string
  readonly Flags: number
}

/** The last transaction that changed the entry. */
type Threaded = { readonly PreviousTxnID?: string; readonly PreviousTxnLgrSeq?: number }

export type LedgerEntry = AccountRoot | RippleState | Offer
export type IssuedAmount = { readonly currency: string; readonly issuer: string; readonly value: string }
/** Drops, or what somebody issued. */
export type CurrencyAmount = string | IssuedAmount

/** https://xrpl.org/docs/references/protocol/ledger-data/ledger-entry-types/accountroot#accountroot-flags */
export const accountFlags = {
  requireDestTag: 0x0002_0000,
  disallowXrp: 0x0008_0000,
  defaultRipple: 0x0080_0000,
  depositAuth: 0x0100_0000,
} as const

/** The index of an entry is a hash of what it is about, and the key of our state is its type and index. */
export function accountKey(account: string): string {
  return `AccountRoot:${sha512Half('0061', hexOf(account))}`
}

export function lineKey(one: string, other: string, currency: string): string {
  const ends = [hexOf(one), hexOf(other)].sort()
  return `RippleState:${sha512Half('0072', ...ends, currencyHex(currency))}`
}

export function offerKey(account: string, sequence: number): string {
  return `Offer:${sha512Half('006F', hexOf(account), sequence.toString(16).padStart(8, '0'))}`
}

export function readAccount(state: State<LedgerEntry>, account: string): AccountRoot | undefined {
  return state.get(accountKey(account)) as AccountRoot | undefined
}

export function readAll<Type extends LedgerEntry['LedgerEntryType']>(state: State<LedgerEntry>, type: Type) {
  return state.keys(`${type}:`).flatMap((key) => {
    const entry = state.get(key)
    return entry === undefined
      ? []
      : [{ key, entry: entry as Extract<LedgerEntry, { LedgerEntryType: Type }> }]
  })
}

/** The lower of two accounts comes first in everything they share. */
export function isLower(account: string, other: string): boolean {
  return hexOf(account) < hexOf(other)
}

export function sha512Half(...hex: readonly string[]): string {
  return createHash('sha512')
    .update(Buffer.from(hex.join(''), 'hex'))
    .digest('hex')
    .slice(0, 64)
    .toUpperCase()
}

function hexOf(account: string): string {
  return Buffer.from(decodeAccountID(account)).toString('hex')
}

/** Three letters, or any 20 bytes: also such that look like three letters. */
function currencyHex(currency: string): string {
  if (currency.length === 40) return currency
  return `${'00'.repeat(12)}${Buffer.from(currency, 'ascii').toString('hex')}${'00'.repeat(5)}`
}
