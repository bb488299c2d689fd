import type { VenueId } from '../venues.ts'

/** The venues' wire formats, as recorded in ccxt's sources for the endpoints that it asks. */
export const wireFormats = {
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
export type WireTicker = {
  readonly base: string
  readonly quote: string
  readonly bid: string
  readonly ask: string
  readonly mid: string
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
