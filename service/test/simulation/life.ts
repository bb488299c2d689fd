import type { Chain } from '../../src/chains/chain.ts'
import type { Clock } from '../../src/clock.ts'
import type { Database } from '../../src/db/database.ts'
import { requireLease } from '../../src/db/leases.ts'
import type { ChainId } from '../../src/domain/catalog/networks.ts'
import { reconcileChain } from '../../src/engine/books/reconcile.ts'
import type { Desk } from '../../src/engine/desks/desk.ts'
import { openDesk } from '../../src/engine/desks/desks.ts'
import { exchangeOrders } from '../../src/engine/exchange.ts'
import { expireOrders } from '../../src/engine/expire.ts'
import { keepHouse } from '../../src/engine/housekeeping.ts'
import { leaseKeeper } from '../../src/engine/lease.ts'
import type { MarketBoard } from '../../src/engine/market.ts'
import { workPayouts } from '../../src/engine/payouts/work.ts'
import { fillPools } from '../../src/engine/pool.ts'
import { makeSeal } from '../../src/engine/seal.ts'
import { planSweeps } from '../../src/engine/sweeps/plan.ts'
import { watchOnce } from '../../src/engine/testing/watch_once.ts'
import { beginTurn } from '../../src/engine/watching/look.ts'
import type { Log, SigningWorld } from '../../src/engine/world.ts'
import type { Prices } from '../../src/prices/price_source.ts'
import type { Signer } from '../../src/signer/signer.ts'
import { connectSimulated, type NodeLines } from './chains/simulated_chains.ts'
import { ProcessDied } from './faults.ts'
import { sealKey } from './ground.ts'
import { openWorld, tokenOf } from './open_world.ts'
import { isSwept, type Watched } from './profile.ts'

/** What moves a step when it changes; a step that saw nothing new since its last look need not look. */
export type Topic = Watched | 'books' | 'time' | 'minutes'

export type Step = {
  readonly name: string
  readonly topics: readonly Topic[]
  /** How much it is in a hurry when there is something new. */
  readonly weight: number
  /** True: there is more to do at once. */
  run(): Promise<boolean>
}

/** One life of a process with every role, from its start to its death. */
export class Life {
  readonly name: string
  readonly world: SigningWorld
  readonly desk: Desk
  readonly steps: readonly Step[]
  diedAt: string | null = null

  constructor(name: string, parts: LifeParts) {
    this.name = name
    const { db, clock, prices, log, signer, sweeps, watched, largeBtc } = parts
    const connected = connectSimulated(parts.lines, async (chain) => parts.reserveOf(chain))
    const chains = new Map([...connected].map(([id, chain]) => [id, parts.bendChain(chain)]))
    const seal: SigningWorld['seal'] = (terms, whose) => makeSeal(sealKey, terms, whose)
    const world = openWorld({ db, clock, chains, prices, log, sweeps, watched, largeBtc })
    this.world = { ...world, market: parts.bendMarket(world.market), signer, seal }
    const { randomDigits, randomId } = parts
    this.desk = parts.bendDesk(openDesk({ ...this.world, tokenOf, randomDigits, randomId }))
    this.steps = stepsOf(this.world, name)
  }

  /** Throws in whatever the process still does. */
  readonly requireAlive = (): void => {
    if (this.diedAt !== null) throw new ProcessDied(this.diedAt)
  }
}

export type LifeParts = {
  readonly db: Database
  readonly clock: Clock
  readonly prices: Prices
  readonly log: Log
  readonly signer: Signer
  readonly lines: NodeLines
  /** What a known-bad engine takes a chain for. */
  readonly bendChain: (chain: Chain) => Chain
  /** What its clients speak with. */
  readonly bendDesk: (desk: Desk) => Desk
  /** What it prices by. */
  readonly bendMarket: (market: MarketBoard) => MarketBoard
  /** Where payouts of account chains leave from. */
  readonly reserveOf: (chain: ChainId) => string
  readonly watched: readonly Watched[]
  readonly sweeps: boolean
  /** From so much on a deposit on Bitcoin is large. */
  readonly largeBtc: string
  readonly randomDigits: (count: number) => string
  readonly randomId: () => string
}

/** What the loops of run.ts do, one look each. */
function stepsOf(world: SigningWorld, holder: string): readonly Step[] {
  const step = (name: string, topics: readonly Topic[], run: Step['run'], weight = 1): Step => ({
    name,
    topics,
    weight,
    run,
  })
  return [
    step('market', ['minutes', ...([...world.chains.keys()] as Watched[])], async () => {
      await world.market.refresh()
      return false
    }),
    step('expire', ['minutes'], () => expireOrders(world)),
    step('exchange', ['books', 'time'], () => exchangeOrders(world), 2),
    step('pool', [], () => fillPools(world), 0.1),
    step('housekeeping', [], () => keepHouse(world), 0.1),
    ...[...world.chains.values()].flatMap((chain) => {
      const id = chain.id as Extract<ChainId, Topic>
      return [
        step(`watch ${id}`, [id, 'minutes'], watching(world, id, holder), 2),
        step(`payouts ${id}`, ['books', id, 'time'], () => workPayouts(world, chain), 4),
        step(`reconcile ${id}`, ['books', id], reconciling(world, id, holder), 0.05),
        ...(isSwept(id) && world.policy.sweepCostMultiple !== 0n
          ? [
              step(`sweep plans ${id}`, ['time'], () => planSweeps(world, chain)),
              step(`sweeps ${id}`, [id, 'time'], () => workPayouts(world, chain, 'deposits')),
            ]
          : []),
      ]
    }),
  ]
}

function watching(world: SigningWorld, id: ChainId, holder: string): Step['run'] {
  const keeper = leaseKeeper(world, `watch:${id}`, holder)
  const watcher = {
    hold: keeper.hold,
    waitingTurn: beginTurn(),
    untold: [],
    vanished: new Map(),
    openingFailures: new Map(),
    finalAhead: { block: null },
  }
  return async () => {
    const chain = world.chains.get(id)
    const lease = await keeper.hold()
    return lease !== null && chain !== undefined && watchOnce(world, chain, lease, watcher)
  }
}

function reconciling(world: SigningWorld, id: ChainId, holder: string): Step['run'] {
  const keeper = leaseKeeper(world, `reconcile:${id}`, holder)
  return async () => {
    const chain = world.chains.get(id)
    const lease = await keeper.hold()
    if (lease === null || chain === undefined) return false
    await reconcileChain(world, chain, { guard: (tx) => requireLease(tx, lease) })
    return false
  }
}
