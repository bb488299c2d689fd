import type { Environment } from './environment.ts'

export type TradingSettings = {
  readonly feeFixedBps: number
  readonly feeFloatBps: number
  readonly slippageBps: number
  readonly depositToleranceBps: number
  readonly emergencyAfterMs: number
}

export type PriceSettings = {
  /** ccxt names. */
  readonly venues: readonly string[]
  readonly quorum: number
  readonly ageMaxMs: number
  readonly jumpMaxBps: number
}

export function readTrading(from: Environment): TradingSettings {
  return {
    feeFixedBps: from.integer('CAMBIST_FEE_FIXED_BPS', 0, 5_000),
    feeFloatBps: from.integer('CAMBIST_FEE_FLOAT_BPS', 0, 5_000),
    slippageBps: from.integer('CAMBIST_SLIPPAGE_BPS', 0, 5_000),
    depositToleranceBps: from.integer('CAMBIST_DEPOSIT_TOLERANCE_BPS', 0, 500),
    emergencyAfterMs: from.integer('CAMBIST_EMERGENCY_AFTER_MINUTES', 1, 10_080) * 60_000,
  }
}

/** One source alone could set our prices, so mainnet asks for a median that a single liar cannot move. */
export function readPrices(from: Environment, isMainnet: boolean): PriceSettings {
  const venues = [...new Set(from.list('CAMBIST_PRICE_VENUES'))]
  for (const venue of venues.filter((name) => !/^[a-z0-9]{2,30}$/.test(name))) {
    from.report('CAMBIST_PRICE_VENUES', `${venue} is not a ccxt name such as kraken`)
  }
  const venuesMin = isMainnet ? 3 : 1
  if (venues.length < venuesMin) {
    from.report(
      'CAMBIST_PRICE_VENUES',
      `names ${venues.length} venues; at least ${venuesMin} are needed here`,
    )
  }
  const quorum = from.integer('CAMBIST_PRICE_QUORUM', isMainnet ? 2 : 1, 100)
  if (quorum > venues.length) {
    from.report(
      'CAMBIST_PRICE_QUORUM',
      `is ${quorum}, but there are only ${venues.length} venues: nothing would be quoted`,
    )
  }
  return {
    venues,
    quorum,
    ageMaxMs: from.integer('CAMBIST_PRICE_AGE_MAX_SECONDS', 1, 3_600) * 1_000,
    jumpMaxBps: from.integer('CAMBIST_PRICE_JUMP_MAX_BPS', 1, 10_000),
  }
}
