import type { State } from '../simulated/state.ts'
import type { VmAccount } from './vm_messages.ts'

export type Account = VmAccount
/** The block that a blockhash names: transactions refer to one that is not too old. */
type Reference = { readonly height: number }
type Seen = { readonly height: number }

export type SolanaEntry = Account | Reference | Seen
export type SolanaState = State<SolanaEntry>

export const keys = {
  account: (address: string) => `account:${address}`,
  reference: (blockhash: string) => `reference:${blockhash}`,
  seen: (signature: string) => `seen:${signature}`,
}

export const readAccount = (state: SolanaState, address: string) =>
  state.get(keys.account(address)) as Account | undefined
export const readReference = (state: SolanaState, blockhash: string) =>
  (state.get(keys.reference(blockhash)) as Reference | undefined)?.height
export const isSeen = (state: SolanaState, signature: string) => state.get(keys.seen(signature)) !== undefined
