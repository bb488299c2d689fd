import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type Devnet, removePostgres, startDevnet, startPostgres } from '@cambist/devnet'
import { type Client, type CreatedOrder, createClient } from '@cambist/sdk'
import pg from 'pg'
import { startVenue, type VenueServer } from '../../../src/prices/ccxt/venue_servers.ts'
import { createKeystore, newMnemonic, openKeystore } from '../../../src/signer/keystore.ts'
import { eventually } from '../../harness/eventually.ts'
import { openReadOnly, type ReadOnlyDatabase } from '../../harness/read_only_database.ts'
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
  /** A process with the environment of these roles, and nothing else in it. */
  start(roles: string): Promise<RunningProcess>
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
type Adjust = (environment: Environment) => Environment

const USD_CENTS = { BTC: 6_500_000n, ETH: 300_000n, BNB: 60_000n, USDT: 100n, USDC: 100n }
const VENUES = ['kraken', 'coinbase', 'bitstamp', 'bitfinex'] as const
const CLI = new URL('../../../src/cli.ts', import.meta.url).pathname
const PASSPHRASE = 'a passphrase that no log may show'

/** `adjust` has the last word on the environment of each process. */
export async function startGround(adjust: Adjust = (given) => given): Promise<Ground> {
  const dir = mkdtempSync(join(tmpdir(), 'cambist-serve-'))
  const secrets = new Set<string>([PASSPHRASE])
  const [devnet, postgres, venues] = await Promise.all([
    startDevnet({ dataDir: join(dir, 'devnet'), networks: ['ETH'], mining: 'manual' }),
    startPostgres({ dataDir: join(dir, 'postgres') }),
    Promise.all(VENUES.map((venue) => startVenue(venue, Date.now, () => USD_CENTS))),
  ])
  const written = await writeEnvironment(dir, devnet, postgres.url, secrets)
  const environmentOf = (roles: string) => adjust(written.of(roles))
  const database = openReadOnly(postgres.url)
  const processes: RunningProcess[] = []
  const command = async (...args: string[]) => {
    const { stdout } = await promisify(execFile)(process.execPath, [CLI, ...args], {
      env: { PATH: process.env.PATH ?? '', ...environmentOf('api') },
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
    start: async (roles) => {
      const started = await startProcess({
        roles,
        env: environmentOf(roles),
        venueOrigins: originsOf(venues),
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

/** What an operator writes into the unit file of each process: only what its roles need. */
async function writeEnvironment(dir: string, devnet: Devnet, databaseUrl: string, secrets: Set<string>) {
  const keyFile = (name: string) => {
    const key = randomBytes(32).toString('hex')
    secrets.add(key)
    return writeText(join(dir, `${name}.key`), key)
  }
  const seal = { CAMBIST_ORDER_SEAL_KEY_FILE: keyFile('seal') }
  const { ETH } = devnet.networks
  if (ETH === undefined) throw new Error('the devnet has Ethereum')
  const common = { DATABASE_URL: databaseUrl, PORT: '0', CAMBIST_LOG_LEVEL: 'debug' }
  const chain = {
    CAMBIST_ETH_CHAIN_ID: String(ETH.chainId),
    CAMBIST_CONTRACT_USDT_ERC20: ETH.tokens.USDT.address,
    CAMBIST_CONTRACT_USDC_ERC20: ETH.tokens.USDC.address,
  }
  const node = {
    ...chain,
    CAMBIST_ETH_URL: ETH.rpcUrl,
    CAMBIST_PRICE_VENUES: VENUES.join(','),
  }
  const socket = { CAMBIST_SIGNER_SOCKET: join(dir, 'signer.sock') }
  const byRole: Readonly<Record<string, Readonly<Record<string, string>>>> = {
    api: {
      ...node,
      ...seal,
      CAMBIST_ACCOUNT_KEY_FILE: keyFile('account'),
      CAMBIST_ORDER_TOKEN_KEY_FILE: keyFile('token'),
      CAMBIST_BASE_URL: 'http://exchange.example.org',
      CAMBIST_RATE_LIMIT_UNITS_PER_MINUTE: '1000000',
      CAMBIST_RATE_LIMIT_BURST_PER_SECOND: '100000',
      CAMBIST_RATE_LIMIT_CREATE_UNITS: '1',
    },
    watcher: node,
    engine: { ...node, ...seal, ...socket },
    // The signer knows the chains by their ids and contracts; it has no node.
    signer: {
      ...chain,
      CAMBIST_BTC_NETWORK: 'regtest',
      CAMBIST_BNB_CHAIN_ID: '31338',
      ...seal,
      ...socket,
      ...(await writeKeystore(dir, secrets)),
      CAMBIST_SPEND_LIMIT_USDT_ERC20: '100000 / 1000000 / 1000000',
      CAMBIST_SPEND_LIMIT_USDC_ERC20: '100000 / 1000000 / 1000000',
      CAMBIST_SPEND_LIMIT_ETH_ETH: '100 / 1000 / 1000',
    },
    notifier: {},
  }
  return { of: (role: string) => ({ ...common, ...byRole[role] }) }
}

async function writeKeystore(dir: string, secrets: Set<string>) {
  const path = join(dir, 'keystore.json')
  const mnemonic = newMnemonic()
  secrets.add(mnemonic)
  const made = await createKeystore({
    path,
    passphrase: PASSPHRASE,
    mnemonic,
    environment: 'sandbox',
    nowMs: Date.now(),
    scryptN: 2 ** 10,
  })
  const opened = await openKeystore({ path, passphrase: PASSPHRASE, environment: 'sandbox' })
  if (!made.ok || !opened.ok) throw new Error('the keystore was not made')
  secrets.add(Buffer.from(opened.value.seed).toString('hex'))
  return {
    CAMBIST_KEYSTORE_FILE: path,
    CAMBIST_KEYSTORE_PASSPHRASE_FILE: writeText(join(dir, 'passphrase'), PASSPHRASE),
  }
}

function writeText(path: string, text: string): string {
  writeFileSync(path, `${text}\n`, { mode: 0o600 })
  return path
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
  const client = createClient({ baseUrl: api.origin, ...key, fetch: noting })
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
  const client = createClient({ baseUrl: api.origin, apiKey: '', apiSecret: '' })
  await eventually('a quote is given', () =>
    client.getRate({ from: 'ETH', to: 'USDT', to_network: 'ERC20', amount: 1 }),
  )
}
