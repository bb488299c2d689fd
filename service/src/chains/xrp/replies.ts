import { type Fields, isObject, NoAnswer } from './rpc.ts'

/** What a reply must be, or it is no answer. `what` names it in the error: `ledger close_time`. */
export function textIn(value: unknown, what: string): string {
  if (typeof value !== 'string') throw new NoAnswer(what, 'it should be text')
  return value
}

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

export function objectIn(value: unknown, what: string): Fields {
  if (!isObject(value)) throw new NoAnswer(what, 'it should be an object')
  return value
}

export function listIn(value: unknown, what: string): readonly unknown[] {
  if (!Array.isArray(value)) throw new NoAnswer(what, 'it should be a list')
  return value
}

/** There are 100 billion XRP, of a million drops each, which is 10^17. */
export function dropsIn(value: unknown, what: string): bigint {
  const text = typeof value === 'number' ? String(value) : value
  if (typeof text !== 'string' || !/^\d{1,18}$/.test(text))
    throw new NoAnswer(what, 'it should be an amount of drops')
  return BigInt(text)
}
