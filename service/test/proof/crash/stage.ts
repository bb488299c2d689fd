import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type Devnet, type DevnetNetwork, removePostgres, startDevnet } from '@cambist/devnet'
import { type Client, createClient } from '@cambist/sdk'
import pg from 'pg'
import { systemClock } from '../../../src/clock.ts'
import { readServeConfig } from '../../../src/config/serve_config.ts'
import { reserveAddresses } from '../../../src/db/addresses.ts'
import { openDatabase } from '../../../src/db/database.ts'
import { migrate } from '../../../src/db/migrate.ts'
import type { AddressFamily } from '../../../src/domain/catalog/networks.ts'
import { connectChains } from '../../../src/main.ts'
import { type Environment, writeEnvironment } from '../../functional/processes/environment.ts'
import { eventually } from '../../harness/eventually.ts'
import type { Inspected } from '../../harness/invariants.ts'
import { lastingPort } from '../../harness/lasting_port.ts'
import { processEnvironment } from '../../harness/process_environment.ts'
import { openReadOnly } from '../../harness/read_only_database.ts'
import { expectAllQuoted } from './customers.ts'
import { type Fleet, type Reaper, startFleet } from './fleet.ts'
import { type MortalPostgres, startMortalPostgres } from './mortal_postgres.ts'
import { type Patch, quickSuccession } from './patches.ts'
import type { Role } from './points.ts'
import { bury } from './trade.ts'

/** The chains and the server that everything stands on. They outlive the processes, and PostgreSQL comes back. */
export type Ground = {
  readonly dir: string
  readonly devnet: Devnet
  readonly postgres: MortalPostgres
  stop(): Promise<void>
}

/** A service in processes of its own on a ground, with a client and somebody who looks at everything. */
export type Stage = {
  readonly fleet: Fleet
  readonly client: Client
  readonly inspected: Inspected
  stop(): Promise<void>
}

const CLI = join(import.meta.dirname, '../../../src/cli.ts')

export async function startGround(
  networks: readonly DevnetNetwork[] = ['BTC', 'ETH', 'XRP'],
): Promise<Ground> {
  const dir = mkdtempSync(join(tmpdir(), 'cambist-crash-'))
  const [devnet, postgres] = await Promise.all([
    startDevnet({ dataDir: join(dir, 'devnet'), networks, mining: 'manual', isLasting: false }),
    startMortalPostgres(join(dir, 'postgres')),
  ])
  return {
    dir,
    devnet,
    postgres,
    stop: async () => {
      await Promise.all([devnet.stop(), postgres.stop()])
      removePostgres(join(dir, 'postgres'))
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

export type StageOptions = {
  readonly roles: readonly Role[]
  readonly patches?: readonly Patch[]
  /** Said to the database as its owner, before anybody works with it. */
  readonly sql?: readonly string[]
  readonly reaper: Reaper
  /** Where the engine finds Ethereum, when that is not the node itself. */
  readonly engineEthUrl?: string
}

export async function startStage(ground: Ground, options: StageOptions): Promise<Stage> {
  const { devnet, postgres } = ground
  const dir = mkdtempSync(join(ground.dir, 'stage-'))
  const url = await createDatabase(postgres.url)
  const secrets = new Set<string>()
  const environment = await writeEnvironment({ dir, devnet, databaseUrl: url, secrets })
  await migrate(url, () => {})
  await tell(url, options.sql ?? [])
  const fleet = startFleet({
    ...options,
    patches: [...quickSuccession, ...(options.patches ?? [])],
    dir,
    environment: adapted(environment, options),
    apiPort: await lastingPort(),
    isPostgresUp: postgres.isUp,
  })
  const [key] = await Promise.all([createApiKey(environment), fleet.allUp()])
  const inspection = await inspect(environment, url)
  await fund(ground, inspection.inspected)
  const client = createClient({ baseUrl: fleet.origin, ...key, retries: 0, timeoutMs: 10_000 })
  await eventually('what customers exchange is quoted', () => expectAllQuoted(client, devnet))
  return {
    fleet,
    client,
    inspected: inspection.inspected,
    stop: async () => {
      await fleet.stop()
      await inspection.close()
    },
  }
}

let databases = 0

/** One of its own for every stage. */
async function createDatabase(url: string): Promise<string> {
  databases += 1
  const name = `stage_${databases}`
  await tell(url, [`CREATE DATABASE ${name}`])
  const own = new URL(url)
  own.pathname = `/${name}`
  return own.href
}

async function tell(url: string, statements: readonly string[]): Promise<void> {
  const owner = new pg.Client({ connectionString: url })
  await owner.connect()
  try {
    for (const statement of statements) await owner.query(statement)
  } finally {
    await owner.end()
  }
}

/** A small pool, so that it is filled all the time. */
function adapted(environment: Environment, { engineEthUrl }: StageOptions): Environment {
  const forEngine = {
    CAMBIST_ADDRESS_POOL_SIZE: '60',
    ...(engineEthUrl !== undefined && { CAMBIST_ETH_URL: engineEthUrl }),
  }
  return { of: (role) => ({ ...environment.of(role), ...(role === 'engine' && forEngine) }) }
}

async function createApiKey(environment: Environment): Promise<{ apiKey: string; apiSecret: string }> {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [CLI, 'keys', 'create', 'A shop', '--json'],
    {
      env: { ...processEnvironment, ...environment.of('api') },
    },
  )
  const { keyId, secret } = JSON.parse(stdout) as { keyId: string; secret: string }
  return { apiKey: keyId, apiSecret: secret }
}

async function inspect(
  environment: Environment,
  url: string,
): Promise<{ inspected: Inspected; close(): Promise<void> }> {
  const reader = openReadOnly(url)
  const db = openDatabase({
    url,
    connectionsMax: 4,
    applicationName: 'crash test',
    onConnectionLost: () => {},
  })
  const { chains } = readServeConfig(environment.of('watcher'), 'watcher')
  return {
    inspected: { db, chains: await connectChains(chains, db), clock: systemClock(), rows: reader.query },
    close: async () => {
      await Promise.all([db.close(), reader.close()])
    },
  }
}

const RESERVE_COINS = 60

async function fund({ devnet }: Ground, { db }: Inspected): Promise<void> {
  const reserve = (family: AddressFamily) =>
    eventually(`the ${family} reserve address is told`, async () => {
      const [address] = await reserveAddresses(db, family)
      if (address === undefined) throw new Error('not yet')
      return address
    })
  const [bitcoin, evm, xrp] = await Promise.all([reserve('bitcoin'), reserve('evm'), reserve('xrp')])
  const { XLM, TRX, EOS, SOL } = devnet.networks
  const sends = [
    devnet.send('ETH', 'ETH', evm, 500n * 10n ** 18n),
    devnet.send('ETH', 'USDT', evm, 2_000_000n * 10n ** 6n),
    devnet.send('ETH', 'USDC', evm, 2_000_000n * 10n ** 6n),
    devnet.send('XRP', 'XRP', xrp, 2_000_000n * 10n ** 6n),
    ...(XLM === undefined
      ? []
      : [devnet.send('XLM', 'XLM', await reserve('stellar'), 5_000_000n * 10n ** 7n)]),
    ...(TRX === undefined ? [] : [devnet.send('TRX', 'TRX', await reserve('tron'), 5_000_000n * 10n ** 6n)]),
    devnet.send('BTC', 'BTC', bitcoin, 20_000_000n * BigInt(RESERVE_COINS), RESERVE_COINS),
  ]
  if (SOL !== undefined) {
    const solana = await reserve('solana')
    sends.push(devnet.send('SOL', 'SOL', solana, 50_000n * 10n ** 9n))
    sends.push(devnet.send('SOL', 'USDC', solana, 2_000_000n * 10n ** 6n))
  }
  if (EOS !== undefined) {
    // The memo stands behind the name.
    const [account = '', memo] = (await reserve('eos')).split('/')
    sends.push(devnet.send('EOS', 'EOS', account, 5_000_000n * 10n ** 4n, 1, memo))
  }
  await Promise.all(sends)
  await bury(devnet)
}
