import { parseDecimal } from '../../domain/money/decimal.ts'
import { readersOf } from '../replies.ts'
import { NoAnswer } from './rpc.ts'

export const { integerIn, listIn, objectIn, textIn } = readersOf(NoAnswer)

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
