import type { Clock } from '../clock.ts'
import { type ChainHead, readHeads, silenceMs } from '../db/chain_heads.ts'
import type { Sql } from '../db/database.ts'
import { lastFigureDrawn, readReserves } from '../db/reserves.ts'
import { type Asset, type AssetId, assetOf, nativeAsset } from '../domain/catalog/assets.ts'
import type { CurrencyCode } from '../domain/catalog/currencies.ts'
import { type ChainId, chainFacts } from '../domain/catalog/networks.ts'
import { type Amount, amountOf, toPrecision } from '../domain/money/amount.ts'
import type { OrderId } from '../domain/orders/identifiers.ts'
import { isLockHeld } from '../domain/orders/lock_held.ts'
import type { Order } from '../domain/orders/order.ts'
import { accept, type Outcome, refuse } from '../domain/outcome.ts'
import type { RateType } from '../domain/quotes/quote.ts'
import { costIn, type Market, midRate } from '../domain/quotes/quote.ts'
import type { Prices, UsdPrice } from '../prices/price_source.ts'
import { readStoppedChains } from './books/stopped_outflows.ts'
import { type FreeReserve, openFreeReserves, type ReserveFigures } from './free_reserves.ts'
import type { Policy } from './policy.ts'

export type MarketRejection = {
  readonly code: 'RATE_UNAVAILABLE' | 'MAINTENANCE'
  readonly message: string
}

/**
 * What quoting needs to know, kept in memory: the database's figures of a moment ago and the price book's belief.
 * Reading it never waits; `refresh` is called by a loop.
 */
export type MarketBoard = {
  /** What is exchanged here at all: what the configuration says, whether or not it can be at this moment. */
  readonly assets: ReadonlySet<AssetId>
  refresh(): Promise<void>
  /** Whether the chain is being looked at. */
  isChainUp(chain: ChainId): boolean
  /** Whether new orders into or out of this asset are taken now. */
  isOffered(asset: Asset): boolean
  /** Whether orders that were taken can go on: also while the chain's outflows are stopped or the operator paused it. */
  isUsable(asset: Asset): boolean
  /** Whether it has a price, or had one lately: for `policy.chainTroubleMs` after its last one it is still listed. */
  isPriced(currency: CurrencyCode): boolean
  headHeight(chain: ChainId): number | null
  /** Everything a quote depends on, or why there can be none now; for what is new, `isOffered` comes before. */
  read(from: Asset, to: Asset, rateType: RateType): Outcome<Market, MarketRejection>
  /** Whether an order may still go on at its locked rate. */
  isLockHeld(order: Order): boolean
  /** What could be paid out of this asset for this order, less what is set aside for others; nothing as long as nobody has looked. */
  reserve(asset: Asset, orderId: OrderId): Amount
  /**
   * Settles an order by `work`: from this moment on its amount is no other order's to be promised in this process, until a later figure
   * of the reserve has it in it, or at once where `isUndone` says that nothing of it was written down. However often an order is
   * settled, at most one of them counts, and it holds its amount once.
   */
  setAside<Result>(
    orderId: OrderId,
    amount: Amount,
    work: () => Promise<Result>,
    isUndone?: (result: Result) => boolean,
  ): Promise<Result>
  /** What sending this asset out costs, in itself. */
  payoutCost(asset: Asset): Amount | null
  /** What a network took in its native asset, told in another asset of the exchange. */
  costOf(asset: Asset, cost: Amount): Amount | null
}

export function marketBoard(parts: {
  readonly db: Sql
  readonly clock: Clock
  readonly prices: Prices
  readonly policy: Policy
  /** What the configured chains carry, whether or not their nodes answer. */
  readonly assets: ReadonlySet<AssetId>
}): MarketBoard {
  const { db, clock, prices, policy, assets } = parts
  const chains = followChains(parts)
  const priced = followPrices(parts)
  const paused = new Set(policy.paused)
  const reserves = openFreeReserves()

  // A chain that is up may be so by looks that did not know an asset yet: there are no figures of it then.
  const isUsable = ({ id, chain }: Asset) =>
    assets.has(id) && chains.isUp(chain) && reserves.get(id) !== undefined

  // Where outflows are stopped neither a payout nor a refund would leave, for as long as nobody knows.
  const isOffered = (asset: Asset) =>
    isUsable(asset) && !chains.isStopped(asset.chain) && !paused.has(asset.id)

  const payoutCost = (asset: Asset): Amount | null => {
    const known = reserves.get(asset.id)
    if (known === undefined) return null
    return costOf(prices, asset, amountOf(nativeAsset(asset.chain).id, known.payoutCost))
  }

  const gather = (from: Asset, to: Asset, rateType: RateType): Market | null => {
    const fromPrice = prices.usd(from.currency)
    const toPrice = prices.usd(to.currency)
    const networkFee = payoutCost(to)
    if (fromPrice === null || toPrice === null || networkFee === null) return null
    return {
      from,
      to,
      mid: midRate(from, to, fromPrice, toPrice),
      fee: policy.fees[rateType],
      networkFee,
      reserve: amountOf(to.id, reserves.get(to.id)?.quotable ?? 0n),
    }
  }
  const markets = rememberMarkets(prices, (asset) => reserves.get(asset.id), gather)
  const look = inTurn(() => Promise.all([chains.refresh(), reserves.refresh(() => readFigures(db))]))

  return {
    assets,
    refresh: async () => {
      // Before anything can fail: that the database is away says nothing of prices.
      priced.note()
      await look()
    },
    isChainUp: chains.isUp,
    isOffered,
    isUsable,
    isPriced: priced.isPriced,
    headHeight: chains.headHeight,
    reserve: ({ id }, orderId) => amountOf(id, reserves.spendableBy(orderId, id)),
    setAside: reserves.setAside,
    payoutCost,
    costOf: (asset, cost) => costOf(prices, asset, cost),
    isLockHeld: (order) => isLockHeld(order, clock.nowMs()),
    read: (from, to, rateType) => {
      const rejection = whyUnavailable(isUsable, from, to)
      if (rejection !== null) return refuse(rejection)
      const market = markets.read(from, to, rateType)
      return market === null ? refuse(noPrice) : accept(market)
    },
  }
}

/** Each time after the one before has ended: of two looks at once the one that read first might be the last to be taken. */
function inTurn(look: () => Promise<unknown>): () => Promise<unknown> {
  let last: Promise<unknown> = Promise.resolve()
  return () => {
    const looked = last.then(look)
    last = looked.catch(() => {})
    return looked
  }
}

/** How the chains are, as the database said a moment ago. */
function followChains({ db, clock, policy }: { db: Sql; clock: Clock; policy: Policy }) {
  let heads = new Map<ChainId, ChainHead>()
  let stopped: ReadonlySet<ChainId> = new Set()
  return {
    refresh: async () => {
      const [newHeads, newStopped] = await Promise.all([readHeads(db), readStoppedChains(db)])
      heads = new Map(newHeads.map((head) => [head.chain, head]))
      stopped = newStopped
    },
    isUp: (chain: ChainId): boolean => {
      const head = heads.get(chain)
      return head !== undefined && silenceMs(head, clock.wallMs()) < policy.chainTroubleMs
    },
    isStopped: (chain: ChainId): boolean => stopped.has(chain),
    headHeight: (chain: ChainId): number | null => heads.get(chain)?.block.height ?? null,
  }
}

/**
 * Which currencies had a price lately, whoever asked for it. Quotes depend on the price of this instant; the list that clients keep
 * for minutes does not, because a jump is weighed for half a minute and is no reason to take its currency off.
 */
function followPrices({ prices, clock, policy, assets }: Parameters<typeof marketBoard>[0]) {
  const currencies = new Set([...assets].map((id) => assetOf(id).currency))
  // Of the wall clock, like the looks at a chain: nobody has waited longer because the time of orders was moved.
  const beganWallMs = clock.wallMs()
  const pricedWallMs = new Map<CurrencyCode, number>()
  return {
    note: (): void => {
      for (const currency of currencies)
        if (prices.usd(currency) !== null) pricedWallMs.set(currency, clock.wallMs())
    },
    isPriced: (currency: CurrencyCode): boolean => {
      if (prices.usd(currency) !== null) return true
      // The distance: of a clock that was set back, the last price would be one of now until the clock has caught up.
      const awayMs = Math.abs(clock.wallMs() - (pricedWallMs.get(currency) ?? beganWallMs))
      return awayMs < policy.chainTroubleMs
    },
  }
}

async function readFigures(db: Sql): Promise<ReserveFigures> {
  const [reserves, lastDrawn] = await Promise.all([readReserves(db), lastFigureDrawn(db)])
  return { reserves, lastDrawn }
}

/** Raised to what the interface shows. Null while nobody knows a price that it takes. */
function costOf(prices: Prices, asset: Asset, cost: Amount): Amount | null {
  // In itself it costs what it costs: nobody waits for a price to get his own coin back.
  if (asset.id === cost.asset) return toPrecision(cost, 'up')
  const nativePrice = prices.usd(assetOf(cost.asset).currency)
  const price = prices.usd(asset.currency)
  return nativePrice === null || price === null ? null : costIn(asset, cost, nativePrice, price)
}

/**
 * Why nothing can be exchanged between them now, at whatever rate; null where it can. `isAvailable`: what the board says of new orders, or
 * of those that were taken.
 */
export function whyUnavailable(
  isAvailable: MarketBoard['isOffered'],
  from: Asset,
  to: Asset,
): MarketRejection | null {
  if (!isAvailable(from)) return notAvailable(from)
  return isAvailable(to) ? null : notAvailable(to)
}

function notAvailable({ currency, network }: Asset): MarketRejection {
  return {
    code: 'MAINTENANCE',
    message: `${currency} on ${network} is not available at the moment; try again later`,
  }
}

export const noPrice: MarketRejection = {
  code: 'RATE_UNAVAILABLE',
  message: 'there is no reliable price at the moment; try again soon',
}

/** A market, and what it was made of. */
type Gathered = {
  readonly fromPrice: UsdPrice | null
  readonly toPrice: UsdPrice | null
  readonly nativePrice: UsdPrice | null
  readonly reserve: FreeReserve | undefined
  readonly market: Market | null
}

/** Markets as long as what they were made of stays what it is: quoting asks for the same ones again and again. */
function rememberMarkets(
  prices: Prices,
  reserveOf: (asset: Asset) => FreeReserve | undefined,
  gather: (from: Asset, to: Asset, rateType: RateType) => Market | null,
) {
  const known = {
    fixed: new Map<Asset, Map<Asset, Gathered>>(),
    float: new Map<Asset, Map<Asset, Gathered>>(),
  }
  return {
    read: (from: Asset, to: Asset, rateType: RateType): Market | null => {
      const fromPrice = prices.usd(from.currency)
      const toPrice = prices.usd(to.currency)
      const nativePrice = prices.usd(chainFacts[to.chain].native)
      const reserve = reserveOf(to)
      const found = known[rateType].get(from)?.get(to)
      if (
        found?.fromPrice === fromPrice &&
        found.toPrice === toPrice &&
        found.nativePrice === nativePrice &&
        found.reserve === reserve
      ) {
        return found.market
      }
      const market = gather(from, to, rateType)
      const byTo = known[rateType].get(from) ?? new Map<Asset, Gathered>()
      known[rateType].set(from, byTo.set(to, { fromPrice, toPrice, nativePrice, reserve, market }))
      return market
    },
  }
}
