import { openAlarm } from '../alarms.ts'
import { type Loop, startLoop } from '../loop.ts'
import { startDelivering } from './deliveries.ts'
import { mailRelay } from './mail_relay.ts'
import { type Relay, relayEvents, type StuckOrders } from './relay.ts'
import { relayToWebhooks } from './relay_webhooks.ts'
import { type MailParts, startMailing } from './send_mails.ts'
import type { WebhookWorld } from './webhook_world.ts'

/** What only processes with the role notifier have. */
export type NotifierWorld = WebhookWorld & { readonly mails: MailParts }

/** Tells people of what happened to their orders. Any number of processes may: rows are claimed. */
export function startNotifying(world: NotifierWorld): Loop[] {
  const alarm = openAlarm()
  let isAny = false
  const noteAny: Relay = async () => {
    isAny = true
  }
  const relays: readonly Relay[] = [mailRelay(world), relayToWebhooks(world.clock), noteAny]
  const stuck: StuckOrders = new Map()
  const handOn = async () => {
    isAny = false
    const hasMore = await relayEvents(world, relays, stuck)
    if (isAny) alarm.ring()
    return hasMore
  }
  return [
    startLoop(world, 'relay', world.policy.restMs, handOn, world.alarms.of('relay')),
    startMailing(world, world.mails, alarm),
    startDelivering(world, alarm),
  ]
}
