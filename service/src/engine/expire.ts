import { findExpired, findKeptWaiting } from '../db/orders.ts'
import { assets } from '../domain/catalog/assets.ts'
import type { OrderId } from '../domain/orders/identifiers.ts'
import { AWAITED_MS } from '../domain/orders/order.ts'
import type { InstantMs } from '../domain/time.ts'
import { apply } from './apply.ts'
import { atOnce } from './at_once.ts'
import type { World } from './world.ts'

const ORDERS_A_SWEEP = 200

/** Ends orders whose time is up and whose chain has been looked at since. True: there may be more. */
export async function expireOrders(world: World): Promise<boolean> {
  const { db, chains, clock, policy } = world
  const watched = assets.filter(({ chain }) => chains.has(chain))
  const atMs = clock.nowMs()
  const expired = await findExpired(db, watched, atMs, ORDERS_A_SWEEP)
  // The sequence is in the key because a deposit that comes and vanishes lets an order expire a second time.
  await atOnce(policy.atOnce, expired, ({ orderId, sequence }) =>
    expireSafely(world, orderId, `expired:${sequence}`, atMs),
  )
  const kept = await findKeptWaiting(db, [...chains.keys()], AWAITED_MS, atMs, ORDERS_A_SWEEP)
  // A block may bring what lay in the mempool just now, and be taken back: then the order is found again, later.
  await atOnce(policy.atOnce, kept, ({ orderId, changes }) =>
    expireSafely(world, orderId, `awaited:${changes}`, atMs),
  )
  return expired.length === ORDERS_A_SWEEP || kept.length === ORDERS_A_SWEEP
}

/** An order that fails whatever is tried is found first each time: none waits behind it. */
async function expireSafely(world: World, orderId: OrderId, key: string, atMs: InstantMs): Promise<void> {
  try {
    await apply(world, orderId, key, { kind: 'OrderExpired', atMs })
  } catch (error) {
    world.log.error({ order: orderId, err: error }, 'an order could not be ended')
  }
}
