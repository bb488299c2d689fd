import { readersOf } from '../replies.ts'
import { NoAnswer } from './rpc.ts'

export const { listIn, objectIn, textIn } = readersOf(NoAnswer)

export function integerIn(value: unknown, what: string): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0)
    throw new NoAnswer(what, 'it should be a whole number')
  return value
}

/** Beyond 2^53 (nine million SOL) JavaScript does not read a number as it was written, and nothing of ours is that much. */
export function lamportsIn(value: unknown, what: string): bigint {
  return BigInt(integerIn(value, what))
}

/** Units of a token come as text. */
export function unitsIn(value: unknown, what: string): bigint {
  const text = textIn(value, what)
  if (!/^\d{1,20}$/.test(text)) throw new NoAnswer(what, 'it should be a number of units')
  return BigInt(text)
}

/** An answer that says of which slot it is. */
export function inContext(answer: unknown, what: string): { readonly slot: number; readonly value: unknown } {
  const { context, value } = objectIn(answer, what)
  return { slot: integerIn(objectIn(context, `${what} context`).slot, `${what} slot`), value }
}
