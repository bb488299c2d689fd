import { type Asset, type AssetId, assetOf, assets } from '../domain/catalog/assets.ts'
import type { CurrencyCode } from '../domain/catalog/currencies.ts'
import { parseAmount } from '../domain/money/amount.ts'
import { MINUTE_MS, SECOND_MS } from '../domain/time.ts'
import type { Environment } from './environment.ts'
import type { VariableName } from './variables.ts'

/** The operator's part of what the engine goes by. Basis points: 100 is 1 %. */
export type TradingSettings = {
  readonly fees: { readonly fixed: bigint; readonly float: bigint }
  readonly slippage: bigint
  readonly tolerance: bigint
  /** From this amount (whole units, decimal text) on, a deposit waits for the larger number of confirmations. */
  readonly largeDeposits: Partial<Record<CurrencyCode, string>>
  /** When neither exchange nor payout was possible for this long, the order goes to EMERGENCY. */
  readonly stallMs: number
  /** A chain in trouble for this long takes its currencies off the list; a currency without a price for as long is off it, too. */
  readonly chainTroubleMs: number
  /** No new orders into or out of these. */
  readonly paused: readonly AssetId[]
  readonly poolSize: number
  /** A deposit is moved to the reserve when it is worth this many times what that costs; 0: never. */
  readonly sweepCostMultiple: bigint
}

export type PriceSettings = {
  /** ccxt names. */
  readonly venues: readonly string[]
  readonly quorum: number
  readonly ageMsMax: number
  readonly jumpPercentMax: number
}

export function readTrading(from: Environment): TradingSettings {
  const bps = (name: VariableName, max: number) => BigInt(from.integer(name, 0, max))
  const large = from.text('CAMBIST_BTC_LARGE_AMOUNT') ?? ''
  const parsed = parseAmount(assetOf('BTC:BTC'), large)
  if (!parsed.ok) from.report('CAMBIST_BTC_LARGE_AMOUNT', parsed.rejection.message)
  return {
    fees: { fixed: bps('CAMBIST_FEE_FIXED_BPS', 5_000), float: bps('CAMBIST_FEE_FLOAT_BPS', 5_000) },
    slippage: bps('CAMBIST_SLIPPAGE_BPS', 5_000),
    tolerance: bps('CAMBIST_DEPOSIT_TOLERANCE_BPS', 500),
    largeDeposits: { BTC: large },
    stallMs: from.integer('CAMBIST_EMERGENCY_AFTER_MINUTES', 1, 10_080) * MINUTE_MS,
    chainTroubleMs: from.integer('CAMBIST_CHAIN_TROUBLE_SECONDS', 5, 3_600) * SECOND_MS,
    paused: readPaused(from),
    poolSize: from.integer('CAMBIST_ADDRESS_POOL_SIZE', 1, 100_000),
    sweepCostMultiple: BigInt(from.integer('CAMBIST_SWEEP_COST_MULTIPLE', 0, 100_000)),
  }
}

/** A coin's word is that of its chain, and means all that the chain carries; a token's means it on all of its networks. */
function readPaused(from: Environment): readonly AssetId[] {
  const words = from.list('CAMBIST_PAUSED')
  const isMeant = (word: string) => (asset: Asset) =>
    [asset.chain, asset.currency, asset.id].some((name) => name === word)
  for (const word of words.filter((each) => !assets.some(isMeant(each)))) {
    const choices = [...new Set(assets.map(({ currency }) => currency))].join(', ')
    from.report('CAMBIST_PAUSED', `names ${word}; name ${choices}, or one on one network as USDT:TRC20`)
  }
  return assets.filter((asset) => words.some((word) => isMeant(word)(asset))).map(({ id }) => id)
}

/** Three is the least of which a median cannot be moved by a single liar; below it nothing is quoted anyway. */
const QUORUM_MIN = 3

/**
 * Only these vote for USDT, which is never priced in itself; what the others say is in USDT, and counts for nothing without
 * its price. The venues themselves are in prices/ccxt, and the tests compare.
 */
export const dollarVenues: readonly string[] = ['bitfinex', 'bitstamp', 'coinbase', 'kraken']
/** Prices are read every 10 s and may be 8 s on their way: one has to last until the next has come. */
const AGE_SECONDS_MIN = 20
const NO_USDT = 'USDT would have no price, nor what is priced in it'

export function readPrices(from: Environment): PriceSettings {
  const venues = [...new Set(from.list('CAMBIST_PRICE_VENUES'))]
  for (const venue of venues.filter((name) => !/^[a-z0-9]{2,30}$/.test(name))) {
    from.report('CAMBIST_PRICE_VENUES', `${venue} is not a ccxt name such as kraken`)
  }
  return {
    venues,
    quorum: readQuorum(from, venues),
    ageMsMax: from.integer('CAMBIST_PRICE_AGE_MAX_SECONDS', AGE_SECONDS_MIN, 3_600) * SECOND_MS,
    jumpPercentMax: from.integer('CAMBIST_PRICE_JUMP_MAX_PERCENT', 1, 50),
  }
}

function readQuorum(from: Environment, venues: readonly string[]): number {
  const quorum = from.integer('CAMBIST_PRICE_QUORUM', QUORUM_MIN, 100)
  const withDollars = venues.filter((name) => dollarVenues.includes(name))
  const allWithDollars = dollarVenues.join(', ')
  if (quorum > dollarVenues.length) {
    from.report(
      'CAMBIST_PRICE_QUORUM',
      `is more than the venues with dollar markets (${allWithDollars}): ${NO_USDT}; set at most ${dollarVenues.length}`,
    )
  } else if (venues.length < quorum) {
    from.report(
      'CAMBIST_PRICE_VENUES',
      `names ${venues.length}, fewer than the quorum of ${quorum}: nothing would be quoted; name more venues`,
    )
  } else if (withDollars.length < quorum) {
    from.report(
      'CAMBIST_PRICE_VENUES',
      `names ${withDollars.length} with dollar markets, fewer than the quorum of ${quorum}: ${NO_USDT}; name more of ${allWithDollars}`,
    )
  }
  return quorum
}
