import type { Sql } from '../../db/database.ts'
import { findEventsToRelay, noteRelayed, type OrderEvent } from '../../db/events.ts'
import type { World } from '../world.ts'

/**
 * Turns events into rows that are due, for one way of telling people. Runs in the transaction that notes how far the
 * events have been handed on, and may get the same events again from another process: a row exists once.
 */
export type Relay = (tx: Sql, events: readonly OrderEvent[]) => Promise<void>

const ORDERS_A_STEP = 200

/** Hands on what happened since the last time. True: there may be more. */
export async function relayEvents(world: World, relays: readonly Relay[]): Promise<boolean> {
  const events = await findEventsToRelay(world.db, ORDERS_A_STEP)
  if (events.length === 0) return false
  const reached = new Map(events.map(({ orderId, sequence }) => [orderId, sequence]))
  await world.db.transaction(async (tx) => {
    for (const relay of relays) await relay(tx, events)
    await noteRelayed(
      tx,
      [...reached].map(([orderId, sequence]) => ({ orderId, sequence })),
    )
  })
  return reached.size === ORDERS_A_STEP
}
