import { parseDecimal } from '../../domain/money/decimal.ts'
import { isObject, NoAnswer } from './rpc.ts'

/** What a reply must be, or it is no answer. `what` names it in the error: `getblockheader height`. */
export function textIn(value: unknown, what: string): string {
  if (typeof value !== 'string') throw new NoAnswer(what, 'it should be text')
  return value
}

export function integerIn(value: unknown, what: string): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value)) {
    throw new NoAnswer(what, 'it should be a whole number')
  }
  return value
}

export function objectIn(value: unknown, what: string): Record<string, unknown> {
  if (!isObject(value)) throw new NoAnswer(what, 'it should be an object')
  return value
}

export function listIn(value: unknown, what: string): readonly unknown[] {
  if (!Array.isArray(value)) throw new NoAnswer(what, 'it should be a list')
  return value
}

export function textsIn(value: unknown, what: string): readonly string[] {
  return listIn(value, what).map((item) => textIn(item, what))
}

/** A bitcoin amount of a reply, in satoshi; exact, out of its source text. */
export function satoshiIn(value: unknown, what: string): bigint {
  const text = typeof value === 'number' ? String(value) : value
  const parsed = typeof text === 'string' ? parseDecimal(text, 8) : null
  if (!parsed?.ok) throw new NoAnswer(what, 'it should be an amount of bitcoin')
  return parsed.value
}
