import type { State } from '../simulated/state.ts'
import type { AbiEntry } from './messages.ts'

export type Account = {
  readonly address: string
  /** In sun: a millionth of a TRX. */
  readonly balance: bigint
  readonly createdAtMs: number
  /** Bytes of free bandwidth that were used, as of then; they come back within a day. */
  readonly bandwidth: { readonly used: bigint; readonly atMs: number }
  /** TRC-10: what it holds of each, by the number of the token. */
  readonly assets: Readonly<Record<string, bigint>>
}

export type Contract = {
  readonly address: string
  readonly origin: string
  readonly name: string
  readonly abi: readonly AbiEntry[]
  /** As it was deployed, with its constructor. */
  readonly bytecode: string
  /** As it is run. */
  readonly code: string
}

/** A TRC-10 token: anybody may issue one, under any name. */
export type Asset = {
  readonly id: string
  readonly name: string
  readonly owner: string
  readonly supply: bigint
}

type Slot = { readonly value: string }
type Reference = { readonly hash: string }
type Seen = { readonly height: number }
/** What a transaction may know of the block before. */
export type Head = { readonly timeMs: number }

export type TronEntry = Account | Contract | Asset | Slot | Reference | Seen | Head
export type TronState = State<TronEntry>

export const keys = {
  account: (address: string) => `account:${address}`,
  contract: (address: string) => `contract:${address}`,
  slot: (address: string, key: string) => `slot:${address}:${key}`,
  asset: (id: string) => `asset:${id}`,
  /** By the middle bytes of a block's number, of which a transaction names one not too old. */
  reference: (refBlockBytes: string) => `reference:${refBlockBytes}`,
  seen: (id: string) => `seen:${id}`,
  head: 'head',
}

export const readAccount = (state: TronState, address: string) =>
  state.get(keys.account(address)) as Account | undefined
export const readContract = (state: TronState, address: string) =>
  state.get(keys.contract(address)) as Contract | undefined
export const readAsset = (state: TronState, id: string) => state.get(keys.asset(id)) as Asset | undefined
export const readSlot = (state: TronState, address: string, key: string) =>
  (state.get(keys.slot(address, key)) as Slot | undefined)?.value ?? ''
export const readReference = (state: TronState, refBlockBytes: string) =>
  (state.get(keys.reference(refBlockBytes)) as Reference | undefined)?.hash
export const isSeen = (state: TronState, id: string) => state.get(keys.seen(id)) !== undefined
export const readHead = (state: TronState) => state.get(keys.head) as Head | undefined

export function newAccount(address: string, balance: bigint, createdAtMs: number): Account {
  return { address, balance, createdAtMs, bandwidth: { used: 0n, atMs: createdAtMs }, assets: {} }
}
