import type { KeyObject } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import {
  DamagedChainFile,
  type Devnet,
  type DevnetOptions,
  loadNetworks,
  type Mailbox,
  type PostgresOptions,
  removePostgres,
  startDevnet,
  startPostgres,
  stopDevnetIn,
  stopPostgresIn,
} from '@cambist/devnet'
import type { Logger } from 'pino'
import { createSecretBox } from '../accounts/secret_box.ts'
import { type Clock, systemClock } from '../clock.ts'
import { CommandRefused } from '../command_refused.ts'
import type { SandboxConfig } from '../config/sandbox_config.ts'
import { sandboxKey } from '../config/sandbox_secrets.ts'
import { type DatabaseLimits, openDatabase } from '../db/database.ts'
import { migrate } from '../db/migrate.ts'
import { nameOfSchema } from '../db/migrations_done.ts'
import { defaultExplorers } from '../domain/catalog/explorers.ts'
import type { ChainId } from '../domain/catalog/networks.ts'
import { defaultPolicy } from '../engine/default_policy.ts'
import type { Policy } from '../engine/policy.ts'
import { defaultLimits } from '../http/parts.ts'
import { sandboxPrices } from '../prices/index.ts'
import type { MailRole, Roles, RunningPrices, Service, ServiceOptions } from '../wiring/roles.ts'
import { sandboxChains, sandboxSignerSettings } from './chains.ts'
import { type DemoAccount, openDemoAccount } from './demo_account.ts'
import { withEosAccount } from './eos_account.ts'
import { awaitLooks } from './first_looks.ts'
import { fundReserves } from './fund_reserves.ts'
import { writeJson } from './json_file.ts'
import { openSandboxSeed } from './keys.ts'
import { markDatabase, notOf, openMarker, refuseForeignDatabase } from './marker.ts'
import { emptyFolder, ownFolder, refuseForeignFolder } from './own_folder.ts'
import { openSandboxRoutes } from './routes.ts'
import { readSettings, type SandboxSettings } from './settings.ts'

export type Sandbox = {
  readonly service: Service
  readonly devnet: Devnet
  readonly account: DemoAccount
  readonly databaseUrl: string
  readonly sandboxFile: string
  /** One more process of the same service, as far as the database can tell, on the same chains, clock and prices. */
  startAnother(roles: readonly (keyof Roles)[]): Promise<Service>
  stop(): Promise<void>
}

export type SandboxOptions = {
  readonly config: SandboxConfig
  readonly logger: Logger
  /** One line for a person who waits. */
  readonly say?: (line: string) => void
  /** Tests mine by hand. */
  readonly mining?: 'lively' | 'manual'
  /** Which local chains run; left out, all. What has none is listed with `enabled: false`. */
  readonly networks?: DevnetOptions['networks']
  readonly policy?: Partial<Policy>
  /** Tests put a line that can fail between the service and its nodes: the URL to use instead of a node's own. */
  readonly reach?: (chain: ChainId, rpcUrl: string) => Promise<string>
  /** The same for the database. */
  readonly reachDatabase?: (url: string) => Promise<string>
  /** How long the service waits for the database, and the database for the service; left out, as in earnest. */
  readonly databaseLimits?: DatabaseLimits
  /** For the sandbox's own database, on top of what it has: a test that never cuts the power need not wait for the disk. */
  readonly postgresSettings?: Readonly<Record<string, string>>
  /** False: the EVM chains are not written down, and are forgotten when it stops. */
  readonly isLasting?: boolean
  /** How long the service waits for a node's answer; ten seconds unless told. */
  readonly nodeTimeoutMs?: number
  /** What quotes rest on in place of the sandbox's own prices, which then move nothing. */
  readonly openPrices?: (clock: Clock) => RunningPrices
  /** Aborted: the start is given up, what did start is stopped, and the start rejects with the signal's reason. */
  readonly signal?: AbortSignal
}

/** Brings up everything a stranger needs to try an exchange: database, chains, service, reserves, an account. */
export async function startSandbox(options: SandboxOptions): Promise<Sandbox> {
  const dataDir = resolve(options.config.dataDir)
  await mkdir(dataDir, { recursive: true })
  await refuseForeignFolder(dataDir)
  const lock = ownFolder(dataDir)
  try {
    // First, so that it is known as a sandbox's, however little of it there is.
    const marker = await openMarker(dataDir)
    const sandbox = await startOwned(options, { dataDir, marker })
    return {
      ...sandbox,
      stop: () => sandbox.stop().finally(() => lock.release()),
    }
  } catch (error) {
    lock.release()
    if (error instanceof DamagedChainFile)
      throw new CommandRefused(
        `${error.message}. \`npm start -- --reset\` deletes what the sandbox keeps and begins anew.`,
        { cause: error },
      )
    throw error
  }
}

/** A folder of a sandbox, and what it has in common with its database. */
type OwnFolder = { readonly dataDir: string; readonly marker: string }

async function startOwned(options: SandboxOptions, folder: OwnFolder): Promise<Sandbox> {
  const { dataDir } = folder
  const sandboxFile = join(dataDir, 'sandbox.json')
  // The file says that the sandbox is ready, so one of an earlier life must not be there meanwhile.
  await rm(sandboxFile, { force: true })
  const { signal = new AbortController().signal } = options
  const { ground, startService } = await loadMeanwhile(options.networks, (whenWaiting) =>
    startGround(options, folder, whenWaiting),
  )
  let service: Service | undefined
  try {
    signal.throwIfAborted()
    const { account } = ground
    const parts = await serviceParts(options, ground, dataDir)
    signal.throwIfAborted()
    const startedWallMs = parts.clock.wallMs()
    const started = await startService(parts)
    service = started
    await fundReserves(started.world, ground.devnet, signal)
    await awaitLooks(started.world, startedWallMs, signal)
    await started.world.market.refresh()
    signal.throwIfAborted()
    await writeJson(sandboxFile, describe(started, ground))
    return {
      service: started,
      devnet: ground.devnet,
      account,
      databaseUrl: ground.databaseUrl,
      sandboxFile,
      startAnother: (names) =>
        startService({
          ...parts,
          roles: linkingTo(started.baseUrl, onlyRoles(parts.roles, names)),
          http: { ...parts.http, port: 0 },
        }),
      stop: async () => {
        await rm(sandboxFile, { force: true })
        await stopBoth(started, ground)
      },
    }
  } catch (error) {
    await stopBoth(service, ground)
    throw error
  }
}

/** The service is half of what there is to load: that is done while a new database is being made. */
async function loadMeanwhile(
  networks: SandboxOptions['networks'],
  start: (whenWaiting: () => void) => Promise<Ground>,
) {
  let starting: Promise<Ground> | undefined
  const waiting = new Promise<void>((resolve) => {
    starting = start(resolve)
  })
  await Promise.race([waiting, starting])
  await loadNetworks(networks)
  const { loadRoles, startService } = await import('../main.ts')
  await loadRoles()
  return { ground: (await starting) as Ground, startService }
}

/** Whatever becomes of the service's end, nothing below it is left running. */
async function stopBoth(service: Service | undefined, ground: Ground): Promise<void> {
  try {
    await service?.stop()
  } finally {
    await ground.stop()
  }
}

/** What stands below the service, and outlives it when it is killed. */
type Ground = Prepared & { readonly devnet: Devnet; stop(): Promise<void> }

/** A database with the present schema, and what an earlier start left in it. */
type Prepared = {
  readonly databaseUrl: string
  readonly account: DemoAccount
  readonly settings: SandboxSettings
}

async function startGround(
  { config, mining, networks, postgresSettings, isLasting = true, say = () => {} }: SandboxOptions,
  folder: OwnFolder,
  whenWaiting: () => void,
): Promise<Ground> {
  // Somebody else looks after it. Whether it may be used is known before anything in it is changed, or ten nodes are started.
  if (config.databaseUrl !== null) {
    await refuseForeignDatabase(config.databaseUrl, folder.dataDir, folder.marker)
  }
  const [devnet, database] = await Promise.allSettled([
    startDevnet({
      dataDir: join(folder.dataDir, 'devnet'),
      mining: mining ?? 'lively',
      isLasting,
      log: say,
      ...(networks !== undefined && { networks }),
    }),
    startDatabase(config, folder, {
      say,
      onWaiting: whenWaiting,
      ...(postgresSettings && { settings: postgresSettings }),
    }),
  ])
  if (devnet.status === 'fulfilled' && database.status === 'fulfilled') {
    return {
      ...database.value,
      devnet: devnet.value,
      stop: () => devnet.value.stop().finally(database.value.stop),
    }
  }
  // Half a ground is none: what did start is stopped, and the first failure is told.
  for (const half of [devnet, database])
    if (half.status === 'fulfilled') await half.value.stop().catch(() => {})
  throw devnet.status === 'rejected' ? devnet.reason : (database as PromiseRejectedResult).reason
}

async function startDatabase(
  { databaseUrl }: SandboxConfig,
  { dataDir, marker }: OwnFolder,
  {
    say,
    ...options
  }: Pick<PostgresOptions, 'onWaiting' | 'settings'> & { readonly say: (line: string) => void },
): Promise<Prepared & { stop(): Promise<void> }> {
  const isOwn = databaseUrl === null
  const database = isOwn
    ? await startPostgres({ dataDir: join(dataDir, 'postgres'), template: nameOfSchema, ...options })
    : { url: databaseUrl, stop: async () => {} }
  try {
    // Its own is nobody else's, and begins with everything.
    await migrate(database.url, isOwn ? () => {} : say)
    return { ...(await prepare(dataDir, database.url, { marker, isOwn })), stop: database.stop }
  } catch (error) {
    await database.stop()
    throw error
  }
}

async function prepare(
  dataDir: string,
  databaseUrl: string,
  { marker, isOwn }: { readonly marker: string; readonly isOwn: boolean },
): Promise<Prepared> {
  const db = openDatabase({
    url: databaseUrl,
    connectionsMax: 2,
    applicationName: 'cambist sandbox start',
    onConnectionLost: () => {},
  })
  try {
    // Before anything else: another sandbox may have come first since it was asked. What lies in the folder is the folder's.
    if ((await markDatabase(db, marker)) !== marker && !isOwn) throw notOf(dataDir)
    const box = createSecretBox([sandboxKey('account')])
    const account = await openDemoAccount(dataDir, { db, box, wallMs: systemClock().wallMs })
    return { databaseUrl, account, settings: await readSettings(db) }
  } finally {
    await db.close()
  }
}

/** Each has plans of its own to make, which is most of what a short life costs; and it serves one person. */
const CONNECTIONS = 8

async function serviceParts(
  options: SandboxOptions,
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

function onlyRoles(
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
function linkingTo(baseUrl: string, roles: Roles): Roles {
  const { notifier } = roles
  return notifier === null || notifier.mail === null
    ? roles
    : { ...roles, notifier: { ...notifier, mail: { ...notifier.mail, baseUrl } } }
}

function describe({ baseUrl }: Service, { devnet, databaseUrl, account }: Ground): object {
  return {
    base_url: baseUrl,
    ...account,
    networks: devnet.networks,
    database_url: databaseUrl,
    mailbox_url: `${baseUrl}/sandbox/mailbox`,
    smtp_url: devnet.mailbox.smtpUrl,
  }
}

/** Stops whatever a killed sandbox left running and deletes everything it kept, in whatever state that is. */
export async function resetSandbox(config: SandboxConfig): Promise<void> {
  if (config.databaseUrl !== null) {
    throw new CommandRefused(
      '--reset deletes only what the sandbox made itself: drop and create the database that DATABASE_URL names, delete ' +
        `${config.dataDir}, and start without --reset.`,
    )
  }
  const dataDir = resolve(config.dataDir)
  if (!existsSync(dataDir)) return
  await refuseForeignFolder(dataDir)
  const lock = ownFolder(dataDir)
  try {
    await Promise.all([stopDevnetIn(join(dataDir, 'devnet')), stopPostgresIn(join(dataDir, 'postgres'))])
    removePostgres(join(dataDir, 'postgres'))
    await emptyFolder(dataDir)
  } finally {
    lock.release()
  }
}
