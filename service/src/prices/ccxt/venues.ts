import type { CurrencyCode } from '../../domain/catalog/currencies.ts'
import type { PriceQuote } from '../price_source.ts'

/**
 * The venues we know how to ask, by their name in ccxt. `quotes` is what a currency is priced in there, the deeper
 * market first. Venues with dollar markets price USDT itself. `options` keeps ccxt from loading derivatives.
 */
export const venues = {
  binance: { quotes: ['USDT'], options: { fetchMarkets: { types: ['spot'] }, fetchMargins: false } },
  bitfinex: { quotes: ['USD', 'USDT'], options: {} },
  // A market list that came garbled is not kept: ccxt would for a second.
  bitstamp: { quotes: ['USD', 'USDT'], options: { fetchMarkets: { expires: -1 } } },
  bybit: { quotes: ['USDT'], options: { fetchMarkets: { types: ['spot'] } } },
  coinbase: { quotes: ['USD', 'USDT'], options: {} },
  gate: { quotes: ['USDT'], options: { fetchMarkets: { types: ['spot'] } } },
  kraken: { quotes: ['USD', 'USDT'], options: {} },
  kucoin: {
    quotes: ['USDT'],
    options: { fetchMarkets: { types: ['spot'], fetchTickersFees: false } },
  },
  okx: { quotes: ['USDT'], options: { fetchMarkets: { types: ['spot'] } } },
} as const satisfies Record<string, { quotes: readonly PriceQuote[]; options: object }>

export type VenueId = keyof typeof venues

export const venueIds = Object.keys(venues) as readonly VenueId[]

export function isVenueId(text: string): text is VenueId {
  return Object.hasOwn(venues, text)
}

/** Whether the list of all tickers has bid and ask. Coinbase tells the last trade only. */
export function tellsBook(venue: VenueId): boolean {
  return venue !== 'coinbase'
}

/**
 * What venues call a currency that they do not all call by its own name. EOS changes one for one into A, which most of them have
 * listed in its place since the network calls itself Vaulta (2025).
 */
const namesAtVenues: Partial<Record<CurrencyCode, readonly string[]>> = { EOS: ['EOS', 'A'] }

/** One market of a venue that prices a currency. */
export type Pair = { readonly symbol: string; readonly currency: CurrencyCode; readonly quote: PriceQuote }

/** The part of ccxt's market description that matters here. */
export type Market = { readonly symbol?: unknown; readonly active?: unknown; readonly spot?: unknown }

/** The best market for each currency among those open for trading; a currency without one is left out. */
export function choosePairs(
  venue: VenueId,
  currencies: readonly CurrencyCode[],
  markets: readonly Market[],
): readonly Pair[] {
  const open = new Set(
    markets.filter(({ active, spot }) => spot === true && active !== false).map((m) => m.symbol),
  )
  return currencies.flatMap((currency) => {
    const quotes: readonly PriceQuote[] = venues[venue].quotes
    const names = namesAtVenues[currency] ?? [currency]
    const pairs = names.flatMap((name) =>
      quotes.map((quote): Pair => ({ symbol: `${name}/${quote}`, currency, quote })),
    )
    const found = pairs.find(({ symbol }) => open.has(symbol))
    return found === undefined ? [] : [found]
  })
}
