import type { Asset } from '@stellar/stellar-sdk/base'
import type { State } from '../simulated/state.ts'

/** https://developers.stellar.org/docs/learn/fundamentals/stellar-data-structures/accounts */
export type AccountEntry = Modified & {
  readonly type: 'account'
  readonly id: string
  /** In stroops. */
  readonly balance: bigint
  readonly sequence: bigint
  /** The ledger in which the sequence moved last. */
  readonly sequenceLedger: number
  /** Trust lines, offers and data entries. */
  readonly subentries: number
}

export type TrustLineEntry = Modified & {
  readonly type: 'trustline'
  readonly account: string
  readonly code: string
  readonly issuer: string
  readonly balance: bigint
  readonly limit: bigint
}

export type DataEntry = Modified & {
  readonly type: 'data'
  readonly account: string
  readonly name: string
  /** In base64. */
  readonly value: string
}

export type OfferEntry = Modified & {
  readonly type: 'offer'
  readonly id: bigint
  readonly seller: string
  /** `native`, or a code and its issuer. */
  readonly selling: string
  readonly buying: string
  /** Of what it sells. */
  readonly amount: bigint
  /** So many of what it buys for so many of what it sells. */
  readonly priceN: number
  readonly priceD: number
}

/** Not on a real ledger: under which hash a transaction is found that was wrapped up. */
export type BumpEntry = Modified & { readonly type: 'bump'; readonly id: string }

/** The ledger that changed the entry last. */
type Modified = { readonly ledger: number }

export type LedgerEntry = AccountEntry | TrustLineEntry | DataEntry | OfferEntry | BumpEntry

export function accountKey(id: string): string {
  return `account:${id}`
}

export function trustLineKey(
  account: string,
  { code, issuer }: { code: string; issuer?: string | undefined },
): string {
  return `trustline:${account}:${code}:${issuer}`
}

export function dataKey(account: string, name: string): string {
  return `data:${account}:${name}`
}

export function offerKey(id: bigint): string {
  return `offer:${id}`
}

export function bumpKey(innerId: string): string {
  return `bump:${innerId}`
}

export function readAccount(state: State<LedgerEntry>, id: string): AccountEntry | undefined {
  return state.get(accountKey(id)) as AccountEntry | undefined
}

export function readTrustLine(
  state: State<LedgerEntry>,
  account: string,
  asset: Asset,
): TrustLineEntry | undefined {
  return state.get(trustLineKey(account, asset)) as TrustLineEntry | undefined
}

export function readOwned<Type extends 'trustline' | 'data'>(
  state: State<LedgerEntry>,
  type: Type,
  account: string,
) {
  const entries = state.keys(`${type}:${account}:`).map((key) => state.get(key))
  return entries.filter((entry) => entry !== undefined) as Extract<LedgerEntry, { type: Type }>[]
}

/** `1.5` is 15,000,000 stroops; seven decimals at most, whatever the asset. */
export function parseAmount(text: string): bigint {
  const [, sign, whole = '', fraction = ''] = /^(-?)(\d+)(?:\.(\d{1,7}))?$/.exec(text) ?? []
  const units = BigInt(whole + fraction.padEnd(7, '0'))
  return sign === '-' ? -units : units
}

export function formatAmount(units: bigint): string {
  const digits = units.toString().padStart(8, '0')
  return `${digits.slice(0, -7)}.${digits.slice(-7)}`
}
