import type { WebhookEndpoint } from '../../accounts/webhook_endpoints.ts'
import { accept, refuse } from '../../domain/outcome.ts'
import type { DeliveryView, WebhookDesk } from '../../engine/desks/webhook_desk.ts'
import type { EndpointDesk } from '../parts.ts'

export const deliveryView: DeliveryView = {
  id: 'CB4821093377160542-2-callback',
  webhook_id: 'evt_CB4821093377160542_2',
  order_id: 'CB4821093377160542',
  sequence: 2,
  status: 'PENDING',
  url: 'https://shop.example/hooks',
  endpoint_id: null,
  state: 'waiting',
  event_at: 1_790_000_000_000,
  next_attempt_at: 1_790_000_005_000,
  ended_at: null,
  attempts: [
    {
      began_at: 1_790_000_000_010,
      ended_at: 1_790_000_000_020,
      outcome: 'answered',
      http_status: 500,
      response: 'a "b" \\',
    },
    { began_at: 1_790_000_005_010, ended_at: null, outcome: 'unknown', http_status: null, response: null },
  ],
}

export const endpointView: WebhookEndpoint = {
  endpointId: 'we_0123456789abcdef',
  url: 'https://shop.example/all',
  createdAtMs: 1_790_000_000_000,
  disabledAtMs: 1_790_000_001_000,
  disabledBy: 'receiver',
}

/** Answers with fixed views and remembers what it was asked. */
export function fakeWebhooks() {
  const asked: unknown[][] = []
  const webhooks: WebhookDesk = {
    listDeliveries: async (...args) => {
      asked.push(args)
      const next = {
        eventAtMs: 1_790_000_000_000,
        orderId: 'CB4821093377160542',
        receiver: 'callback',
        sequence: 2,
      }
      return { deliveries: [deliveryView], next }
    },
    redeliver: async (...args) => {
      asked.push(args)
      return args[1] === deliveryView.id ? accept({ delivery: deliveryView, isReplay: false }) : null
    },
    redeliverSince: async (...args) => {
      asked.push(args)
      return accept({ redelivered: 7, isReplay: true })
    },
  }
  const endpoints: EndpointDesk = {
    list: async () => [endpointView],
    create: async (_owner, url, retry) => {
      asked.push([url, retry])
      if (url.includes('eleventh')) {
        return refuse({
          code: 'too_many_endpoints',
          message: 'an account has at most 10 endpoints: delete one first',
        })
      }
      if (url.includes('conflict'))
        return refuse({ code: 'IDEMPOTENCY_CONFLICT', message: 'another request' })
      const endpoint = { ...endpointView, url, disabledAtMs: null, disabledBy: null }
      return accept({ endpoint, isReplay: url.includes('again') })
    },
    remove: async (_accountId, id) =>
      id === endpointView.endpointId ? accept(null) : refuse({ code: 'endpoint_not_found', message: '' }),
  }
  return { webhooks, endpoints, asked }
}
