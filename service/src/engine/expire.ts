import { findExpired } from '../db/orders.ts'
import { assets } from '../domain/catalog/assets.ts'
import { apply } from './apply.ts'
import { atOnce } from './at_once.ts'
import type { World } from './world.ts'

const ORDERS_A_SWEEP = 200

/** Ends orders whose time is up and whose chain has been looked at since. True: there may be more. */
export async function expireOrders(world: World): Promise<boolean> {
  const watched = assets.filter(({ chain }) => world.chains.has(chain))
  const expired = await findExpired(world.db, watched, world.clock.nowMs(), ORDERS_A_SWEEP)
  // The sequence is in the key because a deposit that comes and vanishes lets an order expire a second time.
  await atOnce(world.policy.atOnce, expired, ({ orderId, sequence }) =>
    apply(world, orderId, `expired:${sequence}`, { kind: 'OrderExpired' }),
  )
  return expired.length === ORDERS_A_SWEEP
}
