import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import type { ApiKeys } from '../accounts/api_key.ts'
import type { ChangeLimits } from '../accounts/ask_limit.ts'
import type { AddedEndpoint, Owner } from '../accounts/owner_acts.ts'
import type { OwnerPlace } from '../accounts/owner_place.ts'
import type { WebhookEndpoint } from '../accounts/webhook_endpoints.ts'
import type { Clock } from '../clock.ts'
import type { Outcome } from '../domain/outcome.ts'
import type { Desk, RetrySlot } from '../engine/desks/desk.ts'
import type { WebhookDesk } from '../engine/desks/webhook_desk.ts'
import type { EventFeed } from '../engine/notify/feed.ts'
import type { Unsubscribing } from '../engine/notify/unsubscribe.ts'
import type { Readiness } from '../engine/readiness.ts'
import type { SandboxRoutes } from './sandbox/sandbox_port.ts'

/** Every limit a client can run into at the door (docs/api.md, Limits). */
export type HttpLimits = {
  /** Units an API key, or an anonymous address, may spend in a minute; all keys of an account four times as many. */
  readonly unitsPerMinute: number
  /** Requests that may come within one second; likewise. */
  readonly burstPerSecond: number
  /** What creating an order costs, or what is as much work; everything else costs 1. */
  readonly createUnits: number
  readonly bodyBytesMax: number
  /** How long a request may take to arrive, its body included. */
  readonly requestMsMax: number
  /** Who takes nothing of an answer for this long loses the connection. */
  readonly unreadMsMax: number
  /** Addresses or CIDR ranges whose X-Forwarded-For is believed. Empty: nobody's. */
  readonly trustedProxies: readonly string[]
  /** Addresses or CIDR ranges that may read /metrics and the details of /readyz. Empty: anyone. */
  readonly metricsAllow: readonly string[]
  /** How often within a quarter of an hour a mail may be asked for: for one email address, and from one address. */
  readonly mailsPerEmail: number
  readonly mailsPerAddress: number
  /** How often within a quarter of an hour an account may be changed. */
  readonly changes: ChangeLimits
  /** True in the sandbox only: a callback_url may be plain http when it points at this machine. */
  readonly loopbackCallbacks: boolean
  /** Event streams that may be open at once, in this process and of one caller. */
  readonly streamsMax: number
  readonly streamsPerCaller: number
}

export const defaultLimits: HttpLimits = {
  unitsPerMinute: 250,
  burstPerSecond: 10,
  createUnits: 50,
  bodyBytesMax: 16_384,
  requestMsMax: 30_000,
  unreadMsMax: 60_000,
  trustedProxies: [],
  metricsAllow: [],
  mailsPerEmail: 5,
  mailsPerAddress: 20,
  changes: { keys: 20, settings: 60 },
  loopbackCallbacks: false,
  streamsMax: 10_000,
  streamsPerCaller: 500,
}

/** What the operator's routes need, which every process answers. */
export type OperatorParts = {
  readonly clock: Clock
  readonly limits: HttpLimits
  readonly readiness: () => Promise<Readiness>
  readonly metrics: Registry
  readonly logger: Logger
}

/** Where the events of all orders of an account go (accounts/webhook_endpoints.ts). */
export type EndpointDesk = {
  list(accountId: string): Promise<readonly WebhookEndpoint[]>
  /** Once for a retry slot (accounts/owner_acts.ts). */
  create(owner: Owner, url: string, retry: RetrySlot): Promise<Outcome<AddedEndpoint>>
  remove(owner: Owner, endpointId: string): Promise<Outcome<null>>
}

/** What the whole interface needs. */
export type HttpParts = OperatorParts & {
  readonly desk: Desk
  readonly webhooks: WebhookDesk
  readonly endpoints: EndpointDesk
  readonly feed: EventFeed
  readonly apiKeys: ApiKeys
  readonly unsubscribing: Unsubscribing
  /** What owners of accounts work on. */
  readonly owners: OwnerPlace
  /** Where clients reach the service, without a slash at the end; asked on every use, as a port may be chosen late. */
  readonly baseUrl: () => string
  /** Only in the sandbox; without it the routes do not exist. */
  readonly sandbox?: SandboxRoutes
}
