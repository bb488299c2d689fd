import type { OtherMove } from '../../db/outflows.ts'
import type { SignRejection } from '../../signer/signer.ts'

/** What a step of an outflow came to: when to look again, and what stands in the way, if anything does. */
export type Progress =
  | { readonly kind: 'done' }
  /**
   * `atHeight`: not before this block, or the next one, was looked at; what a chain decides changes with a block. `isDraft`: its
   * first transaction was drafted in this very step.
   */
  | {
      readonly kind: 'again'
      readonly inMs: number
      readonly atHeight?: number | 'next'
      readonly isDraft?: boolean
    }
  /**
   * `refusal`: why the signer would not sign an attempt of it, in this very step. `unjudged`: what only a person can judge.
   * `isPayeeRefused`: a node says that its payee cannot be paid.
   */
  | {
      readonly kind: 'trouble'
      readonly message: string
      readonly inMs: number
      readonly refusal?: SignRejection['code']
      readonly unjudged?: OtherMove
      readonly isPayeeRefused?: boolean
    }

const AFTER_TROUBLE_MS = 2_000

/** What it waits for before it is signed may be over soon. */
export function troubled(message: string): Progress & { readonly kind: 'trouble' } {
  return { kind: 'trouble', message, inMs: AFTER_TROUBLE_MS }
}
