import type { Chain } from '../../chains/chain.ts'
import { attemptsOf, type ClaimedOutflow } from '../../db/outflows.ts'
import { apply } from '../apply.ts'
import type { SigningWorld } from '../world.ts'
import { endExcluded } from './excluded.ts'
import { fillGap } from './fill_gap.ts'

/**
 * After too long in trouble. Before anything was written down, a person decides (EMERGENCY with NETWORK_PROBLEM); the
 * refund of an order has no other way and goes on waiting. After that only the chain can say that it is not on its
 * way: it does when somebody else has spent its coins; if not, its nonce is filled or its coins are taken back, so that
 * it will.
 */
export async function giveUpWaiting(
  world: SigningWorld,
  chain: Chain,
  outflow: ClaimedOutflow,
): Promise<void> {
  const nowMs = world.clock.nowMs()
  const { troubleSinceMs } = outflow
  if (troubleSinceMs === null || nowMs - troubleSinceMs < world.policy.stallMs) return
  const attempts = await attemptsOf(world.db, outflow.payoutId)
  if (attempts.length === 0) {
    if (outflow.kind !== 'payout') return
    await apply(world, outflow.orderId, `stalled:${outflow.payoutId}`, { kind: 'ExchangeStalled' })
    return
  }
  const isWithNetwork = attempts.some(({ answer }) => answer === 'accepted')
  if (isWithNetwork || (await endExcluded(world, chain, outflow))) return
  await fillGap(world, outflow)
}
