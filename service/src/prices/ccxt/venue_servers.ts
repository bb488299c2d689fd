import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type VenueId, venues } from './venues.ts'

/**
 * For tests: venues on 127.0.0.1 that speak the real ones' wire format, as recorded in ccxt's sources for the
 * endpoints that it asks. A fault makes one of them misbehave in the ways real ones do.
 */
export type Fault =
  | 'none'
  | 'off_1000x'
  | 'stale'
  | 'cached' // as old, by a cache that sets the date anew and tells the age beside it
  | 'silent' // takes the request and never answers
  | 'stalled' // begins an answer and never ends it
  | 'http_500'
  | 'html'
  | 'wrong_json'
  | 'truncated'
  | 'wide_spread'

export type VenueServer = {
  readonly venue: VenueId
  readonly origin: string
  readonly requests: string[]
  fault: Fault
  /** Refuses connections until `comeBack`, on the same port. */
  goDown(): Promise<void>
  comeBack(): Promise<void>
  /** Ends every open connection, and with it every answer that would never end. */
  hangUp(): void
  stop(): Promise<void>
}

/** Dollars (USDT at venues that trade against it) for a unit, as whole cents of the middle price. */
export type CentPrices = Readonly<Record<string, bigint>>

const wireFormats = {
  binance,
  bitfinex,
  bitstamp,
  bybit,
  coinbase,
  gate,
  kraken,
  kucoin,
  okx,
} satisfies Record<VenueId, Wire>

/** Answers one request path with what the venue's JSON would be, or null for a path it does not know. */
type Wire = (path: string, tickers: readonly WireTicker[], atMs: number) => unknown
type WireTicker = {
  readonly base: string
  readonly quote: string
  readonly bid: string
  readonly ask: string
  readonly mid: string
}

const LONG_AGO = 'Fri, 13 Feb 2026 00:00:00 GMT'

export async function startVenue(
  venue: VenueId,
  nowMs: () => number,
  pricesNow: () => CentPrices,
): Promise<VenueServer> {
  const requests: string[] = []
  const server = createServer((request, response) => {
    const path = request.url ?? ''
    requests.push(path)
    answer(started, path, response, nowMs(), pricesNow())
  })
  const port = await listen(server, 0)
  const started: VenueServer = {
    venue,
    origin: `http://127.0.0.1:${port}`,
    requests,
    fault: 'none',
    goDown: () => close(server),
    comeBack: async () => {
      await listen(server, port)
    },
    hangUp: () => server.closeAllConnections(),
    stop: () => (server.listening ? close(server) : Promise.resolve()),
  }
  return started
}

function listen(server: Server, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', () => {
      server.off('error', reject)
      resolve((server.address() as AddressInfo).port)
    })
  })
}

function close(server: Server): Promise<void> {
  return new Promise((resolve, reject) => {
    server.close((error) => (error === undefined ? resolve() : reject(error)))
    server.closeAllConnections()
  })
}

function answer(
  { venue, fault }: VenueServer,
  path: string,
  response: ServerResponse,
  nowMs: number,
  prices: CentPrices,
): void {
  if (fault === 'silent') return
  const isStale = fault === 'stale' || fault === 'cached'
  if (fault === 'stale') response.setHeader('Date', LONG_AGO)
  if (fault === 'cached') response.setHeader('Age', '600')
  const atMs = isStale ? Date.parse(LONG_AGO) : nowMs
  const body = JSON.stringify(wireFormats[venue](path, tickersOf(venue, prices, fault), atMs))
  response.setHeader('Content-Type', 'application/json')
  switch (fault) {
    case 'stalled':
      response.write(body.slice(0, 10))
      return
    case 'http_500':
      response.writeHead(500).end('{"message":"internal error"}')
      return
    case 'html':
      response.setHeader('Content-Type', 'text/html')
      response.end('<!doctype html><html><body>We are down for maintenance</body></html>')
      return
    case 'wrong_json':
      response.end('{"unexpected":[1,null,{"price":"NaN"}]}')
      return
    case 'truncated':
      response.end(body.slice(0, body.length / 2))
      return
    default:
      if (body === 'null') response.writeHead(404).end('{"message":"no such path"}')
      else response.end(body)
  }
}

function tickersOf(venue: VenueId, prices: CentPrices, fault: Fault): readonly WireTicker[] {
  const [quote] = venues[venue].quotes
  return Object.entries(prices).flatMap(([base, cents]) => {
    if (base === quote) return []
    const mid = fault === 'off_1000x' ? cents * 1000n : cents
    const half = fault === 'wide_spread' ? mid / 10n : 0n
    // Half a cent either way is a spread that every market of ours can have.
    const [bid, ask] = [mid * 1000n - half * 1000n - 5n, mid * 1000n + half * 1000n + 5n]
    return [{ base, quote, bid: text(bid, 5), ask: text(ask, 5), mid: text(mid, 2) }]
  })
}

function text(units: bigint, decimals: number): string {
  const digits = units.toString().padStart(decimals + 1, '0')
  return `${digits.slice(0, -decimals)}.${digits.slice(-decimals)}`
}

function kraken(path: string, tickers: readonly WireTicker[]): unknown {
  const oldNames: Record<string, string> = { BTC: 'XXBT', ETH: 'XETH' }
  const idOf = ({ base }: WireTicker) => (base in oldNames ? `${oldNames[base]}ZUSD` : `${base}USD`)
  if (path.startsWith('/0/public/AssetPairs')) {
    const pairOf = (ticker: WireTicker) => ({
      altname: `${ticker.base === 'BTC' ? 'XBT' : ticker.base}USD`,
      wsname: `${ticker.base === 'BTC' ? 'XBT' : ticker.base}/USD`,
      aclass_base: 'currency',
      base: oldNames[ticker.base] ?? ticker.base,
      aclass_quote: 'currency',
      quote: 'ZUSD',
      lot: 'unit',
      pair_decimals: 5,
      lot_decimals: 8,
      lot_multiplier: 1,
      leverage_buy: [],
      leverage_sell: [],
      fees: [[0, 0.26]],
      fees_maker: [[0, 0.16]],
      fee_volume_currency: 'ZUSD',
      ordermin: '0.0001',
      status: 'online',
    })
    return { error: [], result: Object.fromEntries(tickers.map((ticker) => [idOf(ticker), pairOf(ticker)])) }
  }
  if (!path.startsWith('/0/public/Ticker')) return null
  const wanted = new URL(path, 'http://localhost').searchParams.get('pair')?.split(',') ?? []
  if (wanted.some((id) => !tickers.some((ticker) => idOf(ticker) === id))) {
    return { error: ['EQuery:Unknown asset pair'] }
  }
  const rows = tickers
    .filter((ticker) => wanted.includes(idOf(ticker)))
    .map((ticker) => {
      const { bid, ask, mid } = ticker
      const pair = {
        a: [ask, '1', '1.000'],
        b: [bid, '1', '1.000'],
        c: [mid, '0.1'],
        v: ['10', '100'],
        p: [mid, mid],
      }
      return [idOf(ticker), { ...pair, t: [10, 100], l: [mid, mid], h: [mid, mid], o: mid }] as const
    })
  return { error: [], result: Object.fromEntries(rows) }
}

function coinbase(path: string, tickers: readonly WireTicker[]): unknown {
  if (!path.startsWith('/api/v3/brokerage/market/products')) return null
  if (path.includes('product_type=FUTURE')) return { products: [], num_products: 0 }
  const products = tickers.map(({ base, quote, mid }) => ({
    product_id: `${base}-${quote}`,
    price: mid,
    price_percentage_change_24h: '1.2',
    volume_24h: '100',
    volume_percentage_change_24h: '3',
    base_increment: '0.00000001',
    quote_increment: '0.01',
    quote_min_size: '1',
    quote_max_size: '150000000',
    base_min_size: '0.00000001',
    base_max_size: '3400',
    is_disabled: false,
    status: 'online',
    trading_disabled: false,
    product_type: 'SPOT',
    quote_currency_id: quote,
    base_currency_id: base,
    mid_market_price: '',
    alias: '',
    alias_to: [],
    price_increment: '0.01',
  }))
  return { products, num_products: products.length }
}

function bitstamp(path: string, tickers: readonly WireTicker[], atMs: number): unknown {
  if (path.startsWith('/api/v2/markets')) {
    return tickers.map(({ base, quote }) => ({
      name: `${base}/${quote}`,
      market_symbol: `${base}${quote}`.toLowerCase(),
      base_currency: base,
      base_decimals: 8,
      counter_currency: quote,
      counter_decimals: 5,
      minimum_order_value: '10',
      trading: 'Enabled',
      instant_and_market_orders: 'Enabled',
      description: '',
      market_type: 'SPOT',
    }))
  }
  if (!path.startsWith('/api/v2/ticker')) return null
  return tickers.map(({ base, quote, bid, ask, mid }) => ({
    timestamp: String(Math.floor(atMs / 1000)),
    high: mid,
    last: mid,
    bid,
    vwap: mid,
    volume: '3563.1',
    low: mid,
    ask,
    open: mid,
    open_24: mid,
    percent_change_24: '1.24',
    pair: `${base}/${quote}`,
  }))
}

function bitfinex(path: string, tickers: readonly WireTicker[]): unknown {
  const names: Record<string, string> = { USDT: 'UST', USDC: 'UDC' }
  const idOf = ({ base }: WireTicker) => {
    const name = names[base] ?? base
    return name.length > 3 ? `${name}:USD` : `${name}USD`
  }
  if (path.startsWith('/v2/conf/')) {
    const info = [null, null, null, '0.0001', '2000.0', null, null, null, null, null, null, null]
    return [tickers.map((ticker) => [idOf(ticker), info]), [], [], []]
  }
  if (!path.startsWith('/v2/tickers')) return null
  // JSON numbers, unlike the others.
  return tickers.map((ticker) => {
    const [bid, ask, mid] = JSON.parse(`[${ticker.bid},${ticker.ask},${ticker.mid}]`)
    return [`t${idOf(ticker)}`, bid, 10, ask, 10, 100, 0.01, mid, 1000, mid, mid]
  })
}

function binance(path: string, tickers: readonly WireTicker[], atMs: number): unknown {
  if (path.startsWith('/api/v3/exchangeInfo')) {
    const symbols = tickers.map(({ base, quote }) => ({
      symbol: `${base}${quote}`,
      status: 'TRADING',
      baseAsset: base,
      baseAssetPrecision: 8,
      quoteAsset: quote,
      quotePrecision: 8,
      quoteAssetPrecision: 8,
      orderTypes: ['LIMIT', 'MARKET'],
      isSpotTradingAllowed: true,
      isMarginTradingAllowed: false,
      filters: [{ filterType: 'PRICE_FILTER', minPrice: '0.01', maxPrice: '1000000', tickSize: '0.01' }],
      permissions: [],
      permissionSets: [['SPOT']],
    }))
    return { timezone: 'UTC', serverTime: atMs, rateLimits: [], exchangeFilters: [], symbols }
  }
  if (!path.startsWith('/api/v3/ticker/24hr')) return null
  const wanted: string[] = JSON.parse(new URL(path, 'http://localhost').searchParams.get('symbols') ?? '[]')
  if (wanted.some((symbol) => !tickers.some(({ base, quote }) => `${base}${quote}` === symbol))) {
    return { code: -1121, msg: 'Invalid symbol.' }
  }
  return tickers.map(({ base, quote, bid, ask, mid }) => ({
    symbol: `${base}${quote}`,
    priceChange: '0.1',
    priceChangePercent: '0.1',
    weightedAvgPrice: mid,
    prevClosePrice: mid,
    lastPrice: mid,
    lastQty: '0.1',
    bidPrice: bid,
    bidQty: '1.0',
    askPrice: ask,
    askQty: '1.0',
    openPrice: mid,
    highPrice: mid,
    lowPrice: mid,
    volume: '100',
    quoteVolume: '100',
    openTime: atMs - 86_400_000,
    closeTime: atMs,
    firstId: 1,
    lastId: 2,
    count: 2,
  }))
}

function okx(path: string, tickers: readonly WireTicker[], atMs: number): unknown {
  const idOf = ({ base, quote }: WireTicker) => `${base}-${quote}`
  if (path.startsWith('/api/v5/public/instruments')) {
    const data = tickers.map((ticker) => ({
      baseCcy: ticker.base,
      category: '1',
      instId: idOf(ticker),
      instType: 'SPOT',
      lotSz: '0.00000001',
      minSz: '0.00001',
      quoteCcy: ticker.quote,
      settleCcy: '',
      state: 'live',
      tickSz: '0.1',
      uly: '',
    }))
    return { code: '0', msg: '', data }
  }
  if (!path.startsWith('/api/v5/market/tickers')) return null
  const data = tickers.map((ticker) => ({
    instType: 'SPOT',
    instId: idOf(ticker),
    last: ticker.mid,
    lastSz: '0.1',
    askPx: ticker.ask,
    askSz: '1',
    bidPx: ticker.bid,
    bidSz: '1',
    open24h: ticker.mid,
    high24h: ticker.mid,
    low24h: ticker.mid,
    volCcy24h: '100',
    vol24h: '100',
    ts: String(atMs),
    sodUtc0: ticker.mid,
    sodUtc8: ticker.mid,
  }))
  return { code: '0', msg: '', data }
}

function bybit(path: string, tickers: readonly WireTicker[], atMs: number): unknown {
  const answer = (list: readonly object[]) => ({
    retCode: 0,
    retMsg: 'OK',
    result: { category: 'spot', list },
    retExtInfo: {},
    time: atMs,
  })
  if (path.startsWith('/v5/market/instruments-info')) {
    return answer(
      tickers.map(({ base, quote }) => ({
        symbol: `${base}${quote}`,
        baseCoin: base,
        quoteCoin: quote,
        innovation: '0',
        status: 'Trading',
        marginTrading: 'both',
        lotSizeFilter: { basePrecision: '0.000001', quotePrecision: '0.00000001', minOrderQty: '0.00004' },
        priceFilter: { tickSize: '0.01' },
      })),
    )
  }
  if (!path.startsWith('/v5/market/tickers')) return null
  return answer(
    tickers.map(({ base, quote, bid, ask, mid }) => ({
      symbol: `${base}${quote}`,
      bid1Price: bid,
      bid1Size: '0.3',
      ask1Price: ask,
      ask1Size: '1.4',
      lastPrice: mid,
      prevPrice24h: mid,
      price24hPcnt: '0.0068',
      highPrice24h: mid,
      lowPrice24h: mid,
      turnover24h: '243765620.65',
      volume24h: '11801.27',
    })),
  )
}

function kucoin(path: string, tickers: readonly WireTicker[], atMs: number): unknown {
  if (path.startsWith('/api/v2/symbols')) {
    const data = tickers.map(({ base, quote }) => ({
      symbol: `${base}-${quote}`,
      name: `${base}-${quote}`,
      baseCurrency: base,
      quoteCurrency: quote,
      feeCurrency: quote,
      market: 'USDS',
      baseMinSize: '0.00001',
      quoteMinSize: '0.01',
      baseMaxSize: '10000',
      quoteMaxSize: '99999999',
      baseIncrement: '0.00000001',
      quoteIncrement: '0.000001',
      priceIncrement: '0.00001',
      priceLimitRate: '0.1',
      isMarginEnabled: true,
      enableTrading: true,
    }))
    return { code: '200000', data }
  }
  if (!path.startsWith('/api/v1/market/allTickers')) return null
  const ticker = tickers.map(({ base, quote, bid, ask, mid }) => ({
    symbol: `${base}-${quote}`,
    symbolName: `${base}-${quote}`,
    buy: bid,
    sell: ask,
    changeRate: '-0.0055',
    changePrice: '-63.6',
    high: mid,
    low: mid,
    vol: '2282.7',
    volValue: '25984946.1',
    last: mid,
    averagePrice: mid,
  }))
  return { code: '200000', data: { time: atMs, ticker } }
}

function gate(path: string, tickers: readonly WireTicker[]): unknown {
  const idOf = ({ base, quote }: WireTicker) => `${base}_${quote}`
  if (path.startsWith('/api/v4/spot/currency_pairs')) {
    return tickers.map((ticker) => ({
      id: idOf(ticker),
      base: ticker.base,
      quote: ticker.quote,
      fee: '0.2',
      min_base_amount: '0.01',
      min_quote_amount: '0.001',
      amount_precision: 3,
      precision: 6,
      trade_status: 'tradable',
      sell_start: 0,
      buy_start: 0,
    }))
  }
  if (path.startsWith('/api/v4/margin/currency_pairs')) return []
  if (!path.startsWith('/api/v4/spot/tickers')) return null
  return tickers.map((ticker) => ({
    currency_pair: idOf(ticker),
    last: ticker.mid,
    lowest_ask: ticker.ask,
    highest_bid: ticker.bid,
    change_percentage: '-8.91',
    base_volume: '656782.2',
    quote_volume: '24.2',
    high_24h: ticker.mid,
    low_24h: ticker.mid,
  }))
}
