import { isAboutData, type Sql } from '../../db/database.ts'
import { EVENTS_AT_ONCE, findEventsToRelay, noteRelayed, type OrderEvent } from '../../db/events.ts'
import type { OrderId } from '../../domain/orders/identifiers.ts'
import { HOUR_MS, type InstantMs, SECOND_MS } from '../../domain/time.ts'
import type { World } from '../world.ts'

/**
 * Turns events into rows that are due, for one way of telling people. Runs in the transaction that notes how far the
 * events have been handed on, and may get the same events again from another process: a row exists once.
 */
export type Relay = (tx: Sql, events: readonly OrderEvent[]) => Promise<void>

const ORDERS_A_STEP = 200

/** Orders of which something cannot be written, and how long each is left alone, by the wall clock. */
export type StuckOrders = Map<
  OrderId,
  { readonly failures: number; readonly sinceWallMs: InstantMs; readonly restsMs: number }
>

/**
 * Hands on what happened since the last time. True: there may be more. An order of which something cannot be written waits
 * with all that happens to it, and is tried again by itself, ever less often: nobody else waits for it. `stuck` keeps in mind
 * which they are, from one time to the next.
 */
export async function relayEvents(
  world: World,
  relays: readonly Relay[],
  stuck: StuckOrders = new Map(),
): Promise<boolean> {
  const resting = restingAt(stuck, world.clock.wallMs())
  const events = await findEventsToRelay(world.db, ORDERS_A_STEP, resting)
  const orders = Map.groupBy(events, ({ orderId }) => orderId)
  const isCut = [...orders.values()].some(({ length }) => length === EVENTS_AT_ONCE)
  const hasMore = orders.size === ORDERS_A_STEP || isCut
  if (!hasMore) forgetOthers(stuck, new Set([...resting, ...orders.keys()]))
  const fresh = events.filter(({ orderId }) => !stuck.has(orderId))
  const areWritten = await handOnTogether(world, relays, fresh)
  const alone = [...orders].filter(([orderId]) => !areWritten || stuck.has(orderId))
  for (const [orderId, ofOrder] of alone) await handOnAlone(world, relays, stuck, orderId, ofOrder)
  return hasMore
}

/** False: one of them may be to blame. */
async function handOnTogether(
  world: World,
  relays: readonly Relay[],
  events: readonly OrderEvent[],
): Promise<boolean> {
  try {
    if (events.length > 0) await handOn(world, relays, events)
    return true
  } catch (error) {
    if (isAboutOrder(error)) return false
    throw error
  }
}

async function handOnAlone(
  world: World,
  relays: readonly Relay[],
  stuck: StuckOrders,
  orderId: OrderId,
  events: readonly OrderEvent[],
): Promise<void> {
  try {
    await handOn(world, relays, events)
    stuck.delete(orderId)
  } catch (error) {
    if (!isAboutOrder(error)) throw error
    const failures = (stuck.get(orderId)?.failures ?? 0) + 1
    const restsMs = Math.min(SECOND_MS * 2 ** failures, HOUR_MS)
    stuck.set(orderId, { failures, sinceWallMs: world.clock.wallMs(), restsMs })
    world.log.error(
      { order: orderId, failures, rests_ms: restsMs, err: error },
      'an order could not be told of',
    )
  }
}

/**
 * What one order can cause: values that cannot be written, and an event that the code stumbles over. A plain Error may be a lost line of
 * pg, and then all of them wait.
 */
function isAboutOrder(error: unknown): boolean {
  return isAboutData(error) || error instanceof TypeError || error instanceof RangeError
}

async function handOn(world: World, relays: readonly Relay[], events: readonly OrderEvent[]): Promise<void> {
  const reached = new Map(events.map(({ orderId, sequence }) => [orderId, sequence]))
  await world.db.transaction(async (tx) => {
    for (const relay of relays) await relay(tx, events)
    await noteRelayed(
      tx,
      [...reached].map(([orderId, sequence]) => ({ orderId, sequence })),
    )
  })
}

/** A clock that was set back does not tell how long one has rested. */
function restingAt(stuck: StuckOrders, wallMs: InstantMs): OrderId[] {
  return [...stuck].flatMap(([orderId, { sinceWallMs, restsMs }]) =>
    wallMs >= sinceWallMs && wallMs < sinceWallMs + restsMs ? [orderId] : [],
  )
}

/** Another process could write them. */
function forgetOthers(stuck: StuckOrders, waiting: ReadonlySet<OrderId>): void {
  for (const orderId of stuck.keys()) if (!waiting.has(orderId)) stuck.delete(orderId)
}
