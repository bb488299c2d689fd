import { AWAITED_KEY, findExpired, findKeptWaiting } from '../db/orders.ts'
import { assets } from '../domain/catalog/assets.ts'
import type { OrderId } from '../domain/orders/identifiers.ts'
import { AWAITED_MS } from '../domain/orders/lock_held.ts'
import type { InstantMs } from '../domain/time.ts'
import { apply } from './apply.ts'
import { atOnce } from './at_once.ts'
import type { World } from './world.ts'

const ORDERS_A_STEP = 200

/** Ends orders whose time is up and whose chain has been looked at since. True: there may be more. */
export async function expireOrders(world: World): Promise<boolean> {
  const { db, chains, clock } = world
  const watched = assets.filter(({ chain }) => chains.has(chain))
  const atMs = clock.nowMs()
  const expired = await findExpired(db, watched, atMs, ORDERS_A_STEP)
  const kept = await findKeptWaiting(db, [...chains.keys()], AWAITED_MS, atMs, ORDERS_A_STEP)
  await endAll(world, atMs, [
    // The sequence is in the key because a deposit that comes and vanishes lets an order expire a second time.
    ...expired.map(({ orderId, sequence }) => ({ orderId, factKey: `expired:${sequence}` })),
    // A block may bring what lay in the mempool just now, and be taken back: then the order is found again, later.
    ...kept.map(({ orderId, changes }) => ({ orderId, factKey: `${AWAITED_KEY}${changes}` })),
  ])
  return expired.length === ORDERS_A_STEP || kept.length === ORDERS_A_STEP
}

type Due = { readonly orderId: OrderId; readonly factKey: string }

/**
 * An order that fails whatever is tried is found first each time: none waits behind it. Where none of them can be ended it is not
 * theirs: this throws, so that it is tried again after a rest, and not told of for each.
 */
async function endAll(world: World, atMs: InstantMs, due: readonly Due[]): Promise<void> {
  const failed: Failed[] = []
  await atOnce(world.policy.atOnce, due, async ({ orderId, factKey }) => {
    try {
      await apply(world, orderId, factKey, { kind: 'OrderExpired', atMs })
    } catch (err) {
      failed.push({ orderId, err })
    }
  })
  if (failed.length > 0 && failed.length === due.length)
    throw new AggregateError(oneOfEach(failed), `none of ${due.length} due orders could be ended`)
  for (const { orderId, err } of failed)
    world.log.error({ order: orderId, err }, 'an order could not be ended')
}

type Failed = { readonly orderId: OrderId; readonly err: unknown }

const KINDS_TOLD = 10

/** What keeps one from ending by itself is not hidden behind what keeps all of them. An error that names its order is a kind of its own. */
function oneOfEach(failed: readonly Failed[]): Error[] {
  const kinds = Map.groupBy(failed, ({ err }) => String(err))
  return [...kinds.values()]
    .slice(0, KINDS_TOLD)
    .flatMap(([first]) =>
      first === undefined ? [] : [new Error(`${first.orderId} could not be ended`, { cause: first.err })],
    )
}
