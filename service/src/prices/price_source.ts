import type { CurrencyCode } from '../domain/catalog/currencies.ts'
import type { InstantMs } from '../domain/time.ts'

/** US dollars for one whole unit, counted in 10^-12 dollars: enough for the cheapest coin, and exact. */
export type UsdPrice = bigint

export const USD_PRICE_DECIMALS = 12

/**
 * What a price is in. Half of the large venues trade against USDT only: the price book turns such a price into
 * dollars with the USDT price that a quorum agreed on, never with the word of the venue itself.
 */
export type PriceQuote = 'USD' | 'USDT'

/** What a source said about one currency, and when it was true at the source. */
export type PriceObservation = {
  readonly currency: CurrencyCode
  /** For one whole unit, counted in 10^-12 of `quote`. */
  readonly price: bigint
  readonly quote: PriceQuote
  readonly atMs: InstantMs
}

/**
 * One place that knows prices, such as a trading venue. It has one voice, under its own name.
 * `read` asks for all its currencies at once; it rejects or times out when the source is in trouble, and
 * never makes a price up. The price book decides what to believe.
 */
export type PriceSource = {
  readonly name: string
  read(signal: AbortSignal): Promise<readonly PriceObservation[]>
}

/** What quotes read: the believed price now, or null when there is no quorum (RATE_UNAVAILABLE). */
export type Prices = {
  usd(currency: CurrencyCode): UsdPrice | null
  /** For operators: what the price rests on, or why there is none. Left out where no sources are asked. */
  why?(currency: CurrencyCode): string
}
