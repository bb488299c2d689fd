import { type Loop, startLoop } from '../loop.ts'
import { startDelivering } from './deliveries.ts'
import { type Relay, relayEvents } from './relay.ts'
import { relayToWebhooks } from './relay_webhooks.ts'
import type { WebhookWorld } from './webhook_world.ts'

/** What only processes with the role notifier have. */
export type NotifierWorld = WebhookWorld

/** Tells people of what happened to their orders. Any number of processes may: rows are claimed. */
export function startNotifying(world: NotifierWorld): Loop[] {
  const relays: readonly Relay[] = [relayToWebhooks(world.clock)]
  return [
    startLoop(world, 'relay', world.policy.restMs, () => relayEvents(world, relays)),
    startDelivering(world),
  ]
}
