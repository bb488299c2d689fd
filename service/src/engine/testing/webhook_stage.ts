import type { WebhookAnswer, WebhookCall } from '../../channels/channel.ts'
import { systemClock } from '../../clock.ts'
import { bucketOf } from '../../domain/orders/identifiers.ts'
import type { OrderStatus } from '../../domain/orders/order.ts'
import type { DisabledEndpoint, ExhaustedDelivery, WebhookWorld } from '../notify/webhook_world.ts'
import { type BooksStage, placeOrder } from './books_stage.ts'

/** Orders whose events are made by hand, and a channel that does as a test says. */
export type WebhookStage = {
  readonly world: WebhookWorld
  /** Every call that was made, in order. */
  readonly calls: (WebhookCall & { readonly sequence: number; readonly orderId: string })[]
  readonly exhausted: ExhaustedDelivery[]
  readonly disabled: DisabledEndpoint[]
  /** What receivers say from now on. */
  answer: (call: WebhookCall) => Promise<WebhookAnswer> | WebhookAnswer
}

export const ACCOUNT = 'acc_stage00000'

const ok: WebhookAnswer = { kind: 'answered', status: 200, head: 'ok' }

/** The wall clock stands still unless a test moves it; a claim runs out after a second of it. */
export function openWebhookStage(stage: BooksStage, wall = { ms: 1_800_000_000_000 }): WebhookStage {
  const calls: WebhookStage['calls'] = []
  const exhausted: ExhaustedDelivery[] = []
  const disabled: DisabledEndpoint[] = []
  const closing = Promise.withResolvers<WebhookAnswer>()
  const opened: WebhookStage = {
    calls,
    exhausted,
    disabled,
    answer: () => ok,
    world: {
      ...stage.world,
      policy: { ...stage.world.policy, restMs: 5 },
      clock: { ...stage.world.clock, wallMs: () => wall.ms, sleep: systemClock().sleep },
      webhooks: {
        channel: {
          deliver: async (call) => {
            const [, orderId = '', sequence = ''] = /^evt_(CB\d{16})_(\d+)$/.exec(call.id) ?? []
            calls.push({ ...call, orderId, sequence: Number(sequence) })
            return Promise.race([opened.answer(call), closing.promise])
          },
          close: async () => closing.resolve({ kind: 'failed', why: 'closed' }),
        },
        times: { attemptMs: 500, marginMs: 500 },
        secretsOf: async () => ['whsec_c2VjcmV0'],
        writeEvent: (event) => JSON.stringify(event),
        chance: () => 0,
        tellExhausted: async (_tx, one) => void exhausted.push(one),
        tellDisabled: async (_tx, one) => void disabled.push(one),
      },
    },
  }
  return opened
}

/** The account of the stage, without endpoints. */
export async function resetWebhooks(stage: BooksStage): Promise<void> {
  await stage.empty('webhook_endpoints')
  await stage.corrupt(`INSERT INTO accounts VALUES ('${ACCOUNT}', 'Stage', 1) ON CONFLICT DO NOTHING`)
}

export async function addEndpoint(
  stage: BooksStage,
  id: string,
  url: string,
  accountId = ACCOUNT,
): Promise<void> {
  await stage.corrupt(`INSERT INTO accounts VALUES ($1, 'Stage', 1) ON CONFLICT DO NOTHING`, [accountId])
  await stage.corrupt(
    'INSERT INTO webhook_endpoints (endpoint_id, account_id, url, created_at_ms) VALUES ($1, $2, $3, 1)',
    [id, accountId, url],
  )
}

export async function disableEndpointBy(
  stage: BooksStage,
  id: string,
  who: 'owner' | 'receiver',
): Promise<void> {
  await stage.corrupt(
    'UPDATE webhook_endpoints SET disabled_at_ms = 1, disabled_by = $2 WHERE endpoint_id = $1',
    [id, who],
  )
}

/** An order in NEW whose first event has happened. */
export async function openOrder(
  stage: BooksStage,
  callbackUrl: string | null,
  accountId = ACCOUNT,
): Promise<string> {
  const { terms } = await placeOrder(stage, 'BTC:BTC', 'ETH:ETH', { asks: 1n, promises: 1n })
  await stage.corrupt(
    'UPDATE orders SET callback_url = $3, account_id = $4 WHERE bucket = $1 AND order_id = $2',
    [bucketOf(terms.id), terms.id, callbackUrl, accountId],
  )
  return terms.id
}

/** The order's next event, as `apply` writes it: with the order's row, in one transaction. */
export async function happen(
  stage: BooksStage,
  orderId: string,
  status: OrderStatus = 'PENDING',
): Promise<void> {
  const key = [bucketOf(orderId), orderId]
  await stage.db.transaction(async (tx) => {
    await tx.query(
      'UPDATE orders SET sequence = sequence + 1, updated_at_ms = $3 WHERE bucket = $1 AND order_id = $2',
      [...key, stage.world.clock.nowMs()],
    )
    await tx.query(
      `INSERT INTO events (bucket, order_id, sequence, previous_status, status, fact_key, snapshot, at_ms)
       SELECT bucket, order_id, sequence, 'NEW', $3, 'fact', '{}', updated_at_ms FROM orders
       WHERE bucket = $1 AND order_id = $2`,
      [...key, status],
    )
  })
}
