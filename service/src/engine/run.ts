import type { Chain } from '../chains/chain.ts'
import type { Sql } from '../db/database.ts'
import { requireLease } from '../db/leases.ts'
import { depositsLie } from '../domain/catalog/networks.ts'
import { beginPace, reconcileChain } from './books/reconcile.ts'
import { exchangeOrders } from './exchange.ts'
import { expireOrders } from './expire.ts'
import { keepHouse } from './housekeeping.ts'
import { keepWhile, leaseKeeper } from './lease.ts'
import { type Loop, openTeller, startLoop } from './loop.ts'
import { guardSigner, KEYSTORE_REST_MS } from './own_keystore.ts'
import { ringDue, workPayouts } from './payouts/work.ts'
import { fillPools } from './pool.ts'
import { planSweeps } from './sweeps/plan.ts'
import { expectGrowth } from './watching/growth.ts'
import { beginAwake, beginTurn, stayAwake, takeBacklog } from './watching/look.ts'
import { awaitCatchUp } from './watching/silence.ts'
import { checkIdentity, watchChain } from './watching/watch.ts'
import type { SigningWorld, World } from './world.ts'

const RECONCILE_REST_MS = 3_000
/** Behind one address there may be another node tomorrow. */
const IDENTITY_REST_MS = 5_000
const HOUSEKEEPING_REST_MS = 30_000
/** How many times longer than others the loops of sweeps rest. */
const SWEEP_RESTS = 5
/** The same of loops of payouts, which are rung when something is due, and look by themselves should nobody ring. */
const PAYOUT_RESTS = 10

/** Figures for quotes, in every process that quotes or exchanges. */
export function startMarket(world: World): Loop {
  const refresh = async () => {
    await world.market.refresh()
    return false
  }
  return startLoop(world, 'market', world.policy.restMs, refresh, world.alarms.of('market'))
}

/** Looks at every chain; of several processes, one at a time looks at each. */
export function startWatching(world: World, holder: string): Loop[] {
  return [...world.chains.values()].map((chain) => startChainWatch(world, chain, holder))
}

function startChainWatch(world: World, chain: Chain, holder: string): Loop {
  const keeper = leaseKeeper(world, `watch:${chain.id}`, holder)
  const awake = beginAwake(world.clock.nowMs())
  const hold = () => {
    stayAwake(awake, world.clock.nowMs())
    return keeper.hold()
  }
  const watcher = {
    ...{ hold, awake },
    requireGrowth: expectGrowth(world, chain.id),
    isCatchingUp: awaitCatchUp(world, chain.id),
    waitingTurn: beginTurn(),
    untold: [],
    vanished: new Map(),
    openingFailures: new Map(),
    backlog: { unread: null },
    finalAhead: { block: null },
  }
  let checkedWallMs = 0
  const look = async () => {
    const unreadSinceMs = takeBacklog(watcher.backlog, world.clock.nowMs())
    const lease = await hold()
    if (lease === null) return false
    // A single answer (a whole block, a trace of one) may take longer than the lease holds, and another would begin anew each time.
    return keepWhile(world, { hold }, async () => {
      const wallMs = world.clock.wallMs()
      // The distance: of a clock that was set back, nothing would be due until it has caught up.
      if (Math.abs(wallMs - checkedWallMs) >= IDENTITY_REST_MS) {
        await checkIdentity(world, chain, lease)
        checkedWallMs = wallMs
      }
      return watchChain(world, chain, lease, { ...watcher, unreadSinceMs })
    })
  }
  const name = `watch ${chain.id}` as const
  const loop = startLoop(world, name, world.policy.restMs, look, world.alarms.of(name))
  return {
    name,
    stop: async () => {
      await loop.stop()
      await keeper.release()
    },
  }
}

/** Decides and pays. Any number of processes may: rows are claimed, and facts count once. */
export function startEngine(bare: SigningWorld, holder: string): Loop[] {
  const { signer, compare } = guardSigner(bare, holder)
  const world = { ...bare, signer }
  const { restMs } = world.policy
  const compareAgain = async () => {
    await compare()
    return false
  }
  return [
    startLoop(world, 'keystore', KEYSTORE_REST_MS, compareAgain),
    startLoop(world, 'expire', restMs, () => expireOrders(world), world.alarms.of('expire')),
    startLoop(world, 'exchange', restMs, () => exchangeOrders(world), world.alarms.of('exchange')),
    startLoop(world, 'pool', restMs, () => fillPools(world), world.alarms.of('pool')),
    startLoop(world, 'housekeeping', HOUSEKEEPING_REST_MS, () => keepHouse(world)),
    startRinging(world),
    ...[...world.chains.values()].flatMap((chain) => [
      startPaying(world, chain),
      startReconciling(world, chain, holder),
      ...(depositsLie[chain.family] === 'addresses' ? startSweeping(world, chain) : []),
    ]),
  ]
}

function startRinging(world: SigningWorld): Loop {
  return startLoop(world, 'due payouts', world.policy.restMs, async () => {
    await ringDue(world)
    return false
  })
}

function startPaying(world: SigningWorld, chain: Chain): Loop {
  const name = `payouts ${chain.id}` as const
  const restMs = world.policy.restMs * PAYOUT_RESTS
  return startLoop(world, name, restMs, () => workPayouts(world, chain), world.alarms.of(name))
}

/** Beside the payouts: a chain full of sweeps keeps no customer waiting. */
function startSweeping(world: SigningWorld, chain: Chain): Loop[] {
  const { restMs } = world.policy
  const teller = openTeller(world.clock)
  const plan = () => planSweeps(world, chain, teller)
  return [
    startLoop(world, `sweep plans ${chain.id}`, restMs * SWEEP_RESTS, plan),
    startLoop(world, `sweeps ${chain.id}`, restMs * SWEEP_RESTS, () => workPayouts(world, chain, 'deposits')),
  ]
}

function startReconciling(world: World, chain: Chain, holder: string): Loop {
  const keeper = leaseKeeper(world, `reconcile:${chain.id}`, holder)
  const pace = beginPace()
  return startLoop(world, `reconcile ${chain.id}`, RECONCILE_REST_MS, async () => {
    const lease = await keeper.hold()
    if (lease === null) return false
    const guard = (tx: Sql) => requireLease(tx, lease)
    await keepWhile(world, keeper, () => reconcileChain(world, chain, { pace, guard }))
    return false
  })
}
