import type { KeyObject } from 'node:crypto'
import type { Mailbox } from '@cambist/devnet'
import type { Logger } from 'pino'
import { type Clock, systemClock } from '../clock.ts'
import type { SandboxConfig } from '../config/sandbox_config.ts'
import { sandboxKey } from '../config/sandbox_secrets.ts'
import type { DatabaseLimits } from '../db/database.ts'
import { defaultExplorers } from '../domain/catalog/explorers.ts'
import type { ChainId } from '../domain/catalog/networks.ts'
import { defaultPolicy } from '../engine/default_policy.ts'
import type { Policy } from '../engine/policy.ts'
import { defaultLimits } from '../http/parts.ts'
import { sandboxPrices } from '../prices/index.ts'
import type { MailRole, Roles, RunningPrices, ServiceOptions } from '../wiring/roles.ts'
import { sandboxChains, sandboxSignerSettings } from './chains.ts'
import { withEosAccount } from './eos_account.ts'
import type { Ground } from './ground.ts'
import { openSandboxSeed } from './keys.ts'
import { openSandboxRoutes } from './routes.ts'

/** What the service of a sandbox may differ in. */
export type PartsOptions = {
  readonly config: SandboxConfig
  readonly logger: Logger
  readonly policy?: Partial<Policy>
  /** Tests put a line that can fail between the service and its nodes: the URL to use instead of a node's own. */
  readonly reach?: (chain: ChainId, rpcUrl: string) => Promise<string>
  /** The same for the database. */
  readonly reachDatabase?: (url: string) => Promise<string>
  /** How long the service waits for the database, and the database for the service; left out, as in earnest. */
  readonly databaseLimits?: DatabaseLimits
  /** How long the service waits for a node's answer; ten seconds unless told. */
  readonly nodeTimeoutMs?: number
  /** What quotes rest on in place of the sandbox's own prices, which then move nothing. */
  readonly openPrices?: (clock: Clock) => RunningPrices
}

/** Each has plans of its own to make, which is most of what a short life costs; and it serves one person. */
const CONNECTIONS = 8

/** What the service of a sandbox is made of, on its ground: all roles in one process. */
export async function serviceParts(
  options: PartsOptions,
  { devnet, databaseUrl: directUrl, settings }: Ground,
  dataDir: string,
): Promise<ServiceOptions> {
  const { config, logger } = options
  const databaseUrl = (await options.reachDatabase?.(directUrl)) ?? directUrl
  const clock = systemClock()
  clock.setOffset(settings.clockOffsetMs)
  const prices = sandboxPrices()
  prices.load(settings.prices)
  const seed = await openSandboxSeed(dataDir, clock.wallMs())
  const settled = await sandboxChains(devnet.networks, options.reach, options.nodeTimeoutMs)
  const chains = await withEosAccount(settled, devnet, seed)
  const orderSeal = sandboxKey('order-seal')
  const orderToken = sandboxKey('order-token')
  return {
    roles: {
      api: {
        accountKeys: [sandboxKey('account')],
        orderSeal,
        orderToken,
        baseUrl: null,
        sandbox: (world) => openSandboxRoutes({ world, devnet, clock, prices }),
      },
      watcher: true,
      engine: { orderSeal, signerSocket: null },
      notifier: { accountKeys: [sandboxKey('account')], mail: mailRole(devnet.mailbox, orderToken) },
      signer: { orderSeal, seed, settings: sandboxSignerSettings(chains), databaseUrl, socket: null },
    },
    databaseUrl,
    databaseConnections: CONNECTIONS,
    ...(options.databaseLimits && { databaseLimits: options.databaseLimits }),
    chains,
    prices: options.openPrices?.(clock) ?? { usd: prices.usd, start: () => {}, stop: () => {} },
    // Local chains stand still whenever nobody mines.
    policy: { ...defaultPolicy, standstillMs: {}, ...options.policy },
    http: {
      port: config.port,
      host: config.host,
      limits: {
        ...defaultLimits,
        ...config.rateLimits,
        mailsPerEmail: 1_000,
        mailsPerAddress: 1_000,
        changes: { keys: 1_000_000, settings: 1_000_000 },
        loopbackCallbacks: true,
      },
    },
    clock,
    logger,
  }
}

/** As in production, over real SMTP; but the explorers that mails link to cannot know what is local. */
function mailRole(mailbox: Mailbox, orderToken: KeyObject): MailRole {
  return {
    sender: 'Cambist sandbox',
    fromAddress: 'orders@sandbox.test',
    smtp: { host: '127.0.0.1', port: mailbox.port, security: 'none', auth: null },
    explorers: defaultExplorers,
    note: 'This is a sandbox: its chains are local, and block explorers do not know their transactions.',
    orderToken,
    baseUrl: null,
  }
}

/** Those of the roles that are named. */
export function onlyRoles(
  { api, watcher, engine, notifier, signer }: Roles,
  names: readonly (keyof Roles)[],
): Roles {
  return {
    api: names.includes('api') ? api : null,
    watcher: watcher && names.includes('watcher'),
    engine: names.includes('engine') ? engine : null,
    notifier: names.includes('notifier') ? notifier : null,
    signer: names.includes('signer') ? signer : null,
  }
}

/** Mails of a process without the interface link to the one that has it. */
export function linkingTo(baseUrl: string, roles: Roles): Roles {
  const { notifier } = roles
  return notifier === null || notifier.mail === null
    ? roles
    : { ...roles, notifier: { ...notifier, mail: { ...notifier.mail, baseUrl } } }
}
