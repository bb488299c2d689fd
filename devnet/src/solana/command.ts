import type { View } from '../simulated/chain.ts'
import type { Stage } from '../simulated/simulated_network.ts'
import { Undecodable } from './decode_transaction.ts'
import { FINAL_DEPTH, type Solana, slotOf } from './rules.ts'
import type { Vm } from './vm.ts'

export type Options = Readonly<Record<string, unknown>>
export type SolanaNode = Stage<Solana> & { readonly vm: Vm; readonly genesisHash: string }

/** https://solana.com/docs/rpc#json-structures: what a node says when it does not answer. */
export class CommandError extends Error {
  readonly code: number
  readonly data: unknown
  constructor(code: number, message: string, data?: unknown) {
    super(message)
    this.code = code
    this.data = data
  }
}

/** The newest block, or the newest that is final. What is confirmed is the newest here, too: nobody votes. */
export function viewOf(node: SolanaNode, options: Options): View<Solana> {
  const view = node.told()
  const commitment = options.commitment ?? 'finalized'
  if (commitment !== 'finalized') return view
  return node.chain.view(Math.max(0, view.head.height - FINAL_DEPTH))
}

export function contextOf(view: View<Solana>) {
  return { apiVersion: '4.1.2', slot: slotOf(view.head.height) }
}

export function inContext(view: View<Solana>, value: unknown) {
  return { context: contextOf(view), value }
}

export function optionsIn(value: unknown): Options {
  return typeof value === 'object' && value !== null ? (value as Options) : {}
}

export function textIn(value: unknown, what: string): string {
  if (typeof value !== 'string') throw new CommandError(-32602, `Invalid params: ${what} is no text`)
  return value
}

export function numberIn(value: unknown, what: string): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0)
    throw new CommandError(-32602, `Invalid params: ${what} is no number`)
  return value
}

export function textsIn(value: unknown, what: string, most: number): readonly string[] {
  if (!Array.isArray(value) || value.length > most)
    throw new CommandError(-32602, `Invalid params: ${what} is no list of at most ${most}`)
  return value.map((each) => textIn(each, what))
}

export function readable<Value>(read: () => Value): Value {
  try {
    return read()
  } catch (error) {
    if (error instanceof Undecodable) throw new CommandError(-32602, error.message)
    throw error
  }
}
