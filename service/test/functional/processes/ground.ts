import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type Devnet, removePostgres, startDevnet, startPostgres } from '@cambist/devnet'
import { type Client, type CreatedOrder, createClient } from '@cambist/sdk'
import pg from 'pg'
import { startVenue, type VenueServer } from '../../../src/prices/ccxt/testing/venue_servers.ts'
import { eventually } from '../../harness/eventually.ts'
import { impatient } from '../../harness/impatient.ts'
import { processEnvironment } from '../../harness/process_environment.ts'
import { openReadOnly, type ReadOnlyDatabase } from '../../harness/read_only_database.ts'
import { VENUES, writeEnvironment } from './environment.ts'
import { type RunningProcess, startProcess } from './running_process.ts'

/** Everything that processes of the service stand on, as an operator would provide it, and the processes themselves. */
export type Ground = {
  readonly devnet: Devnet
  readonly database: ReadOnlyDatabase
  readonly databaseUrl: string
  /** Writes as the owner of the database: what an intruder who has it could do. */
  tamper(sql: string, values: readonly unknown[]): Promise<void>
  /** Text that must never stand in any log: keys, words, passphrase, API secret, tokens. */
  readonly secrets: Set<string>
  /** Every process that was started, the dead ones too. */
  readonly processes: readonly RunningProcess[]
  /** A process with the environment of these roles, and nothing else in it but what `other` says. */
  start(roles: string, other?: OtherStart): Promise<RunningProcess>
  /** What an operator writes for a process of these roles. */
  environmentOf(roles: string): Environment
  /** Runs `cambist …` with the environment of the role api. */
  command(...args: string[]): Promise<string>
  /** The published client, on that process, with a key that `cambist keys create` made. */
  clientOf(api: RunningProcess): Promise<Client>
  /** Fills the reserves and waits until a quote can be given. */
  fund(api: RunningProcess): Promise<void>
  stop(): Promise<void>
}

type Environment = Readonly<Record<string, string>>
type OtherStart = { readonly env?: Environment; readonly stopSeconds?: number }
type Adjust = (environment: Environment) => Environment

const USD_CENTS = {
  BTC: 6_500_000n,
  ETH: 300_000n,
  BNB: 60_000n,
  USDT: 100n,
  USDC: 100n,
  XRP: 250n,
  XLM: 40n,
  TRX: 25n,
  EOS: 80n,
  SOL: 15_000n,
}
const CLI = join(import.meta.dirname, '../../../src/cli.ts')

/** `adjust` has the last word on the environment of each process. */
export async function startGround(adjust: Adjust = (given) => given): Promise<Ground> {
  const dir = mkdtempSync(join(tmpdir(), 'cambist-serve-'))
  const secrets = new Set<string>()
  const [devnet, postgres, venues] = await Promise.all([
    startDevnet({ dataDir: join(dir, 'devnet'), networks: ['ETH'], mining: 'manual' }),
    startPostgres({ dataDir: join(dir, 'postgres'), settings: { fsync: 'off' } }),
    Promise.all(VENUES.map((venue) => startVenue(venue, Date.now, () => USD_CENTS))),
  ])
  const written = await writeEnvironment({ dir, devnet, databaseUrl: postgres.url, secrets })
  const environmentOf = (roles: string) => adjust(written.of(roles))
  const database = openReadOnly(postgres.url)
  const processes: RunningProcess[] = []
  const command = async (...args: string[]) => {
    const { stdout } = await promisify(execFile)(process.execPath, [CLI, ...args], {
      env: { ...processEnvironment, ...environmentOf('api') },
    })
    return stdout
  }
  return {
    devnet,
    database,
    databaseUrl: postgres.url,
    tamper: (sql, values) => tamper(postgres.url, sql, values),
    secrets,
    processes,
    environmentOf,
    command,
    start: async (roles, { env, ...other } = {}) => {
      const started = await startProcess({
        roles,
        env: { ...environmentOf(roles), ...env },
        venueOrigins: originsOf(venues),
        ...other,
      })
      processes.push(started)
      return started
    },
    clientOf: (api) => openClient(api, command, secrets),
    fund: (api) => fund(api, devnet, database),
    stop: async () => {
      await Promise.all(processes.filter((each) => each.isRunning()).map((each) => each.kill()))
      await database.close()
      await Promise.all([devnet.stop(), postgres.stop(), ...venues.map((venue) => venue.stop())])
      removePostgres(join(dir, 'postgres'))
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

async function tamper(url: string, sql: string, values: readonly unknown[]): Promise<void> {
  const intruder = new pg.Client({ connectionString: url })
  await intruder.connect()
  try {
    const { rowCount } = await intruder.query(sql, [...values])
    if (rowCount !== 1) throw new Error(`the intruder changed ${rowCount} rows: ${sql}`)
  } finally {
    await intruder.end()
  }
}

function originsOf(venues: readonly VenueServer[]): Readonly<Record<string, string>> {
  return Object.fromEntries(venues.map(({ venue, origin }) => [venue, origin]))
}

async function openClient(
  api: RunningProcess,
  command: Ground['command'],
  secrets: Set<string>,
): Promise<Client> {
  const told = JSON.parse(await command('keys', 'create', 'A shop', '--json')) as {
    keyId: string
    secret: string
  }
  secrets.add(told.secret)
  const noting: typeof fetch = (input, init) => {
    const signature = new Headers(init?.headers).get('x-api-sign')
    if (signature !== null) secrets.add(signature)
    return fetch(input, init)
  }
  const key = { apiKey: told.keyId, apiSecret: told.secret }
  const client = createClient({ baseUrl: api.origin, ...key, fetch: noting, ...impatient })
  return {
    ...client,
    createOrder: async (request, options): Promise<CreatedOrder> => {
      const order = await client.createOrder(request, options)
      secrets.add(order.token)
      return order
    },
  }
}

async function fund(api: RunningProcess, devnet: Devnet, database: ReadOnlyDatabase): Promise<void> {
  const reserve = await eventually('the signer has told the reserve address', async () => {
    const [row] = await database.query<{ address: string }>(
      "SELECT address FROM addresses WHERE purpose = 'reserve'",
    )
    if (row === undefined) throw new Error('there is none yet')
    return row.address
  })
  await devnet.send('ETH', 'ETH', reserve, 500n * 10n ** 18n)
  await devnet.send('ETH', 'USDT', reserve, 500_000n * 10n ** 6n)
  await devnet.send('ETH', 'USDC', reserve, 500_000n * 10n ** 6n)
  await devnet.mine('ETH', 12)
  const client = createClient({ baseUrl: api.origin, ...impatient })
  await eventually('a quote is given', () =>
    client.getRate({ from: 'ETH', to: 'USDT', to_network: 'ERC20', amount: 1 }),
  )
}
