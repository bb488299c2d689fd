import { insertRateLocks, type RateLock } from '../../db/rate_locks.ts'
import type { Asset } from '../../domain/catalog/assets.ts'
import { type Currency, type CurrencyCode, currencies } from '../../domain/catalog/currencies.ts'
import { showAmount } from '../../domain/money/amount.ts'
import { formatDecimal } from '../../domain/money/decimal.ts'
import { showRate } from '../../domain/money/rate.ts'
import { type Market, type Quote, type RateType, sourceRange } from '../../domain/quotes/quote.ts'
import type { InstantMs } from '../../domain/time.ts'
import { batched } from '../batched.ts'
import type { DeskWorld } from '../world.ts'
import type { CurrencyView, Desk, DeskOutcome, MarketView, RateRequest, RateView } from './desk.ts'
import { assetsByCurrency, type FindPair, makeQuote, pairFinder, readAmount, readMarket } from './quoting.ts'

/** GET /v1/rate and GET /v1/currencies. */
export function rateDesk(world: DeskWorld): Pick<Desk, 'rate' | 'isCurrent' | 'currencies'> {
  // Many fixed quotes at once are one write; each is answered when it is stored.
  const storeLock = batched(
    async (locks: readonly RateLock[]) => {
      await insertRateLocks(world.db, locks, world.clock.nowMs())
      return locks
    },
    { endOfTurn: world.clock.endOfTurn },
  )
  const findPair = pairFinder(world.market.assets)
  const listed = [...assetsByCurrency(world.market.assets)].map(listCurrency)
  return {
    rate: (request) => {
      const quoted = quoteRequest(world, findPair, request)
      if (!quoted.ok) return quoted
      const { quote, market } = quoted.value
      const view = showQuote(quote, market, request.rateType)
      if (request.rateType === 'float') return { ok: true, value: view }
      const lock = lockOf(world, quote, world.clock.nowMs())
      const value = { ...view, expires_at: lock.expiresAtMs, rate_id: lock.rateId }
      return storeLock(lock).then(() => ({ ok: true, value }))
    },
    isCurrent: (view) => {
      const market = viewedMarkets.get(view)
      if (market === undefined) return false
      const now = readMarket(world.market, market, view.rate_type)
      return now.ok && now.value === market
    },
    currencies: async () =>
      Object.fromEntries(
        listed.map(({ code, own, view }) => {
          const enabled = own.some(world.market.isOffered) && world.market.isPriced(code)
          return [code, { ...view, enabled }]
        }),
      ),
  }
}

/** A quote becomes a promise until `expiresAtMs`. */
function lockOf(world: DeskWorld, quote: Quote, nowMs: InstantMs): RateLock {
  return {
    ...quote,
    rateId: world.randomId(),
    feeShare: world.policy.fees.fixed,
    expiresAtMs: nowMs + world.policy.lockMs,
  }
}

function quoteRequest(
  world: DeskWorld,
  findPair: FindPair,
  request: RateRequest,
): DeskOutcome<{ quote: Quote; market: Market }> {
  const pair = findPair(request)
  if (!pair.ok) return pair
  const amount = readAmount(request.direction === 'from' ? pair.value.from : pair.value.to, request.amount)
  if (!amount.ok) return amount
  const market = readMarket(world.market, pair.value, request.rateType)
  if (!market.ok) return market
  const quote = makeQuote(market.value, request.direction, amount.value)
  return quote.ok ? { ok: true, value: { quote: quote.value, market: market.value } } : quote
}

function showQuote(quote: Quote, market: Market, rateType: RateType): RateView {
  return {
    market: viewMarket(market, rateType),
    rate: showRate(quote.rate),
    from_amount: showAmount(quote.from, 'up'),
    to_amount: showAmount(quote.to, 'down'),
    fee: showAmount(quote.fee, 'up'),
  }
}

const marketViews = new WeakMap<Market, MarketView>()
const viewedMarkets = new WeakMap<MarketView, Market>()

/** A market is of one rate type. */
function viewMarket(market: Market, rateType: RateType): MarketView {
  const known = marketViews.get(market)
  if (known !== undefined) return known
  const { from, to } = market
  const { min, max } = sourceRange(market)
  const view = {
    from: from.currency,
    from_network: from.network,
    to: to.currency,
    to_network: to.network,
    rate_type: rateType,
    fee_percent: formatDecimal(market.fee, 2),
    network_fee: showAmount(market.networkFee, 'up'),
    min_amount: showAmount(min, 'up'),
    max_amount: showAmount(max, 'down'),
  }
  marketViews.set(market, view)
  viewedMarkets.set(view, market)
  return view
}

/** A currency as it is listed, but for whether it is available: that it is while one of its networks is, and it has a price. */
type Listed = {
  readonly code: CurrencyCode
  readonly own: readonly Asset[]
  readonly view: Omit<CurrencyView, 'enabled'>
}

function listCurrency([code, own]: readonly [CurrencyCode, readonly Asset[]]): Listed {
  const currency: Currency = currencies[code]
  const view = {
    networks: own.map(({ network }) => network),
    name: currency.name,
    logo: `/logos/${code}.svg`,
    color: currency.color,
    precision: currency.precision,
    min_amount: currency.minAmount,
    max_amount: currency.maxAmount,
    priority: currency.priority,
  }
  return { code, own, view }
}
