import { createHmac, type KeyObject, randomBytes, randomInt } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import { hostname } from 'node:os'
import type { Logger } from 'pino'
import { Registry } from 'prom-client'
import { type ApiKeyStore, openApiKeys } from './accounts/api_keys.ts'
import { createSecretBox } from './accounts/secret_box.ts'
import { buildChains } from './chains/index.ts'
import type { MovableClock } from './clock.ts'
import type { ChainSettings } from './config/chain_settings.ts'
import type { Role } from './config/serve_config.ts'
import { reserveAddresses } from './db/addresses.ts'
import { type Database, openDatabase } from './db/database.ts'
import { migrate } from './db/migrate.ts'
import { signedTransactions } from './db/signed_transactions.ts'
import { chainFacts } from './domain/catalog/networks.ts'
import { openDesk } from './engine/desks.ts'
import { registerGauges } from './engine/gauges.ts'
import type { Loop } from './engine/loop.ts'
import { marketBoard } from './engine/market.ts'
import type { Policy } from './engine/policy.ts'
import { readReadiness } from './engine/readiness.ts'
import { startEngine, startMarket, startWatching } from './engine/run.ts'
import { makeSeal } from './engine/seal.ts'
import type { SigningWorld, World } from './engine/world.ts'
import type { HttpLimits } from './http/parts.ts'
import type { SandboxRoutes } from './http/sandbox/sandbox_port.ts'
import { buildServer } from './http/server.ts'
import type { Prices } from './prices/price_source.ts'
import { localSigner } from './signer/local_signer.ts'
import type { SignerSettings } from './signer/settings.ts'
import type { Signer } from './signer/signer.ts'
import { socketSigner } from './signer/socket_client.ts'
import { serveSigner } from './signer/socket_server.ts'

/** Everything a process is made of. Whoever calls has read the configuration and opened the keystore. */
export type ServiceOptions = {
  readonly roles: readonly Role[]
  readonly databaseUrl: string
  readonly chains: ChainSettings
  readonly prices: RunningPrices
  readonly policy: Policy
  readonly keys: {
    readonly account: readonly KeyObject[]
    readonly orderSeal: KeyObject
    readonly orderToken: KeyObject
  }
  readonly signer: SignerChoice
  readonly http: {
    readonly port: number
    readonly host: string
    /** Null: where it listens. */
    readonly baseUrl: string | null
    readonly limits: HttpLimits
    /** The sandbox's routes, for the world they move; left out everywhere else. */
    readonly sandbox?: (world: World) => SandboxRoutes
  }
  readonly clock: MovableClock
  readonly logger: Logger
}

export type RunningPrices = Prices & { start(): void; stop(): Promise<void> | void }

export type SignerChoice =
  /** The keys are in this process; with `serveAt` other processes reach them over that Unix socket. */
  | {
      readonly kind: 'local'
      readonly seed: Uint8Array
      readonly settings: SignerSettings
      readonly databaseUrl: string
      readonly serveAt: string | null
    }
  | { readonly kind: 'socket'; readonly path: string }
  /** This process needs none. */
  | { readonly kind: 'none' }

export type Service = {
  readonly world: World
  readonly baseUrl: string
  /** Finishes what is under way, lets leases go, and closes everything it opened. */
  stop(): Promise<void>
}

/** Puts everything together, top to bottom, and starts what the roles ask for. */
export async function startService(options: ServiceOptions): Promise<Service> {
  const { logger, clock } = options
  await migrate(options.databaseUrl, (line) => logger.debug({ migration: line }, 'migrating'))
  const db = openPool(options, options.databaseUrl, options.roles.includes('api') ? 20 : 12)
  const world = openWorld(options, db)
  const signer = await openSigner(options, db)
  const holder = `${hostname()}-${process.pid}-${randomBytes(4).toString('hex')}`

  const loops: Loop[] = []
  if (needsMarket(options.roles)) {
    options.prices.start()
    await world.market.refresh()
    loops.push(startMarket(world))
  }
  if (options.roles.includes('watcher')) loops.push(...startWatching(world, holder))
  if (options.roles.includes('engine') && signer.signer !== null) {
    const signingWorld: SigningWorld = { ...world, signer: signer.signer }
    loops.push(...startEngine(signingWorld, holder))
  }
  const server = await startServer(options, world)
  logger.info({ roles: options.roles, url: server.baseUrl }, 'the service is up')

  return {
    world,
    baseUrl: server.baseUrl,
    stop: async () => {
      await server.stop()
      await Promise.all(loops.map((loop) => loop.stop()))
      await options.prices.stop()
      await signer.close()
      await db.close()
      logger.info({}, 'the service has stopped')
    },
  }
}

function openPool(options: ServiceOptions, url: string, connectionsMax: number): Database {
  return openDatabase({
    url,
    connectionsMax,
    applicationName: `cambist ${options.roles.join(',')}`,
    onConnectionLost: (error) => options.logger.warn({ err: error }, 'a database connection was lost'),
  })
}

function openWorld(options: ServiceOptions, db: Database): World {
  const { clock, prices, policy, keys } = options
  const chains = buildChains(options.chains, async (id) => {
    const [address] = await reserveAddresses(db, chainFacts[id].family)
    if (address === undefined) throw new Error(`the signer has not told the reserve address of ${id} yet`)
    return address
  })
  const market = marketBoard({
    db,
    clock,
    prices,
    policy,
    assets: new Set([...chains.values()].flatMap((chain) => chain.assets)),
  })
  const { ETH, BNB } = options.chains
  return {
    db,
    clock,
    chains,
    prices,
    market,
    policy,
    log: options.logger,
    tokens: { ...ETH.tokens, ...BNB.tokens },
    evmChainIds: { ETH: ETH.evmChainId, BNB: BNB.evmChainId },
    seal: (terms) => makeSeal(keys.orderSeal, terms),
    tokenOf: (orderId) => createHmac('sha256', keys.orderToken).update(orderId).digest('base64url'),
    randomDigits: (count) => Array.from({ length: count }, () => randomInt(10)).join(''),
    randomId: () => randomBytes(16).toString('base64url'),
  }
}

function needsMarket(roles: readonly Role[]): boolean {
  return roles.includes('api') || roles.includes('engine')
}

type OpenSigner = { readonly signer: Signer | null; close(): Promise<void> }

async function openSigner(options: ServiceOptions, db: Database): Promise<OpenSigner> {
  const choice = options.signer
  switch (choice.kind) {
    case 'none':
      return { signer: null, close: async () => {} }
    case 'socket': {
      const signer = socketSigner({ path: choice.path, timeoutMs: 30_000 })
      return { signer, close: async () => signer.close() }
    }
    case 'local': {
      const isOwnDatabase = choice.databaseUrl !== options.databaseUrl
      if (isOwnDatabase) await migrate(choice.databaseUrl, () => {})
      const store = isOwnDatabase ? openPool(options, choice.databaseUrl, 4) : db
      const signer = localSigner({
        seed: choice.seed,
        store: signedTransactions(store),
        sealKey: options.keys.orderSeal,
        settings: choice.settings,
        clock: { nowMs: options.clock.wallMs },
      })
      const onError = (error: unknown) => options.logger.warn({ err: error }, 'a signer connection failed')
      const server =
        choice.serveAt === null ? null : await serveSigner({ path: choice.serveAt, signer, onError })
      return {
        signer,
        close: async () => {
          await server?.close()
          if (isOwnDatabase) await store.close()
        },
      }
    }
  }
}

type OpenServer = { readonly baseUrl: string; stop(): Promise<void> }

/** Every process answers health checks; only the role api has the interface. */
async function startServer(options: ServiceOptions, world: World): Promise<OpenServer> {
  const { http, keys, clock, logger } = options
  let baseUrl = http.baseUrl ?? ''
  const metrics = new Registry()
  registerGauges(world, metrics)
  const apiKeys: ApiKeyStore = openApiKeys({
    db: world.db,
    box: createSecretBox(keys.account),
    wallMs: clock.wallMs,
    onTouchFailed: (error) => logger.warn({ err: error }, 'the last use of a key was not noted'),
  })
  const app = buildServer({
    desk: openDesk(world),
    apiKeys,
    clock,
    baseUrl: () => baseUrl,
    limits: http.limits,
    readiness: () => readReadiness(world),
    metrics,
    logger,
    ...(http.sandbox && { sandbox: http.sandbox(world) }),
  })
  await app.listen({ port: http.port, host: http.host })
  const { port } = app.server.address() as AddressInfo
  baseUrl = http.baseUrl ?? `http://${http.host === '::1' ? '[::1]' : http.host}:${port}`
  return {
    baseUrl,
    stop: async () => {
      await app.close()
      await apiKeys.settle()
    },
  }
}
