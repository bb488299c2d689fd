import { createHmac, type KeyObject, randomBytes, randomFillSync, randomInt } from 'node:crypto'
import { hostname } from 'node:os'
import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import { Registry } from 'prom-client'
import { openApiKeys } from './accounts/api_keys.ts'
import { addEndpointOnce, removeEndpoint } from './accounts/owner_acts.ts'
import type { OwnerPlace } from './accounts/owner_place.ts'
import { createSecretBox } from './accounts/secret_box.ts'
import { findUnopenable } from './accounts/unopenable_secrets.ts'
import { listEndpoints } from './accounts/webhook_endpoints.ts'
import { openWebhookSecrets } from './accounts/webhook_secrets.ts'
import { buildChains } from './chains/index.ts'
import { type MailSettings, mailRenderer } from './channels/email/render.ts'
import type { SmtpSettings } from './channels/email/smtp.ts'
import { webhookChannel, webhookLimits } from './channels/webhook/webhook_channel.ts'
import type { MovableClock } from './clock.ts'
import { type ChainSettings, tokensOf } from './config/chain_settings.ts'
import { RECORD_CONNECTIONS_MAX } from './config/variables.ts'
import { reserveAddresses } from './db/addresses.ts'
import { connectionName } from './db/connected_roles.ts'
import { type Database, type DatabaseLimits, openDatabase, type Sql } from './db/database.ts'
import { migrate } from './db/migrate.ts'
import { signedTransactions } from './db/signed_transactions.ts'
import { onSignerDatabase } from './db/signer_database.ts'
import { findUnrecorded } from './db/unrecorded.ts'
import type { CurrencyCode } from './domain/catalog/currencies.ts'
import { chainFacts, chainIds } from './domain/catalog/networks.ts'
import { openAlarms } from './engine/alarms.ts'
import { openDesk } from './engine/desks/desks.ts'
import { webhookDesk } from './engine/desks/webhook_desk.ts'
import { registerGauges } from './engine/gauges.ts'
import { marketBoard } from './engine/market.ts'
import { openFeed } from './engine/notify/feed.ts'
import { mailOwner } from './engine/notify/mail_owner.ts'
import { startNotifying } from './engine/notify/run.ts'
import type { MailParts } from './engine/notify/send_mails.ts'
import { unsubscribing } from './engine/notify/unsubscribe.ts'
import type { WebhookParts } from './engine/notify/webhook_world.ts'
import type { Policy } from './engine/policy.ts'
import { openReadiness } from './engine/readiness.ts'
import { startEngine, startMarket, startWatching } from './engine/run.ts'
import { makeSeal } from './engine/seal.ts'
import type { Chains, DeskWorld, World } from './engine/world.ts'
import { closerOf } from './http/close_server.ts'
import { listenAt } from './http/listen_at.ts'
import { buildOperatorServer } from './http/operator_server.ts'
import type { EndpointDesk, HttpLimits, OperatorParts } from './http/parts.ts'
import type { SandboxRoutes } from './http/sandbox/sandbox_port.ts'
import { nothingOpened, type Opened } from './opened.ts'
import { refuseOtherSealKey } from './own_seal_key.ts'
import type { Prices } from './prices/price_source.ts'
import type { SignerSettings } from './signer/settings.ts'
import type { Signer } from './signer/signer.ts'
import { socketSigner } from './signer/socket/socket_client.ts'
import { toldCurrencies } from './told_currencies.ts'

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

/**
 * What belongs to one role is loaded by the processes that have it: routes and schemas, signing, mail. Whoever has all
 * roles and time to spare before they start loads it here.
 */
export async function loadRoles(): Promise<void> {
  await import('./http/server.ts')
  await import('./signer/local_signer.ts')
  await import('./channels/email/smtp.ts')
}

/** Starts what the roles ask for, or nothing at all: what was opened before a failure is closed again. */
export async function startService(options: ServiceOptions): Promise<Service> {
  const opened = nothingOpened()
  try {
    const service = await openService(options, opened)
    options.logger.info(describe(options, service), 'the service is up')
    return {
      ...service,
      stop: async () => {
        await opened.closeAll()
        options.logger.info({}, 'the service has stopped')
      },
    }
  } catch (error) {
    // Why it did not start says more than what then did not close.
    await opened.closeAll().catch((failure: unknown) => {
      options.logger.warn({ err: failure }, 'what was opened did not close')
    })
    throw error
  }
}

/** Puts everything together, top to bottom. What is opened last is closed first: nobody is served by half a service. */
async function openService(options: ServiceOptions, opened: Opened): Promise<Omit<Service, 'stop'>> {
  const { roles, prices } = options
  await bringSchema(options, options.databaseUrl, 'DATABASE_URL')
  const db = openPool(options, options.databaseUrl, options.databaseConnections)
  opened.closeWith(db.close)
  const sealKey = (roles.api ?? roles.engine ?? roles.signer)?.orderSeal
  if (sealKey !== undefined) await refuseOtherSealKey(db, sealKey)
  const world = await openWorld(options, db)
  await warnOfUnopenable(options, db)

  if (decidesOrders(roles)) {
    prices.start()
    opened.closeWith(() => prices.stop())
    await world.market.refresh()
    opened.closeWith(startMarket(world).stop)
  }
  const record = roles.signer === null ? db : await openSignerRecord(options, roles.signer, db, opened)
  const signer =
    roles.signer === null ? null : await openSigner(options, roles.signer, { db, record }, opened)
  const holder = `${hostname()}-${process.pid}-${randomBytes(4).toString('hex')}`
  if (roles.watcher) closeTogether(opened, startWatching(world, holder))
  if (roles.engine !== null) {
    const { orderSeal, signerSocket } = roles.engine
    const seal = sealWith(orderSeal)
    const signingWorld = { ...world, seal, signer: signer ?? reachSigner(signerSocket, opened) }
    closeTogether(opened, startEngine(signingWorld, holder))
  }
  const reached = await openServer(options, world, record, opened)
  // Last: mails link to where the service is reached, which is known only now.
  if (roles.notifier !== null) {
    const mails = await openMails(options, roles.notifier.mail, world, reached.baseUrl)
    const webhooks = await openWebhooks(options, world, roles.notifier)
    // A slow mail server keeps a process up for seconds: nobody is served by it meanwhile.
    const server = { stop: reached.close }
    closeTogether(opened, [server, ...startNotifying({ ...world, mails, webhooks })])
  }
  return { world, baseUrl: reached.baseUrl, origin: reached.origin }
}

/** An account key that was dropped too early is put back by whoever hears of it before customers do. */
async function warnOfUnopenable({ roles, clock, logger }: ServiceOptions, db: Database): Promise<void> {
  const accountKeys = (roles.api ?? roles.notifier)?.accountKeys
  if (accountKeys === undefined) return
  const box = createSecretBox(accountKeys)
  for (const unopenable of await findUnopenable({ db, box, wallMs: clock.wallMs })) {
    logger.warn(
      unopenable,
      'secrets were sealed with an account key that is not configured, and do not open: put it back into CAMBIST_ACCOUNT_KEY_FILE, below the first line',
    )
  }
}

async function openMails(
  { clock, logger }: ServiceOptions,
  role: MailRole | null,
  { db }: World,
  reachedAt: string,
): Promise<MailParts> {
  if (role === null) {
    logger.warn({}, 'no mail server is set (CAMBIST_SMTP_URL): no mails are sent')
    return { channel: null, render: () => fail('there is no mail server') }
  }
  const { smtp, orderToken, ...settings } = role
  const { smtpChannel } = await import('./channels/email/smtp.ts')
  const channel = smtpChannel(
    { ...smtp, fromAddress: settings.fromAddress, fromName: settings.sender },
    clock,
  )
  const base = role.baseUrl ?? reachedAt
  const { tokenOf } = unsubscribing(db, orderToken)
  const tokenOfOrder = orderTokens(orderToken)
  const render = mailRenderer({
    ...settings,
    orderUrl: (orderId) => `${base}/order/${orderId}?token=${tokenOfOrder(orderId)}`,
    unsubscribeUrl: (accountId, mailClass) =>
      `${base}/unsubscribe?token=${tokenOf({ accountId, mailClass })}`,
  })
  return { channel, render }
}

function fail(message: string): never {
  throw new Error(message)
}

/** The same order always has the same; only its hash is stored. */
function orderTokens(key: KeyObject): DeskWorld['tokenOf'] {
  return (orderId) => createHmac('sha256', key).update(orderId).digest('base64url')
}

/** What an attempt needs beside its own time: the database before and after it. */
const WEBHOOK_MARGIN_MS = 15_000

async function openWebhooks(
  { http, clock, logger }: ServiceOptions,
  { db }: World,
  { accountKeys }: NotifierRole,
): Promise<WebhookParts> {
  const { writeOrderEvent } = await import('./http/account/order_event.ts')
  const place = {
    db,
    box: createSecretBox(accountKeys),
    wallMs: clock.wallMs,
    onUnopened: (account: string, error: unknown) =>
      logger.error({ account, err: error }, 'a webhook secret does not open, and nothing is signed with it'),
  }
  return {
    channel: webhookChannel({ loopbackAllowed: http.limits.loopbackCallbacks }),
    times: { attemptMs: webhookLimits.allMs, marginMs: WEBHOOK_MARGIN_MS },
    secretsOf: (accountId) => openWebhookSecrets(place, accountId),
    writeEvent: writeOrderEvent,
    chance: Math.random,
    ...mailOwner,
  }
}

/**
 * Whoever tells an order a fact writes down how the order then looks to its customer, offers and confirmations
 * included, and so has to know prices and chains.
 */
function decidesOrders({ api, watcher, engine }: Roles): boolean {
  return api !== null || watcher || engine !== null
}

/** `variable` is where its address was read from. */
function bringSchema(
  { logger }: ServiceOptions,
  url: string,
  variable: 'DATABASE_URL' | 'SIGNER_DATABASE_URL',
): Promise<void> {
  return migrate(
    url,
    (line) => logger.info({ database: variable }, line),
    (line) => logger.debug({ database: variable, migration: line }, 'migrating'),
  )
}

function openPool(
  { logger, roles, databaseLimits }: ServiceOptions,
  url: string,
  connectionsMax: number,
): Database {
  return openDatabase({
    url,
    connectionsMax,
    applicationName: connectionName(rolesOf(roles)),
    onConnectionLost: (error) => logger.warn({ err: error }, 'a database connection was lost'),
    ...(databaseLimits && { limits: databaseLimits }),
  })
}

async function openWorld(
  { clock, prices, policy, logger, ...options }: ServiceOptions,
  db: Database,
): Promise<World> {
  const chains = await connectChains(options.chains, db)
  const assets = new Set([...chains.values()].flatMap((chain) => chain.assets))
  const { ETH, BNB } = options.chains
  return {
    db,
    clock,
    chains,
    prices,
    market: marketBoard({ db, clock, prices, policy, assets }),
    policy,
    log: logger,
    alarms: openAlarms(),
    tokens: tokensOf(options.chains),
    evmChainIds: { ETH: ETH.evmChainId, BNB: BNB.evmChainId },
  }
}

/** The chains that have a node, paying from the reserve addresses that the signer told. */
export function connectChains(settings: ChainSettings, db: Database): Promise<Chains> {
  return buildChains(settings, async (id) => {
    const [address] = await reserveAddresses(db, chainFacts[id].family)
    if (address === undefined) throw new Error(`the signer has not told the reserve address of ${id} yet`)
    return address
  })
}

function openDeskWorld(world: World, { orderSeal, orderToken }: ApiRole): DeskWorld {
  return {
    ...world,
    seal: sealWith(orderSeal),
    tokenOf: orderTokens(orderToken),
    randomDigits: (count) => String(randomInt(10 ** count)).padStart(count, '0'),
    randomId: randomIds(),
  }
}

const ID_BYTES = 16
const IDS_A_DRAW = 256

/** Drawn for many ids at once: the system's randomness costs as much for one as for all of them. */
function randomIds(): DeskWorld['randomId'] {
  const drawn = Buffer.alloc(ID_BYTES * IDS_A_DRAW)
  let used = drawn.length
  return () => {
    if (used === drawn.length) {
      randomFillSync(drawn)
      used = 0
    }
    used += ID_BYTES
    return drawn.toString('base64url', used - ID_BYTES, used)
  }
}

function sealWith(orderSeal: KeyObject): DeskWorld['seal'] {
  return (terms, whose) => makeSeal(orderSeal, terms, whose)
}

async function openSigner(
  options: ServiceOptions,
  role: SignerRole,
  { db, record }: { readonly db: Database; readonly record: Database },
  opened: Opened,
): Promise<Signer> {
  const { logger, clock } = options
  await warnOfUnrecorded(options, db, record)
  const { localSigner } = await import('./signer/local_signer.ts')
  const signer = localSigner({
    seed: role.seed,
    store: signedTransactions(record),
    sealKey: role.orderSeal,
    settings: role.settings,
    // Limits an hour and a day are the real world's: a moved clock must not open them.
    clock: { nowMs: clock.wallMs },
  })
  if (role.socket !== null) {
    const { serveSigner } = await import('./signer/socket/socket_server.ts')
    const onError = (error: unknown) => logger.warn({ err: error }, 'the signer failed to answer')
    const server = await serveSigner({ path: role.socket, signer, onError })
    opened.closeWith(server.close)
  }
  return signer
}

/** The database of the service itself where no other is named. */
async function openSignerRecord(
  options: ServiceOptions,
  { databaseUrl }: SignerRole,
  db: Database,
  opened: Opened,
): Promise<Database> {
  if (databaseUrl === options.databaseUrl) return db
  await onSignerDatabase(() => bringSchema(options, databaseUrl, 'SIGNER_DATABASE_URL'))
  const record = openPool(options, databaseUrl, RECORD_CONNECTIONS_MAX)
  opened.closeWith(record.close)
  return record
}

/** A record that is empty or of an earlier state makes room under the limits that there is not: whoever chose it hears of it. */
async function warnOfUnrecorded(
  { logger, clock }: ServiceOptions,
  db: Database,
  record: Database,
): Promise<void> {
  // The first that it is asked in the service's role: what keeps it from an answer is told as its own trouble.
  const query: Sql['query'] = (text, values) => onSignerDatabase(() => record.query(text, values))
  const unrecorded = await findUnrecorded(db, record === db ? db : { query }, clock.nowMs())
  if (unrecorded.length === 0) return
  logger.error(
    { count: unrecorded.length, payouts: unrecorded.slice(0, 10) },
    "the signer's record does not know what it has signed for this database: it is empty, or of an earlier state. Its limits may count less than was spent, and it refuses higher fees for these payouts. If another is the right one, set SIGNER_DATABASE_URL to that. If it was lost and this one was begun anew, nothing is to be done for what is mined, and what is under way waits for its first attempt to be mined (TROUBLE in cambist order show names a conflict where that cannot be any more), unless you tell the record of it as docs/operating/running.md says, below Backup. This is said at each start until those under way have ended and the others are two days old",
  )
}

const SIGNER_TIMEOUT_MS = 30_000

function reachSigner(socket: string | null, opened: Opened): Signer {
  if (socket === null) throw new Error('the engine needs a signer: in its process, or on a socket')
  const signer = socketSigner({ path: socket, timeoutMs: SIGNER_TIMEOUT_MS })
  opened.closeWith(signer.close)
  return signer
}

const LAST_ANSWERS_MS = 500

async function openServer(
  options: ServiceOptions,
  world: World,
  record: Database,
  opened: Opened,
): Promise<Pick<Service, 'baseUrl' | 'origin'> & { close(): Promise<void> }> {
  const { roles, prices, clock, logger } = options
  const { port, host, limits } = options.http
  const metrics = new Registry()
  const quotes = decidesOrders(roles)
  const ageMs = quotes ? prices.ageMs?.bind(prices) : undefined
  registerGauges(world, metrics, ageMs && { ageMs, currencies: toldCurrencies(options.chains) })
  const readiness = openReadiness(world, { quotes, record: record === world.db ? null : record })
  const operator = { clock, limits, readiness, metrics, logger }

  let baseUrl = ''
  const app =
    roles.api === null
      ? buildOperatorServer(operator)
      : await buildInterface(roles.api, operator, world, () => baseUrl, opened)
  // Before the door closes, whoever keeps a connection open learns with an answer that it will be closed.
  app.addHook('preClose', () => clock.sleep(LAST_ANSWERS_MS))
  const close = closerOf(app, clock)
  opened.closeWith(close)
  const listening = await listenAt(app, { port, host })
  const origin = `http://${host.includes(':') ? `[${host}]` : host}:${listening.port}`
  baseUrl = roles.api?.baseUrl ?? origin
  return { baseUrl, origin, close }
}

async function buildInterface(
  api: ApiRole,
  operator: OperatorParts,
  world: World,
  baseUrl: () => string,
  opened: Opened,
): Promise<FastifyInstance> {
  const { buildServer } = await import('./http/server.ts')
  const { wallMs, nowMs } = operator.clock
  const accounts = { db: world.db, box: createSecretBox(api.accountKeys), wallMs }
  const { loopbackCallbacks: loopbackAllowed, changes: changeLimits } = operator.limits
  const owners = { ...accounts, nowMs, baseUrl, loopbackAllowed, changeLimits }
  const apiKeys = openApiKeys({
    ...accounts,
    onTouchFailed: (error) => operator.logger.warn({ err: error }, 'the last use of a key was not noted'),
  })
  opened.closeWith(apiKeys.settle)
  const desk = openDesk(openDeskWorld(world, api))
  return buildServer({
    ...operator,
    desk,
    webhooks: webhookDesk(world),
    endpoints: openEndpoints(owners),
    feed: openFeed(world),
    apiKeys,
    unsubscribing: unsubscribing(world.db, api.orderToken),
    owners,
    baseUrl,
    ...(api.sandbox && { sandbox: api.sandbox(world) }),
  })
}

function openEndpoints(owners: OwnerPlace): EndpointDesk {
  return {
    list: (accountId) => listEndpoints(owners, accountId),
    create: (owner, url, retry) => addEndpointOnce(owners, owner, url, retry),
    remove: (owner, endpointId) => removeEndpoint(owners, owner, endpointId),
  }
}

/** Loops end when their step does: asked all at once, they take as long as the slowest. */
function closeTogether(opened: Opened, running: readonly { stop(): Promise<void> }[]): void {
  opened.closeWith(async () => {
    const ends = await Promise.allSettled(running.map((one) => one.stop()))
    // What the others still need is closed only when all have ended.
    for (const end of ends) if (end.status === 'rejected') throw end.reason
  })
}

function describe({ roles }: ServiceOptions, { world, origin }: Omit<Service, 'stop'>): object {
  const chains = [...world.chains.keys()]
  return {
    roles: rolesOf(roles),
    listens: origin,
    chains,
    chainsWithoutNode: chainIds.filter((id) => !chains.includes(id)),
  }
}

function rolesOf({ api, watcher, engine, notifier, signer }: Roles): readonly string[] {
  const active = {
    api: api !== null,
    watcher,
    engine: engine !== null,
    notifier: notifier !== null,
    signer: signer !== null,
  }
  return Object.entries(active).flatMap(([role, isActive]) => (isActive ? [role] : []))
}
