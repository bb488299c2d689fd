import type { Clock } from '../clock.ts'
import { type ChainHead, readHeads } from '../db/chain_heads.ts'
import type { Sql } from '../db/database.ts'
import { type Reserve, readReserves } from '../db/reserves.ts'
import { type Asset, type AssetId, assetOf, nativeAsset } from '../domain/catalog/assets.ts'
import type { ChainId } from '../domain/catalog/networks.ts'
import { type Amount, amountOf } from '../domain/money/amount.ts'
import { accept, type Outcome, refuse } from '../domain/outcome.ts'
import type { RateType } from '../domain/quotes/quote.ts'
import { costIn, type Market, midRate } from '../domain/quotes/quote.ts'
import type { InstantMs } from '../domain/time.ts'
import type { Prices } from '../prices/price_source.ts'
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
  refresh(): Promise<void>
  /** Whether the chain is being looked at. */
  isChainUp(chain: ChainId): boolean
  /** Whether orders into or out of this asset can be taken now. */
  isOffered(asset: Asset): boolean
  headHeight(chain: ChainId): number | null
  /** Everything a quote depends on, or why there can be none now. */
  read(from: Asset, to: Asset, rateType: RateType): Outcome<Market, MarketRejection>
  /** Whether an order that expires or expired at `expiresAtMs` may still go on at its locked rate. */
  isLockOffered(expiresAtMs: InstantMs): boolean
  /** What sending this asset out costs, in itself. */
  payoutCost(asset: Asset): Amount | null
}

export function marketBoard(parts: {
  readonly db: Sql
  readonly clock: Clock
  readonly prices: Prices
  readonly policy: Policy
  /** What the connected chains carry. */
  readonly assets: ReadonlySet<AssetId>
}): MarketBoard {
  const { db, clock, prices, policy } = parts
  let heads = new Map<ChainId, ChainHead>()
  let reserves = new Map<AssetId, Reserve>()

  const isChainUp = (chain: ChainId): boolean => {
    const head = heads.get(chain)
    return head !== undefined && clock.wallMs() - head.lookedWallMs < policy.chainTroubleMs
  }

  const isOffered = ({ id, chain }: Asset) => parts.assets.has(id) && isChainUp(chain)

  const payoutCost = (asset: Asset): Amount | null => {
    const reserve = reserves.get(asset.id)
    const native = nativeAsset(asset.chain)
    const nativePrice = prices.usd(native.currency)
    const price = prices.usd(asset.currency)
    if (reserve === undefined || nativePrice === null || price === null) return null
    return costIn(asset, amountOf(native.id, reserve.payoutCost), nativePrice, price)
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
      reserve: amountOf(to.id, reserves.get(to.id)?.spendable ?? 0n),
    }
  }
  const markets = rememberMarkets(prices, gather)

  return {
    refresh: async () => {
      const [newHeads, newReserves] = await Promise.all([readHeads(db), readReserves(db)])
      heads = new Map(newHeads.map((head) => [head.chain, head]))
      reserves = new Map(newReserves.map((reserve) => [reserve.asset, reserve]))
      markets.forget()
    },
    isChainUp,
    isOffered,
    headHeight: (chain) => heads.get(chain)?.block.height ?? null,
    payoutCost,
    isLockOffered: (expiresAtMs) => clock.nowMs() < expiresAtMs + policy.lockOfferedMs,
    read: (from, to, rateType) => {
      const missing = [from, to].find((asset) => !isOffered(asset))
      if (missing !== undefined) return refuse(notAvailable(missing))
      const market = markets.read(from, to, rateType)
      return market === null ? refuse(noPrice) : accept(market)
    },
  }
}

function notAvailable({ currency, network }: Asset): MarketRejection {
  return {
    code: 'MAINTENANCE',
    message: `${currency} on ${network} is not available at the moment; try again later`,
  }
}

const noPrice: MarketRejection = {
  code: 'RATE_UNAVAILABLE',
  message: 'there is no reliable price at the moment; try again soon',
}

type Gathered = { readonly basis: readonly (bigint | null)[]; readonly market: Market | null }

/** Markets as long as what they were made of stays what it is: quoting asks for the same ones again and again. */
function rememberMarkets(
  prices: Prices,
  gather: (from: Asset, to: Asset, rateType: RateType) => Market | null,
) {
  const known = new Map<string, Gathered>()
  return {
    forget: () => known.clear(),
    read: (from: Asset, to: Asset, rateType: RateType): Market | null => {
      const key = `${from.id} ${to.id} ${rateType}`
      const native = nativeAsset(to.chain).currency
      const basis = [prices.usd(from.currency), prices.usd(to.currency), prices.usd(native)]
      const remembered = known.get(key)
      if (remembered?.basis.every((price, index) => price === basis[index])) return remembered.market
      const market = gather(from, to, rateType)
      known.set(key, { basis, market })
      return market
    },
  }
}

/** The market of an order that exists already: limits and reserves do not matter for what was received. */
export function readMarketOf(
  board: MarketBoard,
  order: { readonly from: AssetId; readonly to: AssetId; readonly rateType: RateType },
): Market | null {
  const market = board.read(assetOf(order.from), assetOf(order.to), order.rateType)
  return market.ok ? market.value : null
}
