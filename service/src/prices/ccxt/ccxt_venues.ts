import type { Clock } from '../../clock.ts'
import type { CurrencyCode } from '../../domain/catalog/currencies.ts'
import { HOUR_MS, type InstantMs, MINUTE_MS, SECOND_MS } from '../../domain/time.ts'
import type { PriceObservation, PriceSource } from '../price_source.ts'
import { type Exchange, type Fetch, openExchange } from './exchange.ts'
import { priceOf, type Ticker } from './ticker_price.ts'
import { choosePairs, type Pair, tellsBook, type VenueId } from './venues.ts'

export type CcxtVenuesOptions = {
  readonly venues: readonly VenueId[]
  readonly currencies: readonly CurrencyCode[]
  readonly clock: Clock
  /** For one request with its whole answer. */
  readonly timeoutMs: number
  /** Bid and ask further apart than this make no price; 2 unless told. */
  readonly spreadPercentMax?: number
  /** Another origin for a venue (`http://127.0.0.1:4001`): a mirror, or a test's server. The paths stay. */
  readonly httpOverrides?: Partial<Record<VenueId, string>>
}

/** Which markets there are changes seldom; asking again now and then finds new ones and drops closed ones. */
const MARKETS_AGE_MS_MAX = 6 * HOUR_MS

/**
 * A venue may refuse the whole question because of one market that it has closed since, and would until the markets are
 * asked for again. Not after every failure: the answer is the largest there is, and most failures are of another kind.
 */
const DOUBTED_MARKETS_AGE_MS_MAX = 5 * MINUTE_MS

/** The longest honest answer is a few megabytes (all markets of one venue). */
const ANSWER_BYTES_MAX = 32 * 1024 * 1024

/** One price source for each venue. Nothing is loaded or asked before the first read. */
export function ccxtVenues(options: CcxtVenuesOptions): readonly PriceSource[] {
  return options.venues.map((venue) => new CcxtVenue(venue, options))
}

class CcxtVenue implements PriceSource {
  readonly name: VenueId
  readonly #options: CcxtVenuesOptions
  #exchange: Exchange | null = null
  #pairs: readonly Pair[] = []
  #marketsAtMs: InstantMs = Number.NEGATIVE_INFINITY
  /** The last question for tickers had no answer. */
  #areMarketsDoubted = false
  #signal: AbortSignal = AbortSignal.abort()
  /** When the venue made its last answer, by the headers of that. */
  #answeredAtMs: InstantMs | null = null

  constructor(venue: VenueId, options: CcxtVenuesOptions) {
    this.name = venue
    this.#options = options
  }

  async read(signal: AbortSignal): Promise<readonly PriceObservation[]> {
    this.#signal = signal
    this.#exchange ??= await openExchange(this.name, this.#fetch, this.#options.timeoutMs)
    await this.#loadMarkets(this.#exchange)
    this.#areMarketsDoubted = true
    const tickers = await this.#exchange.fetchTickers(this.#pairs.map(({ symbol }) => symbol))
    this.#areMarketsDoubted = false
    const rules = {
      spreadPercentMax: this.#options.spreadPercentMax ?? 2,
      tellsBook: tellsBook(this.name),
    }
    const refusals: string[] = []
    const observations = this.#pairs.flatMap((pair) => {
      const ticker = tickers[pair.symbol]
      if (ticker === undefined) {
        refusals.push(`${pair.symbol} has no ticker`)
        return []
      }
      const price = priceOf(ticker, rules)
      if (!price.ok) {
        refusals.push(`${pair.symbol} ${price.rejection.message}`)
        return []
      }
      return [
        { currency: pair.currency, price: price.value, quote: pair.quote, atMs: this.#trueAtMs(ticker) },
      ]
    })
    if (observations.length === 0) throw new Error(`${this.name} gave no price: ${refusals.join('; ')}`)
    return observations
  }

  /** Not ccxt's loadMarkets: that one keeps a failure for good, and asks for more than prices need. */
  async #loadMarkets(exchange: Exchange): Promise<void> {
    const nowMs = this.#options.clock.nowMs()
    const ageMsMax = this.#areMarketsDoubted ? DOUBTED_MARKETS_AGE_MS_MAX : MARKETS_AGE_MS_MAX
    // Later than now: before the clock was set back.
    if (Math.abs(nowMs - this.#marketsAtMs) < ageMsMax) return
    const markets = await exchange.fetchMarkets()
    const pairs = choosePairs(this.name, this.#options.currencies, markets)
    if (pairs.length === 0) throw new Error(`${this.name} has no market for any of our currencies`)
    const symbols = new Set<unknown>(pairs.map(({ symbol }) => symbol))
    exchange.setMarkets(markets.filter(({ symbol, spot }) => spot === true && symbols.has(symbol)))
    this.#pairs = pairs
    this.#marketsAtMs = nowMs
  }

  /**
   * The ticker's own time where the venue tells one; else when the answer was made, which still gives away a cache
   * that serves an old one.
   */
  #trueAtMs({ timestamp }: Ticker): InstantMs {
    const { clock } = this.#options
    if (typeof timestamp === 'number') return clock.fromWallMs(timestamp)
    return this.#answeredAtMs === null ? clock.nowMs() : clock.fromWallMs(this.#answeredAtMs)
  }

  /**
   * ccxt's own client stops its timer at the first byte and cannot be cancelled; here the caller's signal and the
   * limits of time and size cover the whole answer. Redirects are errors.
   */
  readonly #fetch: Fetch = async (url, { method, headers }) => {
    const { timeoutMs, httpOverrides } = this.#options
    const signal = AbortSignal.any([this.#signal, AbortSignal.timeout(timeoutMs)])
    const target = withOrigin(url, httpOverrides?.[this.name])
    const response = await fetch(target, { method, headers, redirect: 'error', signal })
    const body = await readAtMost(response, ANSWER_BYTES_MAX)
    this.#answeredAtMs = madeAtMs(response.headers, this.#options.clock.wallMs())
    const { status, statusText } = response
    // ccxt would take a page of HTML for an empty answer.
    if (response.ok && !/^\s*[[{]/.test(body.toString('latin1', 0, 64))) {
      throw new Error(`${this.name} answered ${response.headers.get('content-type')}, which is not JSON`)
    }
    return new Response(body.length === 0 ? null : body, { status, statusText, headers: response.headers })
  }
}

/**
 * Null when they do not tell. A cache in front of a venue may tell the time of its own answer as the date, and in Age for how
 * many seconds it has had this one (RFC 9111, 5.1).
 */
function madeAtMs(headers: Headers, wallMs: number): number | null {
  const dateMs = Date.parse(headers.get('date') ?? '')
  // Of several caches in a row each writes its own.
  const ages = (headers.get('age') ?? '').split(',').filter((age) => /^ *\d{1,9} *$/.test(age))
  const keptSince = ages.map((age) => wallMs - Number.parseInt(age, 10) * SECOND_MS)
  const told = [dateMs, ...keptSince].filter((ms) => !Number.isNaN(ms))
  return told.length === 0 ? null : Math.min(...told)
}

function withOrigin(url: string, origin: string | undefined): URL {
  const { pathname, search } = new URL(url)
  return origin === undefined ? new URL(url) : new URL(pathname + search, origin)
}

async function readAtMost(response: Response, bytesMax: number): Promise<Buffer<ArrayBuffer>> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of response.body ?? []) {
    length += chunk.length
    if (length > bytesMax) throw new Error(`an answer of more than ${bytesMax} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
