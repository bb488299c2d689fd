import { readersOf } from '../replies.ts'
import { NoAnswer } from './rpc.ts'

export const { hashIn, integerIn, listIn, objectIn, textIn } = readersOf(NoAnswer)

/** Whole numbers beyond 32 bits are written as text. */
export function numeralIn(value: unknown, what: string): string {
  const text = typeof value === 'number' ? String(value) : value
  if (typeof text !== 'string' || !/^\d{1,20}$/.test(text))
    throw new NoAnswer(what, 'it should be a whole number')
  return text
}

/** `1.0000 EOS` is 10000. */
export function unitsIn(value: unknown, what: string): bigint {
  const [, whole, fraction] = /^(\d{1,15})\.(\d{4}) EOS$/.exec(textIn(value, what)) ?? []
  if (whole === undefined || fraction === undefined)
    throw new NoAnswer(what, 'it should be EOS with four decimals')
  return BigInt(whole + fraction)
}

/** Written without a zone; it means UTC. */
export function timeMsIn(value: unknown, what: string): number {
  const text = textIn(value, what)
  const ms = Date.parse(text.endsWith('Z') ? text : `${text}Z`)
  if (Number.isNaN(ms)) throw new NoAnswer(what, 'it should be a time')
  return ms
}
