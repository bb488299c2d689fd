import { assert } from '../assert.ts'
import { accept, type Outcome, refuse } from '../outcome.ts'

/** Rounding has no default: what we pay is rounded down, what we ask is rounded up. */
export type Rounding = 'down' | 'up'

/** numerator / denominator to a whole number; both must not be negative. */
export function divide(numerator: bigint, denominator: bigint, rounding: Rounding): bigint {
  assert(numerator >= 0n && denominator > 0n, 'a division of money is of non-negative by positive')
  const floor = numerator / denominator
  return rounding === 'down' || floor * denominator === numerator ? floor : floor + 1n
}

/** Worked out once: raising is a third of the cost of a quote otherwise. */
const POWERS_OF_TEN = Array.from({ length: 100 }, (_, exponent) => 10n ** BigInt(exponent))

/** 10 to the power of `exponent`. */
export function powerOfTen(exponent: number): bigint {
  return POWERS_OF_TEN[exponent] ?? 10n ** BigInt(exponent)
}

/**
 * A plain decimal (`12`, `0.05`) to units of 10^-decimals.
 * More decimals than that is a rejection: rounding would change what was asked.
 */
export function parseDecimal(text: string, decimals: number): Outcome<bigint> {
  const match = /^(\d{1,60})(?:\.(\d{1,60}))?$/.exec(text)
  if (match === null) {
    return refuse({ code: 'decimal_malformed', message: 'must be a plain decimal number such as 0.05' })
  }
  const [, whole = '', fraction = ''] = match
  if (fraction.length > decimals) {
    return refuse({ code: 'decimal_too_fine', message: `must have at most ${decimals} decimals` })
  }
  return accept(BigInt(whole + fraction.padEnd(decimals, '0')))
}

/** Units of 10^-decimals as the shortest plain decimal: no exponent, no trailing zeros. */
export function formatDecimal(units: bigint, decimals: number): string {
  const isNegative = units < 0n
  const digits = (isNegative ? -units : units).toString().padStart(decimals + 1, '0')
  const point = digits.length - decimals
  let end = digits.length
  while (end > point && digits[end - 1] === '0') end -= 1
  const whole = (isNegative ? '-' : '') + digits.slice(0, point)
  return end === point ? whole : `${whole}.${digits.slice(point, end)}`
}
