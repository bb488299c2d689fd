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
