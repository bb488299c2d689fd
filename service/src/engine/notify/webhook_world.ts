import type { WebhookChannel } from '../../channels/channel.ts'
import type { Sql } from '../../db/database.ts'
import type { OrderEvent } from '../../db/events.ts'
import type { OrderId } from '../../domain/orders/identifiers.ts'
import type { InstantMs } from '../../domain/time.ts'
import type { World } from '../world.ts'

/** What webhooks are made and sent with. */
export type WebhookParts = {
  readonly channel: WebhookChannel
  /** How long an attempt may take in all, and how long a claim has to outlive that. */
  readonly times: { readonly attemptMs: number; readonly marginMs: number }
  /** The live secrets of an account that can be opened, newest first. Rejects when the database fails. */
  secretsOf(accountId: string): Promise<readonly string[]>
  /** The JSON that receivers are sent. */
  writeEvent(event: OrderEvent): string
  /** From 0 to 1. */
  chance(): number
  /** In the transaction that gives the delivery up. */
  tellExhausted(tx: Sql, exhausted: ExhaustedDelivery): Promise<void>
  /** In the transaction that takes the endpoint's word for it. */
  tellDisabled(tx: Sql, disabled: DisabledEndpoint): Promise<void>
}

export type WebhookWorld = World & { readonly webhooks: WebhookParts }

export type ExhaustedDelivery = {
  readonly orderId: OrderId
  readonly accountId: string
  readonly url: string
  /** Host and port of the URL. */
  readonly host: string
  /** Null for the order's own `callback_url`. */
  readonly endpoint: string | null
  readonly lastAnswer: string
  readonly nowMs: InstantMs
}

/** An endpoint that its receiver disabled. */
export type DisabledEndpoint = {
  /** The order whose event it answered so. */
  readonly orderId: OrderId
  readonly accountId: string
  readonly url: string
  readonly endpoint: string
  readonly nowMs: InstantMs
}
