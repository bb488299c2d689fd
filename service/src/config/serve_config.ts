import type { KeyObject } from 'node:crypto'
import { statSync } from 'node:fs'
import { chainIds } from '../domain/catalog/networks.ts'
import { type ChainSettings, isMainnet, readChains } from './chain_settings.ts'
import { type Env, type Environment, readDatabaseUrl, readEnvironment, splitList } from './environment.ts'
import {
  type LogLevel,
  type MailLimits,
  type RateLimits,
  readAddresses,
  readBaseUrl,
  readLogLevel,
  readMailLimits,
  readRateLimits,
} from './http_settings.ts'
import { type MailSettings, readMail } from './mail_settings.ts'
import { keepNetworksApart } from './networks_apart.ts'
import { isSandboxKey } from './sandbox_secrets.ts'
import { readSigner, type SignerSettings } from './signer_settings.ts'
import { type PriceSettings, readPrices, readTrading, type TradingSettings } from './trading_settings.ts'
import type { VariableName } from './variables.ts'

export const roles = ['api', 'watcher', 'engine', 'notifier', 'signer'] as const
export type Role = (typeof roles)[number]

export type ServeConfig = {
  readonly kind: 'serve'
  /** Real money is at stake. */
  readonly isMainnet: boolean
  readonly roles: readonly Role[]
  readonly databaseUrl: string
  readonly databaseConnections: number
  readonly port: number
  readonly host: string
  /** Null only without the role api and without mails. */
  readonly baseUrl: string | null
  readonly trustedProxies: readonly string[]
  /** Who may read /metrics. */
  readonly metricsAllow: readonly string[]
  readonly rateLimits: RateLimits
  readonly mailLimits: MailLimits
  readonly logLevel: LogLevel
  readonly chains: ChainSettings
  readonly trading: TradingSettings
  readonly prices: PriceSettings
  readonly keys: KeySettings
  /** Null without the role notifier, and where no mail server is set. */
  readonly mail: MailSettings | null
  /** Null without the role signer. */
  readonly signer: SignerSettings | null
  /** Where a signer is reached by engines of other processes, and an engine without a signer beside it reaches one. */
  readonly signerSocket: string | null
  /**
   * Files with secrets that everybody on the machine may read; on test networks nobody looks. They are warned of, not refused:
   * what Docker (0444) and Kubernetes (0644) mount is such a file, in a container that has nobody else in it. A group that may
   * read is somebody's choice.
   */
  readonly exposedFiles: readonly VariableName[]
}

/** Null where no role of this process needs the key: it need not hold what it does not use. */
export type KeySettings = {
  /** The first encrypts API secrets; all decrypt. */
  readonly account: readonly KeyObject[]
  readonly orderSeal: KeyObject | null
  readonly orderToken: KeyObject | null
}

/** Throws ConfigError naming every problem. `rolesText` is what `--roles` said; it wins over CAMBIST_ROLES. */
export function readServeConfig(env: Env, rolesText?: string): ServeConfig {
  const from = readEnvironment(env, 'serve')
  const active = readRoles(from, rolesText)
  const chains = readChains(from)
  keepNetworksApart(from, chains)
  const isReal = isMainnet(chains)
  from.required('DATABASE_URL', 'by serve')
  if (needs(active, ['api', 'watcher', 'engine']) && hasNoNode(chains)) {
    from.report('CAMBIST_BTC_URL', 'no chain is configured; set this, or that of another chain')
  }
  return from.finish({
    kind: 'serve',
    isMainnet: isReal,
    roles: active,
    databaseUrl: readDatabaseUrl(from, 'DATABASE_URL') ?? '',
    databaseConnections: from.integer('CAMBIST_DATABASE_CONNECTIONS', 2, 1_000),
    port: from.integer('PORT', 0, 65_535),
    host: from.text('HOST') ?? '',
    baseUrl: readBaseUrl(from, active.includes('api'), isReal),
    trustedProxies: readAddresses(from, 'CAMBIST_TRUSTED_PROXIES'),
    metricsAllow: readAddresses(from, 'CAMBIST_METRICS_ALLOW'),
    rateLimits: readRateLimits(from),
    mailLimits: readMailLimits(from),
    logLevel: readLogLevel(from),
    chains,
    trading: readTrading(from),
    prices: readPrices(from),
    keys: readKeys(from, active, isReal),
    mail: active.includes('notifier') ? readMail(from) : null,
    signer: active.includes('signer') ? readSigner(from, chains, isReal) : null,
    signerSocket: readSocket(from, active),
    exposedFiles: isReal ? secretFiles.filter((name) => isExposed(from.text(name))) : [],
  })
}

function readRoles(from: Environment, rolesText: string | undefined): readonly Role[] {
  const named = rolesText === undefined ? from.list('CAMBIST_ROLES') : splitList(rolesText)
  const isRole = (name: string): name is Role => (roles as readonly string[]).includes(name)
  for (const name of named.filter((each) => !isRole(each))) {
    from.report('CAMBIST_ROLES', `${name} is not a role; the roles are ${roles.join(', ')}`)
  }
  if (named.length === 0) from.report('CAMBIST_ROLES', `is empty; the roles are ${roles.join(', ')}`)
  return roles.filter((role) => named.includes(role))
}

function hasNoNode(chains: ChainSettings): boolean {
  return chainIds.every((id) => chains[id].rpcUrl === null)
}

function needs(active: readonly Role[], any: readonly Role[]): boolean {
  return any.some((role) => active.includes(role))
}

function readKeys(from: Environment, active: readonly Role[], isReal: boolean): KeySettings {
  const read = (name: VariableName, users: readonly Role[]) => {
    if (!needs(active, users)) return []
    from.required(name, `by the role ${users.filter((role) => active.includes(role)).join(' and ')}`)
    const keys = from.keys(name)
    if (isReal && keys.some(isSandboxKey)) {
      from.report(
        name,
        'is the key of the sandbox, which everyone knows; make one with: openssl rand -hex 32',
      )
    }
    return keys
  }
  const readOne = (name: VariableName, users: readonly Role[]) => {
    const [key = null, ...others] = read(name, users)
    // Whoever adds a line believes that it will be used.
    if (others.length > 0)
      from.report(
        name,
        `holds ${others.length + 1} keys; this one cannot be rotated: leave only the one in use`,
      )
    return key
  }
  const isMailing = from.isSet('CAMBIST_SMTP_URL')
  return {
    account: read('CAMBIST_ACCOUNT_KEY_FILE', ['api', 'notifier']),
    orderSeal: readOne('CAMBIST_ORDER_SEAL_KEY_FILE', ['api', 'engine', 'signer']),
    orderToken: readOne('CAMBIST_ORDER_TOKEN_KEY_FILE', isMailing ? ['api', 'notifier'] : ['api']),
  }
}

const secretFiles = [
  'CAMBIST_KEYSTORE_FILE',
  'CAMBIST_KEYSTORE_PASSPHRASE_FILE',
  'CAMBIST_ACCOUNT_KEY_FILE',
  'CAMBIST_ORDER_SEAL_KEY_FILE',
  'CAMBIST_ORDER_TOKEN_KEY_FILE',
] as const

/** What cannot be looked at is reported by whoever reads it. */
function isExposed(path: string | null): boolean {
  if (path === null) return false
  try {
    return (statSync(path).mode & 0o007) !== 0
  } catch {
    return false
  }
}

/** Only the engine talks to the signer; with both here no socket is needed, and one that is named is for engines elsewhere. */
function readSocket(from: Environment, active: readonly Role[]): string | null {
  if (active.includes('engine') !== active.includes('signer')) {
    const missing = active.includes('engine') ? 'signer' : 'engine'
    from.required('CAMBIST_SIGNER_SOCKET', `because the role ${missing} is in another process`)
  }
  return from.text('CAMBIST_SIGNER_SOCKET')
}
