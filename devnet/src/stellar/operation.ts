import type { OperationRecord } from '@stellar/stellar-sdk/base'
import type { Draft } from '../simulated/state.ts'
import type { LedgerEntry } from './entries.ts'
import type { KnownType } from './results.ts'

export type Of<Type extends KnownType> = Extract<OperationRecord, { type: Type }>

/** What an operation works with. */
export type Scene = {
  readonly draft: Draft<LedgerEntry>
  /** The account, without what is muxed into its address. */
  readonly source: string
  readonly height: number
}
