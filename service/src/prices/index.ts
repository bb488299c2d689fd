import { ccxtVenues } from './ccxt/ccxt_venues.ts'
import type { PriceSource } from './price_source.ts'

export { isVenueId, venueIds } from './ccxt/venues.ts'
export { defaultPriceRules, priceBook } from './price_book.ts'
export { type SandboxPrices, sandboxPrices } from './sandbox/sandbox_prices.ts'

/** A new kind of price source is one folder and one line here; a kind may stand for many venues. */
export const priceSources = {
  ccxt: ccxtVenues,
} as const satisfies Record<string, (options: never) => readonly PriceSource[]>
