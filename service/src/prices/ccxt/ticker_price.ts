import { accept, type Outcome, refuse } from '../../domain/outcome.ts'
import { USD_PRICE_DECIMALS } from '../price_source.ts'

/** The part of ccxt's ticker that matters here; numbers are their decimal text, never floats. */
export type Ticker = {
  readonly bid?: unknown
  readonly ask?: unknown
  readonly last?: unknown
  readonly timestamp?: unknown
}

export type TickerRules = {
  /** Bid and ask further apart than this make no price. */
  readonly spreadPercentMax: number
  /** Whether the venue tells bid and ask at all. */
  readonly tellsBook: boolean
}

/**
 * The price in 10^-12 of the quote: the middle of bid and ask, which is where one could deal now. The last trade
 * can be minutes old in a quiet market and any small trade sets it, so it only stands in at venues that never tell bid and
 * ask. A market whose bid and ask are far apart, crossed, or not there, because nobody buys or trading is halted, is
 * not a market at the moment: no price.
 */
export function priceOf({ bid, ask, last }: Ticker, rules: TickerRules): Outcome<bigint> {
  const bidPrice = exactPrice(bid)
  const askPrice = exactPrice(ask)
  if (bidPrice === null || askPrice === null) {
    const isTold = rules.tellsBook || bidPrice !== null || askPrice !== null
    const lastPrice = isTold ? null : exactPrice(last)
    return lastPrice === null
      ? refuse({ code: 'price_missing', message: 'has no bid or no ask' })
      : accept(lastPrice)
  }
  if (bidPrice > askPrice) return refuse({ code: 'book_crossed', message: 'bids more than it asks' })
  const isWide =
    (askPrice - bidPrice) * 20_000n > (askPrice + bidPrice) * BigInt(Math.round(rules.spreadPercentMax * 100))
  if (isWide) {
    return refuse({ code: 'spread_wide', message: `has a spread of more than ${rules.spreadPercentMax} %` })
  }
  return accept((bidPrice + askPrice) / 2n)
}

/** Decimal text to 10^-12, finer digits cut; null for anything that is not a plain decimal above zero. */
function exactPrice(text: unknown): bigint | null {
  if (typeof text !== 'string') return null
  const match = /^(\d{1,30})(?:\.(\d{1,60}))?$/.exec(text)
  if (match === null) return null
  const [, whole = '', fraction = ''] = match
  const digits = fraction.slice(0, USD_PRICE_DECIMALS).padEnd(USD_PRICE_DECIMALS, '0')
  const price = BigInt(whole + digits)
  return price > 0n ? price : null
}
