import { assert } from '../assert.ts'
import { type Asset, assetOf } from '../catalog/assets.ts'
import { type Amount, amountOf, toPrecision } from '../money/amount.ts'
import { divide, powerOfTen, type Rounding } from '../money/decimal.ts'
import { convert, convertBack, type Rate, rateBetween, scaleOf } from '../money/rate.ts'
import { accept, type Outcome, refuse } from '../outcome.ts'

export type RateType = 'fixed' | 'float'

/** 1 % is 100. */
export type BasisPoints = bigint

export const WHOLE_BASIS_POINTS = 10_000n

/** Everything a quote depends on, gathered at one moment. */
export type Market = {
  readonly from: Asset
  readonly to: Asset
  /** Without any fee: what one asset is worth in the other. */
  readonly mid: Rate
  readonly fee: BasisPoints
  /** What the payout costs us, in the destination asset, to its precision. */
  readonly networkFee: Amount
  /** What we could pay out of the destination asset now. */
  readonly reserve: Amount
}

export type Quote = {
  readonly from: Amount
  readonly to: Amount
  /** All-in: `to = from × rate` to rounding (docs/api.md, Quotes). At most 15 significant digits. */
  readonly rate: Rate
  /** `fee` basis points of `to`, in the destination asset, already inside the rate. */
  readonly fee: Amount
  readonly networkFee: Amount
}

/** The least and the most, in the asset in which the amount was given. */
export type Range = { readonly min: Amount; readonly max: Amount }

export type RangeRejection = { readonly code: 'amount_out_of_range'; readonly range: Range }

/** The mid rate of two assets from their prices in the same money and scale. */
export function midRate(from: Asset, to: Asset, fromPrice: bigint, toPrice: bigint): Rate {
  assert(fromPrice > 0n && toPrice > 0n, 'a price is positive')
  return {
    base: from.id,
    quote: to.id,
    numerator: fromPrice * powerOfTen(to.decimals),
    denominator: toPrice * powerOfTen(from.decimals),
  }
}

/** A share of an amount, to the interface's precision. */
export function shareOf(amount: Amount, share: BasisPoints, rounding: Rounding): Amount {
  const { step } = assetOf(amount.asset)
  return amountOf(amount.asset, divide(amount.units * share, WHOLE_BASIS_POINTS * step, rounding) * step)
}

/** What every quote on a market needs again. */
type Groundwork = {
  readonly range: Range
  /** What `from` brings is (from × factor − cost) / divisor steps of what is shown, rounded down. */
  readonly factor: bigint
  readonly cost: bigint
  readonly divisor: bigint
  /** Of the mid rate: most rates on this market have the same. */
  readonly rateScale: number
}

const groundworks = new WeakMap<Market, Groundwork>()

/** Worked out once a market: quotes are asked for many times more often than markets change. */
function groundworkOf(market: Market): Groundwork {
  const known = groundworks.get(market)
  if (known !== undefined) return known
  const { mid, fee, networkFee, to } = market
  const groundwork = {
    range: findSourceRange(market),
    factor: mid.numerator * WHOLE_BASIS_POINTS,
    cost: networkFee.units * mid.denominator * WHOLE_BASIS_POINTS,
    divisor: mid.denominator * (WHOLE_BASIS_POINTS + fee) * to.step,
    rateScale: scaleOf(mid),
  }
  groundworks.set(market, groundwork)
  return groundwork
}

/**
 * What `from` brings after the fee and the network's cost, rounded down to the precision; may be zero.
 * One exact fraction and one rounding: a second one would cost the customer a unit.
 */
export function payoutFor(market: Market, from: Amount): Amount {
  const { mid, to } = market
  assert(from.asset === mid.base, 'the market is for this asset')
  const { factor, cost, divisor } = groundworkOf(market)
  const net = from.units * factor - cost
  return amountOf(to.id, net <= 0n ? 0n : divide(net, divisor, 'down') * to.step)
}

/** The least that has to be sent so that `to` can be paid: `payoutFor` the other way, rounded up to the precision. */
export function depositFor({ mid, fee, networkFee, from }: Market, to: Amount): Amount {
  assert(to.asset === mid.quote, 'the market is for this asset')
  const gross = to.units * (WHOLE_BASIS_POINTS + fee) + networkFee.units * WHOLE_BASIS_POINTS
  const units = divide(gross * mid.denominator, mid.numerator * WHOLE_BASIS_POINTS, 'up')
  return toPrecision(amountOf(from.id, units), 'up')
}

/** `amount` is in the source asset (`from`) or in the destination asset (`to`). */
export function quote(
  market: Market,
  direction: 'from' | 'to',
  amount: Amount,
): Outcome<Quote, RangeRejection> {
  const range = direction === 'from' ? sourceRange(market) : destinationRange(market)
  assert(amount.asset === range.min.asset, 'the amount is in the asset that the direction says')
  if (amount.units < range.min.units || amount.units > range.max.units) {
    return refuse({ code: 'amount_out_of_range', range })
  }
  return accept(
    direction === 'from'
      ? priced(market, amount, payoutFor(market, amount))
      : priced(market, depositFor(market, amount), amount),
  )
}

/** The quote without limits: for what has been received already. Null when it would pay nothing. */
export function quoteReceived(market: Market, from: Amount): Quote | null {
  const to = payoutFor(market, from)
  return to.units < market.to.minPayout ? null : priced(market, from, to)
}

function priced(market: Market, from: Amount, to: Amount): Quote {
  return {
    from,
    to,
    // Raised, so that from × rate reaches `to` again; less than one unit of precision above it.
    rate: rateBetween(from, to, 'up', groundworkOf(market).rateScale),
    fee: shareOf(to, market.fee, 'up'),
    networkFee: market.networkFee,
  }
}

/** A rate that was promised for the amount asked, and what is inside it. */
export type Locked = {
  readonly asks: Amount
  readonly rate: Rate
  readonly feeShare: BasisPoints
  readonly networkFee: Amount
}

/**
 * A promised rate on another amount than was asked: what was received × the rate, rounded down. The network's cost is inside the rate, so
 * that what was received pays its own part of it, rounded up: twice what was asked pays it twice.
 */
export function quoteAtRate({ asks, rate, feeShare, networkFee }: Locked, from: Amount): Quote | null {
  const to = toPrecision(convert(from, rate, 'down'), 'down')
  const { step, minPayout } = assetOf(to.asset)
  if (to.units < minPayout) return null
  const steps = divide(networkFee.units * from.units, asks.units * step, 'up')
  const charged = amountOf(networkFee.asset, steps * step)
  return { from, to, rate, fee: shareOf(to, feeShare, 'up'), networkFee: charged }
}

/** The same quote when something more has to be paid out of what it brings. Null when it would pay nothing. */
export function quoteLess(quote: Quote, cost: Amount): Quote | null {
  if (cost.units === 0n) return quote
  const { from, networkFee } = quote
  if (cost.units > quote.to.units) return null
  const to = toPrecision(amountOf(cost.asset, quote.to.units - cost.units), 'down')
  if (to.units < assetOf(to.asset).minPayout) return null
  const rate = rateBetween(from, to, 'up')
  return { ...quote, to, rate, networkFee: amountOf(networkFee.asset, networkFee.units + cost.units) }
}

/** Limits in the source asset: the currency's own, what is worth paying out, and what the reserve backs. */
export function sourceRange(market: Market): Range {
  return groundworkOf(market).range
}

function findSourceRange(market: Market): Range {
  const leastForPayout = depositFor(market, amountOf(market.to.id, market.to.minPayout))
  const min = leastForPayout.units > market.from.minAmount ? leastForPayout.units : market.from.minAmount
  const backed = toPrecision(convertBack(market.reserve, market.mid, 'down'), 'down')
  const max = backed.units < market.from.maxAmount ? backed.units : market.from.maxAmount
  return { min: amountOf(market.from.id, min), max: amountOf(market.from.id, max) }
}

/** The same limits in the destination asset; both ends are amounts that can be asked for. */
function destinationRange(market: Market): Range {
  const source = sourceRange(market)
  const least = payoutFor(market, source.min)
  const reachesMin = depositFor(market, least).units >= source.min.units
  const min = amountOf(least.asset, reachesMin ? least.units : least.units + market.to.step)
  return { min, max: payoutFor(market, source.max) }
}

/** A cost in a chain's native asset, told in another asset, rounded up to what the interface shows. */
export function costIn(to: Asset, cost: Amount, costPrice: bigint, toPrice: bigint): Amount {
  const native = assetOf(cost.asset)
  const rate = midRate(native, to, costPrice, toPrice)
  return toPrecision(convert(cost, rate, 'up'), 'up')
}
