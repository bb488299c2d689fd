import type { ToldSecret } from '../../../src/accounts/keys.ts'
import type { Answer } from '../../../src/http/testing/answer.ts'
import type { Chance } from '../../harness/chance.ts'
import type { KnownExchange } from './known_exchange.ts'
import type { Expected, Form } from './request.ts'

/** A request that is right, what has to come of it, and what its answer teaches. */
export type Right = {
  readonly what: string
  readonly form: Omit<Form, 'operation'>
  readonly expected: Expected
  readonly signer: ToldSecret | null
  /** It was done. */
  learn?(answer: Answer): void
  /** It was spoiled, and refused. */
  letGo?(): void
  /** What can only be done right after this has been: nothing waits for a block for long. */
  followUp?(answer: Answer): { readonly operation: string; readonly right: Right }
}

export type Maker = (known: KnownExchange, chance: Chance) => Right

/** How often each operation is asked for, and a right request for it. */
export type Makers = Readonly<Record<string, { readonly share: number; readonly make: Maker }>>

type Parts = Partial<Right['form']>

export function plain(what: string, parts: Parts, more: Partial<Right> = {}): Right {
  const form = { path: {}, query: [], body: [], headers: [], ...parts }
  return { what, expected: 'success', signer: null, ...more, form }
}

const KEPT_MAX = 400

export function note<Value>(list: Value[], value: Value): void {
  list.push(value)
  if (list.length > KEPT_MAX) list.shift()
}
