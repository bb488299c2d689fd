import { type Fields, isObject, NoAnswer } from './rpc.ts'

/** What a reply must be, or it is no answer. `what` names it in the error: `getBlock blockhash`. */
export function textIn(value: unknown, what: string): string {
  if (typeof value !== 'string') throw new NoAnswer(what, 'it should be text')
  return value
}

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

export function objectIn(value: unknown, what: string): Fields {
  if (!isObject(value)) throw new NoAnswer(what, 'it should be an object')
  return value
}

export function listIn(value: unknown, what: string): readonly unknown[] {
  if (!Array.isArray(value)) throw new NoAnswer(what, 'it should be a list')
  return value
}

/** An answer that says of which slot it is. */
export function inContext(answer: unknown, what: string): { readonly slot: number; readonly value: unknown } {
  const { context, value } = objectIn(answer, what)
  return { slot: integerIn(objectIn(context, `${what} context`).slot, `${what} slot`), value }
}
