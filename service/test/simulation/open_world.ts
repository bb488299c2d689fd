import { createHmac } from 'node:crypto'
import type { Chain } from '../../src/chains/chain.ts'
import type { Clock } from '../../src/clock.ts'
import type { Database } from '../../src/db/database.ts'
import { type ChainId, chainFacts } from '../../src/domain/catalog/networks.ts'
import { openAlarms } from '../../src/engine/alarms.ts'
import { defaultPolicy } from '../../src/engine/default_policy.ts'
import { marketBoard } from '../../src/engine/market.ts'
import type { Log, World } from '../../src/engine/world.ts'
import type { Prices } from '../../src/prices/price_source.ts'
import { simulatedTokens } from './chains/simulated_chains.ts'

/** One token is enough as well; each costs every look at its chain. */
const LEFT_OUT = 'USDC:ERC20'

export function openWorld(parts: {
  readonly db: Database
  readonly clock: Clock
  readonly chains: ReadonlyMap<ChainId, Chain>
  readonly prices: Prices
  readonly log: Log
  readonly sweeps: boolean
  readonly watched: readonly ChainId[]
  /** From so much on a deposit on Bitcoin is large. */
  readonly largeBtc: string
}): World {
  const chains = new Map(
    [...parts.chains]
      .filter(([id]) => parts.watched.includes(id))
      .map(([id, chain]) => [id, { ...chain, assets: chain.assets.filter((asset) => asset !== LEFT_OUT) }]),
  )
  const sweepCostMultiple = parts.sweeps ? defaultPolicy.sweepCostMultiple : 0n
  // One thing at a time in each loop: what goes on at the same moment is for the scheduler to say.
  const largeDeposits = { BTC: parts.largeBtc }
  const policy = { ...defaultPolicy, largeDeposits, poolSize: 4, atOnce: 1, sweepCostMultiple }
  const assets = new Set([...chains.values()].flatMap((chain) => chain.assets))
  const market = marketBoard({ ...parts, policy, assets })
  // Nothing rests here: the scheduler says who looks next, and nobody hears the bell.
  return { ...parts, chains, policy, market, alarms: openAlarms(), ...simulatedTokens }
}

export const quietLog: Log = { info: () => {}, warn: () => {}, error: () => {} }

/** What finds an order without an account. */
export function tokenOf(orderId: string): string {
  return createHmac('sha256', 'order tokens').update(orderId).digest('base64url')
}

/**
 * The rules are the same with fewer blocks to wait for, and every block is a dozen statements: most schedules have fewer
 * than Ethereum and TRON really ask, some have Ethereum's own number.
 */
export function waitForBlocks(confirmations: number): void {
  for (const id of ['ETH', 'TRX'] as const)
    Object.assign(chainFacts[id], { confirmations, confirmationsLarge: confirmations })
}
