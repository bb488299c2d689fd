import { type Loop, startLoop } from '../loop.ts'
import type { World } from '../world.ts'
import { type Relay, relayEvents } from './relay.ts'

/** What only processes with the role notifier have. */
export type NotifierWorld = World

const relays: readonly Relay[] = []

/** Tells people of what happened to their orders. Any number of processes may: rows are claimed. */
export function startNotifying(world: NotifierWorld): Loop[] {
  return [startLoop(world, 'relay', world.policy.restMs, () => relayEvents(world, relays))]
}
