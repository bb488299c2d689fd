import type { Draft } from '../simulated/state.ts'
import type { Action } from './decode_transaction.ts'
import type { EosEntry } from './entries.ts'

/** What a contract sees when it runs: for an action of its own, or because another contract tells it of one. */
export type Scene = {
  readonly draft: Draft<EosEntry>
  /** Whose code runs. Its own action when this is `action.account`, otherwise a notification. */
  readonly receiver: string
  readonly action: Action
  readonly timeMs: number
  /** What the action says, by the ABI of its account. */
  params(): Readonly<Record<string, unknown>>
  requireAuth(actor: string): void
  /** `require_recipient`: who is told of this action runs too, once, and stands in the trace. */
  notify(account: string): void
  /** Another action, after this one and all who are told of it. */
  inline(action: Action): void
}
