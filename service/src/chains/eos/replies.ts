import { type Fields, isObject, NoAnswer } from './rpc.ts'

/** What a reply must be, or it is no answer. `what` names it in the error: `block id`. */
export function textIn(value: unknown, what: string): string {
  if (typeof value !== 'string') throw new NoAnswer(what, 'it should be text')
  return value
}

/** 32 bytes in lowercase hex. */
export function hashIn(value: unknown, what: string): string {
  const text = textIn(value, what).toLowerCase()
  if (!/^[0-9a-f]{64}$/.test(text)) throw new NoAnswer(what, 'it should be 64 hexadecimal digits')
  return text
}

export function integerIn(value: unknown, what: string): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value))
    throw new NoAnswer(what, 'it should be a whole number')
  return value
}

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

export function objectIn(value: unknown, what: string): Fields {
  if (!isObject(value)) throw new NoAnswer(what, 'it should be an object')
  return value
}

export function listIn(value: unknown, what: string): readonly unknown[] {
  if (!Array.isArray(value)) throw new NoAnswer(what, 'it should be a list')
  return value
}
