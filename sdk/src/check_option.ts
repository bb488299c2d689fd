/** Throws `TypeError` where an option is no time, such as the number of a setting that is missing. `Infinity` is one. */
export function checkMs(name: string, given: number, least: 'from 0' | 'above 0'): void {
  if (least === 'above 0' ? given > 0 : given >= 0) return
  const rule = least === 'above 0' ? 'above 0' : '0 or more'
  throw new TypeError(`${name} must be a number of milliseconds, ${rule}, not ${given}`)
}

/** Throws `TypeError` where an option is no number of times. `Infinity` is one. */
export function checkTimes(name: string, given: number): void {
  if (given >= 0 && (Number.isInteger(given) || given === Number.POSITIVE_INFINITY)) return
  throw new TypeError(`${name} must be a whole number, 0 or more, not ${given}`)
}

/** What the service takes as an Idempotency-Key: openapi.json. */
export const idempotencyKeyRule = /^[A-Za-z0-9_-]{1,64}$/

/** Throws `TypeError` for a key that the service does not take, or of which a header would make another one. */
export function checkIdempotencyKey(given: unknown): void {
  if (typeof given === 'string' && idempotencyKeyRule.test(given)) return
  const said = JSON.stringify(given) ?? String(given)
  throw new TypeError(`idempotencyKey must be text of 1 to 64 letters, digits, - and _, not ${said}`)
}
