import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { soon } from '../../../test/harness/eventually.ts'
import { systemClock } from '../../clock.ts'
import { currencyCodes } from '../../domain/catalog/currencies.ts'
import { HOUR_MS } from '../../domain/time.ts'
import { defaultPriceRules, type PriceBook, priceBook } from '../price_book.ts'
import { ccxtVenues } from './ccxt_venues.ts'
import { defaultVenues } from './testing/default_venues.ts'
import { type CentPrices, type Fault, startVenue, type VenueServer } from './testing/venue_servers.ts'
import { isVenueId, type VenueId, venueIds, venues } from './venues.ts'

/**
 * What: prices read from venues through ccxt are right while four are healthy, whatever a fifth does.
 * How: servers on 127.0.0.1 that speak each venue's wire format; ccxt and the book are the real ones. A request
 * to anywhere else fails the test.
 */
const CENT = 10n ** 10n
const market: CentPrices = {
  BTC: 6_500_000n,
  ETH: 350_000n,
  BNB: 60_000n,
  USDT: 100n,
  USDC: 100n,
  XRP: 250n,
  XLM: 40n,
  TRX: 25n,
  EOS: 80n,
  SOL: 15_000n,
}
const clock = systemClock()
const silent = { info: () => {}, warn: () => {} }

/** No two venues say quite the same. */
const offsetCents: Record<VenueId, bigint> = {
  binance: 0n,
  bitfinex: 100n,
  bitstamp: 220n,
  bybit: 330n,
  coinbase: 440n,
  gate: 550n,
  kraken: 660n,
  kucoin: 770n,
  okx: 880n,
}
const servers = new Map<VenueId, VenueServer>()
let prices: CentPrices = market
/** What those who trade against USDT say instead. */
let inUsdt: CentPrices = {}
const realFetch = globalThis.fetch
const outside: string[] = []

beforeAll(async () => {
  for (const venue of venueIds) {
    const own = () => (venues[venue].quotes[0] === 'USDT' ? inUsdt : {})
    const pricesOfVenue = () => ({ ...prices, BTC: (prices.BTC ?? 0n) + offsetCents[venue], ...own() })
    servers.set(venue, await startVenue(venue, clock.wallMs, pricesOfVenue))
  }
})

beforeEach(() => {
  prices = market
  inUsdt = {}
  vi.stubGlobal('fetch', (url: URL, init: RequestInit) => {
    // A redirect would be followed to anywhere, past this.
    if (url.hostname === '127.0.0.1' && init.redirect === 'error') return realFetch(url, init)
    outside.push(url.href)
    return Promise.reject(new Error(`a request to ${url.href}`))
  })
})

afterEach(async () => {
  vi.unstubAllGlobals()
  for (const server of servers.values()) {
    server.fault = 'none'
    server.requests.length = 0
  }
  expect(outside).toEqual([])
})

afterAll(async () => {
  for (const server of servers.values()) await server.stop()
})

function serverOf(venue: VenueId): VenueServer {
  const server = servers.get(venue)
  if (server === undefined) throw new Error(`${venue} has a server`)
  return server
}

function sourcesOf(ids: readonly VenueId[], timeoutMs = 15_000) {
  const httpOverrides = Object.fromEntries(ids.map((venue) => [venue, serverOf(venue).origin]))
  return ccxtVenues({ venues: ids, currencies: currencyCodes, clock, timeoutMs, httpOverrides })
}

/** Limits of time are far away: on a busy machine a healthy venue may take long. */
function bookOf(ids: readonly VenueId[]): PriceBook {
  return priceBook({ sources: sourcesOf(ids), clock, rules: { readTimeoutMs: 15_000 }, log: silent })
}

/** The median of what the venues were told to say about BTC, worked out here. */
function medianBtc(ids: readonly VenueId[]): bigint {
  const cents = ids.map((venue) => (prices.BTC ?? 0n) + offsetCents[venue])
  const sorted = cents.toSorted((left, right) => (left < right ? -1 : 1))
  const [low, high] = [sorted[(sorted.length - 1) >> 1], sorted[sorted.length >> 1]]
  if (low === undefined || high === undefined) throw new Error('there are venues')
  return ((low + high) * CENT) / 2n
}

describe.each(venueIds)('%s', (venue) => {
  test('is understood: every currency it lists, to the cent, and how old it is', async () => {
    const [source] = sourcesOf([venue])
    const observations = (await source?.read(new AbortController().signal)) ?? []
    const listed = currencyCodes.filter((code) => code !== venues[venue].quotes[0])
    expect(observations.map(({ currency }) => currency)).toEqual(listed)
    for (const { currency, price, atMs } of observations) {
      const cents = (market[currency] ?? 0n) + (currency === 'BTC' ? offsetCents[venue] : 0n)
      expect(price, currency).toBe(cents * CENT)
      expect(Math.abs(clock.nowMs() - atMs)).toBeLessThan(10_000)
    }
  })

  test('asks for its markets once', async () => {
    const [source] = sourcesOf([venue])
    await source?.read(new AbortController().signal)
    const asked = serverOf(venue).requests.length
    await source?.read(new AbortController().signal)
    expect(serverOf(venue).requests.length).toBe(asked + 1)
  })

  test.each<Fault>(['http_500', 'html', 'wrong_json', 'truncated'])(
    'rejects when it is %s, before and after it has been well',
    async (fault) => {
      const [source] = sourcesOf([venue])
      serverOf(venue).fault = fault
      await expect(source?.read(new AbortController().signal)).rejects.toThrow()
      serverOf(venue).fault = 'none'
      await expect(source?.read(new AbortController().signal), 'it recovers').resolves.not.toEqual([])
      serverOf(venue).fault = fault
      await expect(source?.read(new AbortController().signal)).rejects.toThrow()
    },
  )

  test.each<Fault>(['silent', 'stalled'])(
    'that is %s is given up when told to or out of time',
    async (fault) => {
      serverOf(venue).fault = fault
      const [patient] = sourcesOf([venue])
      const stop = new AbortController()
      const reading = patient?.read(stop.signal)
      const rejected = expect(reading).rejects.toThrow()
      await soon(() => expect(serverOf(venue).requests.length).toBeGreaterThan(0))
      stop.abort()
      await rejected
      const [hasty] = sourcesOf([venue], 50)
      await expect(hasty?.read(new AbortController().signal)).rejects.toThrow()
      serverOf(venue).fault = 'none'
      await expect(patient?.read(new AbortController().signal), 'it recovers').resolves.not.toEqual([])
    },
  )
})

/** Four dollar venues and one against USDT: with any one of them bad, four are healthy. */
const five = ['kraken', 'coinbase', 'bitstamp', 'bitfinex', 'binance'] as const satisfies readonly VenueId[]

describe('with four healthy venues', () => {
  test('and a fifth, all five are counted', async () => {
    const book = bookOf(five)
    await book.refresh()
    expect(book.usd('BTC')).toBe(medianBtc(five))
    expect(book.explain('BTC').sources.map(({ verdict }) => verdict)).toEqual(five.map(() => 'accepted'))
  })

  describe.each(five)('and %s', (bad) => {
    const healthy = five.filter((venue) => venue !== bad)

    test.each<Fault>(['off_1000x', 'stale', 'cached', 'http_500', 'html', 'wrong_json', 'truncated'])(
      '%s, the price is the median of the healthy ones',
      async (fault) => {
        const book = bookOf(five)
        serverOf(bad).fault = fault
        await book.refresh()
        expect(book.usd('BTC')).toBe(medianBtc(healthy))
        expect(book.usd('USDT')).toBe(100n * CENT)
        const verdict = book.explain('BTC').sources.find(({ source }) => source === bad)?.verdict
        const isOld = fault === 'stale' || fault === 'cached'
        expect(verdict).toBe(fault === 'off_1000x' ? 'outlier' : isOld ? 'too_old' : 'silent')
      },
    )

    test.each<Fault>(['silent', 'stalled'])(
      '%s, the price is the median of the healthy ones long before it is given up',
      async (fault) => {
        const book = bookOf(five)
        serverOf(bad).fault = fault
        let isOver = false
        const refreshed = book.refresh().then(() => {
          isOver = true
        })
        await soon(() => expect(serverOf(bad).requests.length).toBeGreaterThan(0))
        await soon(() => expect(book.usd('BTC')).toBe(medianBtc(healthy)))
        expect(isOver).toBe(false)
        serverOf(bad).hangUp()
        await refreshed
        expect(book.usd('BTC')).toBe(medianBtc(healthy))
      },
    )

    test('down, the price is the median of the healthy ones, and it counts again when it is back', async () => {
      const book = bookOf(five)
      await serverOf(bad).goDown()
      await book.refresh()
      expect(book.usd('BTC')).toBe(medianBtc(healthy))
      await serverOf(bad).comeBack()
      await book.refresh()
      expect(book.usd('BTC')).toBe(medianBtc(five))
    })
  })
})

describe('with too few', () => {
  test('healthy ones there is no price', async () => {
    const book = bookOf(five)
    for (const [index, fault] of (['off_1000x', 'stale', 'http_500'] as const).entries()) {
      serverOf(five[index] ?? 'kraken').fault = fault
    }
    await book.refresh()
    for (const code of currencyCodes) expect(book.usd(code), code).toBeNull()
  })

  test('dollar venues for USDT, those that trade against USDT do not count either', async () => {
    const book = bookOf(['kraken', 'coinbase', 'binance', 'okx', 'bybit', 'kucoin', 'gate'])
    await book.refresh()
    expect(book.usd('USDT')).toBeNull()
    expect(book.usd('BTC')).toBeNull()
  })
})

test('prices in USDT are worth what USDT is worth', async () => {
  prices = { ...market, USDT: 96n }
  // Who trades against USDT then asks more of it: 600 dollars are 625 USDT.
  inUsdt = { BNB: 62_500n, ETH: 364_583n, USDC: 104n }
  const book = bookOf(defaultVenues)
  await book.refresh()
  expect(book.usd('USDT')).toBe(96n * CENT)
  expect(book.usd('BNB')).toBe(60_000n * CENT)
  const verdicts = new Set(book.explain('BNB').sources.map(({ verdict }) => verdict))
  expect(verdicts).toEqual(new Set(['accepted']))
})

test('a USDT taken for a dollar would make two camps, and two camps are no price', async () => {
  prices = { ...market, USDT: 100n }
  inUsdt = { BNB: 62_500n }
  const book = bookOf(defaultVenues)
  await book.refresh()
  expect(book.usd('BNB')).toBeNull()
  expect(book.usd('ETH')).toBe(350_000n * CENT)
})

test('every listed currency has a quorum of the default venues, even when any one of them is down', async () => {
  const currenciesOf = async (venue: VenueId) => {
    const [source] = sourcesOf([venue])
    return (await source?.read(new AbortController().signal))?.map(({ currency }) => currency) ?? []
  }
  const listed = await Promise.all(defaultVenues.map(currenciesOf))
  for (const code of currencyCodes) {
    expect(listed.filter((codes) => codes.includes(code)).length, code).toBeGreaterThan(
      defaultPriceRules.quorum,
    )
  }
})

test('EOS has the price of A where venues list that in its place', async () => {
  const { EOS: eos = 0n, ...others } = market
  prices = { ...others, A: eos }
  const read = async (venue: VenueId) => {
    const [source] = sourcesOf([venue])
    return (await source?.read(new AbortController().signal)) ?? []
  }
  // The names of Bitfinex's markets run together, and one of a single letter is not taken apart.
  const asked = defaultVenues.filter((venue) => venue !== 'bitfinex')
  const listed = (await Promise.all(asked.map(read))).flat().filter(({ currency }) => currency === 'EOS')
  expect(listed.length).toBeGreaterThan(defaultPriceRules.quorum)
  expect(new Set(listed.map(({ price }) => price))).toEqual(new Set([eos * CENT]))
})

test('a market with a gap between bid and ask gives no price', async () => {
  const [source] = sourcesOf(['kraken'])
  serverOf('kraken').fault = 'wide_spread'
  await expect(source?.read(new AbortController().signal)).rejects.toThrow('spread')
})

/** These refuse the whole question when it names one market that is there no more. */
test.each([
  ['binance', 'closes', HOUR_MS],
  ['kraken', 'closes', HOUR_MS],
  ['kraken', 'has closed when the clock is set back', -HOUR_MS],
] as const)('a market that %s %s does not silence it for the others', async (venue, _closes, laterMs) => {
  const later = systemClock()
  const httpOverrides = { [venue]: serverOf(venue).origin }
  const [source] = ccxtVenues({
    venues: [venue],
    currencies: currencyCodes,
    clock: later,
    timeoutMs: 15_000,
    httpOverrides,
  })
  const read = async () => (await source?.read(new AbortController().signal))?.map(({ currency }) => currency)
  const listed = await read()
  expect(listed).toContain('EOS')
  const { EOS: _, ...others } = market
  prices = others
  later.setOffset(laterMs)
  await expect(read()).rejects.toThrow()
  expect(await read()).toEqual(listed?.filter((currency) => currency !== 'EOS'))
})

test('a venue is known by its name in ccxt', () => {
  expect(isVenueId('kraken')).toBe(true)
  expect(isVenueId('../../etc/passwd')).toBe(false)
  expect(isVenueId('constructor')).toBe(false)
})
