import type { Clock } from '../../clock.ts'
import type { OrderEvent } from '../../db/events.ts'
import { lengthenLines, type NewDelivery } from '../../db/webhook_lines.ts'
import { CALLBACK, findLoggedEndpoints } from '../../db/webhook_receivers.ts'
import { hostOf } from '../../domain/webhooks/receiver_url.ts'
import type { Relay } from './relay.ts'

/** Puts events into the lines of those who want to hear of them: the order's `callback_url`, and every endpoint of its account that its owner has not disabled. */
export function relayToWebhooks(clock: Clock): Relay {
  return async (tx, events) => {
    const accounts = [...new Set(events.map(({ accountId }) => accountId))]
    const endpoints = await findLoggedEndpoints(tx, accounts)
    const deliveries = events.flatMap((event) => [
      ...(event.callbackUrl === null ? [] : [deliveryOf(event, CALLBACK, event.callbackUrl)]),
      ...endpoints
        // One URL hears of an event once.
        .filter(({ accountId, url }) => accountId === event.accountId && url !== event.callbackUrl)
        .map(({ endpointId, url }) => deliveryOf(event, endpointId, url)),
    ])
    if (deliveries.length > 0) await lengthenLines(tx, deliveries, clock.nowMs())
  }
}

function deliveryOf(
  { orderId, accountId, sequence, atMs }: OrderEvent,
  receiver: string,
  url: string,
): NewDelivery {
  return { orderId, receiver, accountId, url, host: hostOf(url), sequence, eventAtMs: atMs }
}
