import { readersOf } from '../replies.ts'
import { NoAnswer } from './rpc.ts'

export const { listIn, objectIn, textIn } = readersOf(NoAnswer)

/** 32 bytes in uppercase hex, as the ledger writes its hashes. */
export function hashIn(value: unknown, what: string): string {
  const text = textIn(value, what).toUpperCase()
  if (!/^[0-9A-F]{64}$/.test(text)) throw new NoAnswer(what, 'it should be 64 hexadecimal digits')
  return text
}

/** Some replies write a ledger's index as a number and some as text. */
export function integerIn(value: unknown, what: string): number {
  const number = typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number.parseInt(value, 10) : value
  if (typeof number !== 'number' || !Number.isSafeInteger(number))
    throw new NoAnswer(what, 'it should be a whole number')
  return number
}

/** There are 100 billion XRP, of a million drops each, which is 10^17. */
export function dropsIn(value: unknown, what: string): bigint {
  const text = typeof value === 'number' ? String(value) : value
  if (typeof text !== 'string' || !/^\d{1,18}$/.test(text))
    throw new NoAnswer(what, 'it should be an amount of drops')
  return BigInt(text)
}
