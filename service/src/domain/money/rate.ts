import { assert } from '../assert.ts'
import { type AssetId, assetOf } from '../catalog/assets.ts'
import { type Amount, amountOf } from './amount.ts'
import { divide, formatDecimal, powerOfTen, type Rounding } from './decimal.ts'

/** Ledger units of `quote` for one ledger unit of `base`, as an exact fraction. */
export type Rate = {
  readonly base: AssetId
  readonly quote: AssetId
  readonly numerator: bigint
  readonly denominator: bigint
  /** The decimal it was made of, where it was made of one to be shown: the same value, ready to be written. */
  readonly shown?: WholeRate
}

/** A decimal `digits × 10^-scale` in whole units of quote for one whole unit of base. */
type WholeRate = { readonly digits: bigint; readonly scale: number }

/** What a JSON number carries to every client without loss (docs/decisions/0009). */
const SIGNIFICANT_DIGITS = 15

export function convert(amount: Amount, rate: Rate, rounding: Rounding): Amount {
  assert(amount.asset === rate.base, 'the rate is for this asset')
  return amountOf(rate.quote, divide(amount.units * rate.numerator, rate.denominator, rounding))
}

/** How much of `base` it takes: the other direction of `convert`. */
export function convertBack(amount: Amount, rate: Rate, rounding: Rounding): Amount {
  assert(amount.asset === rate.quote, 'the rate is for this asset')
  return amountOf(rate.base, divide(amount.units * rate.denominator, rate.numerator, rounding))
}

/**
 * The rate at which `from` becomes `to`, cut or raised to 15 significant digits so that it can be shown whole.
 * `likelyScale` is that of a rate nearby (`scaleOf`): it saves looking for the first digit, and changes nothing.
 */
export function rateBetween(from: Amount, to: Amount, rounding: Rounding, likelyScale?: number): Rate {
  assert(from.units > 0n, 'a rate is of something')
  const likely = likelyScale === undefined ? null : roundAtScale(from, to, rounding, likelyScale)
  const shown = likely ?? roundRate(from, to, rounding)
  return { ...rateFromWhole(from.asset, to.asset, shown), shown }
}

/** How many decimals the rate has when it is shown with all its digits. */
export function scaleOf(rate: Rate): number {
  return wholeOf(rate).scale
}

/** Null: it is not certain that the rate has 15 digits with so many decimals, because 10^14 may be a smaller number rounded up. */
function roundAtScale(from: Amount, to: Amount, rounding: Rounding, scale: number): WholeRate | null {
  const exponent = assetOf(from.asset).decimals - assetOf(to.asset).decimals + scale
  if (scale < 0 || exponent < 0) return null
  const digits = divide(to.units * powerOfTen(exponent), from.units, rounding)
  const isFull = digits > powerOfTen(SIGNIFICANT_DIGITS - 1) && digits < powerOfTen(SIGNIFICANT_DIGITS)
  return isFull ? { digits, scale } : null
}

function roundRate(from: Amount, to: Amount, rounding: Rounding): WholeRate {
  const numerator = to.units * powerOfTen(assetOf(from.asset).decimals)
  const denominator = from.units * powerOfTen(assetOf(to.asset).decimals)
  return roundSignificant(numerator, denominator, rounding)
}

function roundSignificant(numerator: bigint, denominator: bigint, rounding: Rounding): WholeRate {
  if (numerator === 0n) return { digits: 0n, scale: 0 }
  const limit = powerOfTen(SIGNIFICANT_DIGITS)
  const wholeDigits = numerator >= denominator ? (numerator / denominator).toString().length : 0
  let scale = SIGNIFICANT_DIGITS - wholeDigits
  // Below one, leading zeros do not count as significant: move on until the first digit stands in front.
  if (wholeDigits === 0) {
    while (divide(numerator * powerOfTen(scale + 1), denominator, 'up') <= limit) scale += 1
  }
  if (scale < 0) {
    const unit = powerOfTen(-scale)
    return { digits: divide(numerator, denominator * unit, rounding) * unit, scale: 0 }
  }
  return { digits: divide(numerator * powerOfTen(scale), denominator, rounding), scale }
}

function rateFromWhole(base: AssetId, quote: AssetId, whole: WholeRate): Rate {
  return {
    base,
    quote,
    numerator: whole.digits * powerOfTen(assetOf(quote).decimals),
    denominator: powerOfTen(whole.scale + assetOf(base).decimals),
  }
}

/** The text that `showRate` gave, back to the same rate. */
export function parseRate(base: AssetId, quote: AssetId, text: string): Rate {
  const match = /^(\d{1,60})(?:\.(\d{1,60}))?$/.exec(text)
  assert(match !== null, `a stored rate is a plain decimal, not ${text}`)
  const [, whole = '', fraction = ''] = match
  return rateFromWhole(base, quote, { digits: BigInt(whole + fraction), scale: fraction.length })
}

/** Whole units of quote for one whole unit of base, as a plain decimal with at most 15 significant digits. */
export function showRate(rate: Rate): string {
  const { digits, scale } = rate.shown ?? wholeOf(rate)
  return formatDecimal(digits, scale)
}

function wholeOf(rate: Rate): WholeRate {
  const numerator = rate.numerator * powerOfTen(assetOf(rate.base).decimals)
  const denominator = rate.denominator * powerOfTen(assetOf(rate.quote).decimals)
  return roundSignificant(numerator, denominator, 'down')
}
