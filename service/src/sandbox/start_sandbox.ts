import { existsSync } from 'node:fs'
import { mkdir, rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { type Devnet, type Postgres, removePostgres, startDevnet, startPostgres } from '@cambist/devnet'
import type { Logger } from 'pino'
import { createSecretBox } from '../accounts/secret_box.ts'
import { systemClock } from '../clock.ts'
import type { ChainSettings } from '../config/chain_settings.ts'
import type { SandboxConfig } from '../config/sandbox_config.ts'
import { sandboxKey } from '../config/sandbox_secrets.ts'
import { openDatabase } from '../db/database.ts'
import { migrate } from '../db/migrate.ts'
import { type AssetId, assets } from '../domain/catalog/assets.ts'
import type { ChainId } from '../domain/catalog/networks.ts'
import { powerOfTen } from '../domain/money/decimal.ts'
import { defaultPolicy } from '../engine/default_policy.ts'
import type { Policy } from '../engine/policy.ts'
import { defaultLimits } from '../http/parts.ts'
import { type Service, type ServiceOptions, startService } from '../main.ts'
import { sandboxPrices } from '../prices/index.ts'
import type { SignerSettings } from '../signer/settings.ts'
import { type DemoAccount, openDemoAccount, writeJson } from './demo_account.ts'
import { fundReserves } from './fund_reserves.ts'
import { openSandboxSeed } from './keys.ts'
import { openSandboxRoutes } from './routes.ts'
import { readSettings, type SandboxSettings } from './settings.ts'

export type Sandbox = {
  readonly service: Service
  readonly devnet: Devnet
  readonly account: DemoAccount
  readonly databaseUrl: string
  readonly sandboxFile: string
  /** One more process of the same service, as far as the database can tell, on the same chains, clock and prices. */
  startAnother(roles: ServiceOptions['roles']): Promise<Service>
  stop(): Promise<void>
}

export type SandboxOptions = {
  readonly config: SandboxConfig
  readonly logger: Logger
  /** One line for a person who waits. */
  readonly say?: (line: string) => void
  /** Tests mine by hand. */
  readonly mining?: 'lively' | 'manual'
  readonly policy?: Partial<Policy>
  /** Tests put a line that can fail between the service and its nodes: the URL to use instead of a node's own. */
  readonly reach?: (chain: ChainId, rpcUrl: string) => Promise<string>
}

/** Brings up everything a stranger needs to try an exchange: database, chains, service, reserves, an account. */
export async function startSandbox(options: SandboxOptions): Promise<Sandbox> {
  const dataDir = resolve(options.config.dataDir)
  const sandboxFile = join(dataDir, 'sandbox.json')
  await mkdir(dataDir, { recursive: true })
  // The file says that the sandbox is ready, so one of an earlier life must not be there meanwhile.
  await rm(sandboxFile, { force: true })
  const ground = await startGround(options, dataDir)
  const stopping = new AbortController()
  let service: Service | undefined
  try {
    await migrate(ground.databaseUrl, () => {})
    const { account, settings } = await prepare(dataDir, ground.databaseUrl)
    const parts = await serviceParts(options, ground, dataDir, settings)
    const started = await startService(parts)
    service = started
    await fundReserves(started.world, ground.devnet, stopping.signal)
    await started.world.market.refresh()
    await writeJson(sandboxFile, describe(started, ground.devnet, account))
    return {
      service: started,
      devnet: ground.devnet,
      account,
      databaseUrl: ground.databaseUrl,
      sandboxFile,
      startAnother: (roles) => startService({ ...parts, roles, http: { ...parts.http, port: 0 } }),
      stop: async () => {
        stopping.abort()
        await rm(sandboxFile, { force: true })
        await started.stop()
        await ground.stop()
      },
    }
  } catch (error) {
    await service?.stop()
    await ground.stop()
    throw error
  }
}

/** What stands below the service, and outlives it when it is killed. */
type Ground = { readonly devnet: Devnet; readonly databaseUrl: string; stop(): Promise<void> }

async function startGround(
  { config, mining, say = () => {} }: SandboxOptions,
  dataDir: string,
): Promise<Ground> {
  const [devnet, postgres] = await Promise.all([
    startDevnet({ dataDir: join(dataDir, 'devnet'), mining: mining ?? 'lively', log: say }),
    config.databaseUrl === null ? startPostgres({ dataDir: join(dataDir, 'postgres') }) : null,
  ])
  return {
    devnet,
    databaseUrl: config.databaseUrl ?? urlOf(postgres),
    stop: async () => {
      await devnet.stop()
      await postgres?.stop()
    },
  }
}

function urlOf(postgres: Postgres | null): string {
  if (postgres === null) throw new Error('there is no database')
  return postgres.url
}

async function prepare(dataDir: string, databaseUrl: string) {
  const db = openDatabase({
    url: databaseUrl,
    connectionsMax: 2,
    applicationName: 'cambist sandbox start',
    onConnectionLost: () => {},
  })
  try {
    const box = createSecretBox([sandboxKey('account')])
    const account = await openDemoAccount(dataDir, { db, box, wallMs: systemClock().wallMs })
    return { account, settings: await readSettings(db) }
  } finally {
    await db.close()
  }
}

async function serviceParts(
  options: SandboxOptions,
  { devnet, databaseUrl }: Ground,
  dataDir: string,
  settings: SandboxSettings,
): Promise<ServiceOptions> {
  const { config, logger } = options
  const clock = systemClock()
  clock.setOffset(settings.clockOffsetMs)
  const prices = sandboxPrices()
  prices.load(settings.prices)
  const chains = await chainsOf(devnet, options.reach ?? directly)
  const seed = await openSandboxSeed(dataDir, clock.wallMs())
  const orderSeal = sandboxKey('order-seal')
  return {
    roles: {
      api: {
        accountKeys: [sandboxKey('account')],
        orderSeal,
        orderToken: sandboxKey('order-token'),
        baseUrl: null,
        sandbox: (world) => openSandboxRoutes({ world, devnet, clock, prices }),
      },
      watcher: true,
      engine: { orderSeal, signerSocket: null },
      signer: { orderSeal, seed, settings: signerSettings(chains), databaseUrl, socket: null },
    },
    databaseUrl,
    chains,
    prices: { usd: prices.usd, start: () => {}, stop: () => {} },
    policy: { ...defaultPolicy, ...options.policy },
    http: {
      port: config.port,
      host: config.host,
      limits: { ...defaultLimits, ...config.rateLimits, loopbackCallbacks: true },
    },
    clock,
    logger,
  }
}

async function directly(_chain: ChainId, rpcUrl: string): Promise<string> {
  return rpcUrl
}

const GWEI = powerOfTen(9)

async function chainsOf(
  { networks: { BTC, ETH, BNB } }: Devnet,
  reach: NonNullable<SandboxOptions['reach']>,
): Promise<ChainSettings> {
  const urlOfNode = async (chain: ChainId, node: { readonly rpcUrl: string } | undefined) =>
    node === undefined ? null : reach(chain, node.rpcUrl)
  return {
    BTC: {
      rpcUrl: await urlOfNode('BTC', BTC),
      network: 'regtest',
      milliSatPerVbMax: 500_000n,
      feeSatoshiMax: 1_000_000n,
    },
    ETH: evmSettings(ETH, 'ERC20', await urlOfNode('ETH', ETH)),
    BNB: evmSettings(BNB, 'BEP20', await urlOfNode('BNB', BNB)),
    nodeTimeoutMs: 10_000,
  }
}

function evmSettings(
  info: Devnet['networks']['ETH'],
  network: 'ERC20' | 'BEP20',
  rpcUrl: string | null,
): ChainSettings['ETH'] {
  const tokens = Object.entries(info?.tokens ?? {}).map(([symbol, token]) => [
    `${symbol}:${network}`,
    token.address,
  ])
  return {
    rpcUrl,
    evmChainId: info?.chainId ?? 0,
    maxFeePerGasWeiMax: 500n * GWEI,
    gasLimitMax: 1_000_000n,
    tokens: Object.fromEntries(tokens) as ChainSettings['ETH']['tokens'],
  }
}

/** Caps far above anything the sandbox does: it shows that they are there, not where they should be. */
function signerSettings({ BTC, ETH, BNB }: ChainSettings): SignerSettings {
  const evm = ({ evmChainId, gasLimitMax, maxFeePerGasWeiMax }: ChainSettings['ETH']) => ({
    chainId: evmChainId,
    gasLimitMax,
    feePerGasWeiMax: maxFeePerGasWeiMax,
  })
  return {
    bitcoin: { network: BTC.network, feeRateSatPerVbMax: 1_000n, feeSatoshiMax: BTC.feeSatoshiMax },
    evm: { ETH: evm(ETH), BNB: evm(BNB) },
    contracts: { ...ETH.tokens, ...BNB.tokens },
    payoutUnitsMax: Object.fromEntries(assets.map(({ id, maxAmount }) => [id, maxAmount * 2n])) as Record<
      AssetId,
      bigint
    >,
    limits: [],
  }
}

function describe({ baseUrl }: Service, { networks }: Devnet, account: DemoAccount): object {
  return { base_url: baseUrl, ...account, networks }
}

/** Stops whatever a killed sandbox left running and deletes everything it kept. */
export async function resetSandbox(config: SandboxConfig): Promise<void> {
  const dataDir = resolve(config.dataDir)
  if (!existsSync(dataDir)) return
  const [devnet, postgres] = await Promise.all([
    startDevnet({ dataDir: join(dataDir, 'devnet'), mining: 'manual' }),
    startPostgres({ dataDir: join(dataDir, 'postgres') }),
  ])
  await Promise.all([devnet.stop(), postgres.stop()])
  await removePostgres(join(dataDir, 'postgres'))
  await rm(dataDir, { recursive: true, force: true })
}
