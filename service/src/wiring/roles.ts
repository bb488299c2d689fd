import type { KeyObject } from 'node:crypto'
import type { Logger } from 'pino'
import type { MailSettings } from '../channels/email/render.ts'
import type { SmtpSettings } from '../channels/email/smtp.ts'
import type { MovableClock } from '../clock.ts'
import type { ChainSettings } from '../config/chain_settings.ts'
import type { DatabaseLimits } from '../db/database.ts'
import type { CurrencyCode } from '../domain/catalog/currencies.ts'
import type { Policy } from '../engine/policy.ts'
import type { World } from '../engine/world.ts'
import type { HttpLimits } from '../http/parts.ts'
import type { SandboxRoutes } from '../http/sandbox/sandbox_port.ts'
import type { Prices } from '../prices/price_source.ts'
import type { SignerSettings } from '../signer/settings.ts'

/** Everything a process is made of. Whoever calls has read the configuration and opened the keystore. */
export type ServiceOptions = {
  readonly roles: Roles
  readonly databaseUrl: string
  /** At most, beside those to the signer's record. */
  readonly databaseConnections: number
  /** Left out: those of the service. */
  readonly databaseLimits?: DatabaseLimits
  readonly chains: ChainSettings
  readonly prices: RunningPrices
  readonly policy: Policy
  /** Every process listens: without the role api for its operator only. */
  readonly http: { readonly port: number; readonly host: string; readonly limits: HttpLimits }
  readonly clock: MovableClock
  readonly logger: Logger
}

/** What this process does, each role with the secrets that it alone needs. Null or false: another process does it. */
export type Roles = {
  readonly api: ApiRole | null
  readonly watcher: boolean
  readonly engine: EngineRole | null
  readonly notifier: NotifierRole | null
  readonly signer: SignerRole | null
}

export type ApiRole = {
  /** The first encrypts API secrets; all decrypt. */
  readonly accountKeys: readonly KeyObject[]
  readonly orderSeal: KeyObject
  readonly orderToken: KeyObject
  /** Where clients reach it. Null: where it listens. */
  readonly baseUrl: string | null
  /** The sandbox's routes, for the world they move; left out everywhere else. */
  readonly sandbox?: (world: World) => SandboxRoutes
}

export type EngineRole = {
  readonly orderSeal: KeyObject
  /** Where the signer listens. Null: it is in this process. */
  readonly signerSocket: string | null
}

export type NotifierRole = {
  /** Decrypt webhook secrets. */
  readonly accountKeys: readonly KeyObject[]
  /** Null: no mail server is set, and no mails are sent. */
  readonly mail: MailRole | null
}

export type MailRole = Pick<MailSettings, 'sender' | 'fromAddress' | 'explorers' | 'note'> & {
  readonly smtp: Pick<SmtpSettings, 'host' | 'port' | 'security' | 'auth'>
  /** Makes the links to orders and those that unsubscribe. */
  readonly orderToken: KeyObject
  /** Where clients reach the service. Null: where this process listens. */
  readonly baseUrl: string | null
}

export type SignerRole = {
  readonly orderSeal: KeyObject
  readonly seed: Uint8Array
  readonly settings: SignerSettings
  readonly databaseUrl: string
  /** The Unix socket on which engines of other processes reach it. Null: only this process does. */
  readonly socket: string | null
}

export type RunningPrices = Prices & {
  start(): void
  stop(): Promise<void> | void
  /** How old the believed price is; null without one. Left out where prices do not age. */
  ageMs?(currency: CurrencyCode): number | null
}

export type Service = {
  readonly world: World
  /** Where clients reach it. */
  readonly baseUrl: string
  /** Where this process listens. */
  readonly origin: string
  /** Finishes what is under way, lets leases go, and closes everything it opened. */
  stop(): Promise<void>
}

/** The names of the roles that are here. */
export function rolesOf({ api, watcher, engine, notifier, signer }: Roles): readonly string[] {
  const active = {
    api: api !== null,
    watcher,
    engine: engine !== null,
    notifier: notifier !== null,
    signer: signer !== null,
  }
  return Object.entries(active).flatMap(([role, isActive]) => (isActive ? [role] : []))
}

/**
 * Whoever tells an order a fact writes down how the order then looks to its customer, offers and confirmations
 * included, and so has to know prices and chains.
 */
export function decidesOrders({ api, watcher, engine }: Roles): boolean {
  return api !== null || watcher || engine !== null
}
