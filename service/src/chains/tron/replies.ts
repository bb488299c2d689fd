import { isObject, readersOf } from '../replies.ts'
import { NoAnswer } from './rpc.ts'

export const { hashIn, objectIn, textIn } = readersOf(NoAnswer)

/** 41 and 20 bytes in lowercase hex, as a node writes addresses unless it is asked for base58. */
export function addressIn(value: unknown, what: string): string {
  const text = textIn(value, what).toLowerCase()
  if (!/^41[0-9a-f]{40}$/.test(text)) throw new NoAnswer(what, 'it should be an address')
  return text
}

/** What is zero is left out of the JSON. */
export function integerIn(value: unknown, what: string): number {
  if (value === undefined) return 0
  if (typeof value !== 'number' || !Number.isSafeInteger(value))
    throw new NoAnswer(what, 'it should be a whole number')
  return value
}

/** Beyond 2^53 (nine billion TRX) JavaScript does not read a number as it was written, and nothing of ours is that much. */
export function sunIn(value: unknown, what: string): bigint {
  const sun = BigInt(integerIn(value, what))
  if (sun < 0n) throw new NoAnswer(what, 'it should not be negative')
  return sun
}

/**
 * Units of a TRC-10 token. Whoever makes one says how many there are, up to 2^63 - 1, and pays anybody with them: beyond 2^53 this
 * is as near as JSON tells it, because none of them is ever booked, and a block without an answer would stop everything after it.
 */
export function strangeUnitsIn(value: unknown, what: string): bigint {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 0)
    throw new NoAnswer(what, 'it should be a whole number')
  return BigInt(value)
}

/** What is empty is left out of the JSON. */
export function listIn(value: unknown, what: string): readonly unknown[] {
  if (value === undefined) return []
  if (!Array.isArray(value)) throw new NoAnswer(what, 'it should be a list')
  return value
}

/** Nothing is there: java-tron says so with an object that has nothing in it. */
export function isEmpty(value: unknown): boolean {
  return isObject(value) && Object.keys(value).length === 0
}
