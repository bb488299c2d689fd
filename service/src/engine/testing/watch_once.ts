import type { Chain } from '../../chains/chain.ts'
import type { Lease } from '../../db/leases.ts'
import { beginAwake, beginTurn, type Watcher } from '../watching/look.ts'
import { watchChain } from '../watching/watch.ts'
import type { World } from '../world.ts'

/**
 * One look at a chain, whose answer is that of `watchChain`. But for what is `kept`, the watcher remembers nothing of earlier looks, never
 * loses its lease, and takes its node at its word: it neither asks that the node grows nor waits until it has caught up.
 */
export async function watchOnce(
  world: World,
  chain: Chain,
  lease: Lease,
  kept: Partial<Watcher> = {},
): Promise<boolean> {
  return watchChain(world, chain, lease, {
    hold: async () => lease,
    requireGrowth: () => {},
    isCatchingUp: () => false,
    waitingTurn: beginTurn(),
    untold: [],
    vanished: new Map(),
    openingFailures: new Map(),
    backlog: { unread: null },
    finalAhead: { block: null },
    awake: beginAwake(world.clock.nowMs()),
    unreadSinceMs: null,
    ...kept,
  })
}
