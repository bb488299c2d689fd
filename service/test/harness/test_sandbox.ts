import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Devnet, type DevnetNetwork, removePostgres } from '@cambist/devnet'
import { type Client, createClient, type Order, type OrderStatus } from '@cambist/sdk'
import { afterAll, beforeAll, beforeEach, onTestFailed } from 'vitest'
import { noLimits } from '../../src/db/database.ts'
import { type ChainId, chainFacts, networkChains } from '../../src/domain/catalog/networks.ts'
import type { Policy } from '../../src/engine/policy.ts'
import { createLogger } from '../../src/log.ts'
import { blocksToBeTold } from '../../src/sandbox/mine.ts'
import { type SandboxRemote, sandboxRemote } from '../../src/sandbox/remote.ts'
import { type Sandbox, type SandboxOptions, startSandbox } from '../../src/sandbox/start_sandbox.ts'
import type { Service } from '../../src/wiring/roles.ts'
import { byFile } from './by_file.ts'
import { conformingFetch } from './conforming_fetch.ts'
import { eventually, Hopeless, type Patience } from './eventually.ts'
import { copyFirstStart } from './first_start.ts'
import { impatient } from './impatient.ts'
import { checkInvariants } from './invariants.ts'
import { findLogProblems } from './log_problems.ts'
import { openReadOnly } from './read_only_database.ts'

/** Chains on real nodes, whose blocks may leave them. */
export type ChainName = 'BTC' | 'ETH' | 'BNB'

const REAL: readonly ChainName[] = ['BTC', 'ETH', 'BNB']
/** Everything that can be exchanged. */
export const EVERY_NETWORK: readonly DevnetNetwork[] = [...REAL, 'XRP', 'XLM', 'TRX', 'EOS', 'SOL']

export type NetworkName = keyof typeof networkChains

export type TestSandboxOptions = {
  /** `manual` (the default): a block comes when the test says so. */
  readonly mining?: 'lively' | 'manual'
  readonly policy?: Partial<Policy>
  readonly rateLimits?: {
    readonly unitsPerMinute: number
    readonly burstPerSecond: number
    readonly createUnits: number
  }
  /** Default: those with real nodes. Each more has to be watched, which takes its share of a small machine. */
  readonly networks?: readonly DevnetNetwork[]
} & Pick<SandboxOptions, 'reach' | 'reachDatabase' | 'nodeTimeoutMs' | 'openPrices'>

/** A whole Cambist on real chains, and everything a test needs to drive it and to look inside. */
export type TestSandbox = {
  readonly baseUrl: string
  readonly dataDir: string
  readonly databaseUrl: string
  readonly account: Sandbox['account']
  /** The published client, as the demo account. */
  readonly client: Client
  /** The sandbox contract over HTTP: pay, mine, reorg, replace, prices, clock. */
  readonly remote: SandboxRemote
  /** The nodes themselves. */
  readonly devnet: Devnet
  readonly service: Service
  /** One more process of the service on the same database and chains; whoever starts it stops it. */
  startAnother: Sandbox['startAnother']
  /** Reads the tables as a superuser that can change nothing. */
  rows<Row extends object>(sql: string, values?: readonly unknown[]): Promise<Row[]>
  /** The story so far, shown when the test fails. */
  log(sentence: string): void
  /** Waits until the order has one of the statuses; fails at once when it ended in another. */
  waitForStatus(orderId: string, ...statuses: OrderStatus[]): Promise<Order>
  /** Waits until `look` does not throw; what it then answers. */
  eventually<Value>(what: string, look: () => Promise<Value> | Value, patience?: Patience): Promise<Value>
  mine(network: NetworkName, blocks: number): Promise<void>
  /** Mines as many blocks as a deposit or payout on this network needs to be final. */
  bury(network: NetworkName): Promise<void>
  /** Waits until everything that the chains know at this moment has been looked at by the service. */
  settle(...chains: ChainId[]): Promise<void>
  /** The story so far, the end of the log, and what the service knows of its chains and newest orders. */
  tellAll(): Promise<string>
  /** Lines of the log with at least this level (pino: 40 warn, 50 error). */
  logLines(levelMin: number): LogLine[]
  /** Text that must never stand in the log. */
  addSecret(secret: string): void
  /** An error line that contains this text is part of the test. */
  expectError(text: string): void
  readonly secrets: ReadonlySet<string>
  readonly expectedErrors: ReadonlySet<string>
  stop(): Promise<void>
}

export type LogLine = { readonly level: number; readonly msg: string; readonly text: string }

/**
 * Starts a sandbox for the tests of this file and stops it after the last, when the books are checked as well. Gives a
 * function because the sandbox is not there before the first test runs.
 */
export function useTestSandbox(options: TestSandboxOptions = {}): () => TestSandbox {
  let sandbox: TestSandbox | undefined
  const get = () => {
    if (sandbox === undefined) throw new Error('the sandbox has not started')
    return sandbox
  }
  beforeAll(async () => {
    sandbox = await startTestSandbox(options)
  })
  beforeEach(({ task }) => {
    get().log(`— ${task.name}`)
    onTestFailed(async () => console.error(await get().tellAll()))
  })
  afterAll(async () => {
    if (sandbox === undefined) return
    try {
      await checkSandbox(sandbox)
    } finally {
      await sandbox.stop()
    }
  })
  return get
}

/** What holds after any story, and a log without secrets or errors that no test expects. Throws with what is wrong. */
export async function checkSandbox(sandbox: TestSandbox): Promise<void> {
  await sandbox.settle()
  const { db, chains, clock } = sandbox.service.world
  await checkInvariants({ db, chains, clock, rows: sandbox.rows })
  const told = findLogProblems(sandbox)
  if (told.length > 0) throw new Error(told.join('\n'))
}

export async function startTestSandbox(options: TestSandboxOptions = {}): Promise<TestSandbox> {
  const dataDir = mkdtempSync(join(tmpdir(), 'cambist-test-'))
  const guard = killAtExit(dataDir)
  try {
    const { networks = REAL } = options
    if (REAL.every((network) => networks.includes(network))) await copyFirstStart(dataDir, startAndStop)
    const sandbox = await startIn(dataDir, options, { isLasting: false })
    await awaitPools(sandbox)
    return assemble(sandbox, dataDir, guard)
  } catch (error) {
    guard.killNow()
    const told = `the sandbox did not start\n${endOfLog(dataDir)}`
    discard(dataDir)
    throw new Error(told, { cause: error })
  }
}

async function startAndStop(dataDir: string): Promise<void> {
  const guard = killAtExit(dataDir)
  try {
    const sandbox = await startIn(dataDir, {}, { isLasting: true })
    await awaitPools(sandbox)
    await sandbox.stop()
  } catch (error) {
    guard.killNow()
    throw error
  } finally {
    guard.release()
  }
}

/** Tests come with many orders at once, as nobody does in the first second of a service's life. */
function awaitPools({ service }: Sandbox): Promise<void> {
  const { db, chains, policy } = service.world
  const families = new Set([...chains.values()].map(({ family }) => family))
  return eventually('addresses are ready for many orders', async () => {
    const full = await db.query(
      `SELECT family FROM addresses WHERE purpose = 'deposit' AND assigned_at_ms IS NULL
       GROUP BY family HAVING count(*) >= $1`,
      [policy.poolSize],
    )
    if (full.length < families.size) throw new Error(`only of ${full.map(({ family }) => family)}`)
  })
}

function startIn(
  dataDir: string,
  options: TestSandboxOptions,
  { isLasting }: { readonly isLasting: boolean },
): Promise<Sandbox> {
  return startSandbox({
    config: {
      kind: 'sandbox',
      port: 0,
      host: '127.0.0.1',
      dataDir,
      databaseUrl: null,
      logLevel: 'info',
      rateLimits: {
        unitsPerMinute: 1_000_000,
        burstPerSecond: 100_000,
        createUnits: 1,
        streamsMax: 10_000,
        streamsPerCaller: 10_000,
        ...options.rateLimits,
      },
    },
    logger: createLogger('info', join(dataDir, 'service.log')),
    mining: options.mining ?? 'manual',
    networks: options.networks ?? REAL,
    isLasting,
    // Gas for sweeps takes nonces between payouts: a test that mines by hand would have to mine for it as well.
    // Whoever makes something due in this process rings; looking for the rest more often is most of what a test would
    // cost. Nobody rings for sweeps, whose loops rest five times as long: tests of sweeps have them rest less.
    policy: { restMs: 1_000, poolSize: 60, sweepCostMultiple: 0n, payeeRefusedMs: 1_000, ...options.policy },
    ...quickDatabase(dataDir),
    // On a machine that is busy with others any process may stand still for longer than the service bears with. Who puts a line
    // in between that fails is shown what it bears.
    ...(options.reachDatabase === undefined && { databaseLimits: noLimits }),
    ...linesOf(options),
  })
}

/** The database through a file. Nor does anything wait for the disk: servers and processes are killed here, the power is never cut. */
function quickDatabase(dataDir: string): Pick<SandboxOptions, 'postgresSettings' | 'reachDatabase'> {
  const { settings, reach } = byFile(socketsOf(dataDir))
  // The server may run as somebody else.
  chmodSync(dataDir, 0o755)
  return { postgresSettings: { fsync: 'off', ...settings }, reachDatabase: async (url) => reach(url) }
}

/** What stands between the service and what it needs: lines that can fail. */
function linesOf({ reach, reachDatabase, nodeTimeoutMs, openPrices }: TestSandboxOptions) {
  return {
    ...(reach && { reach }),
    ...(reachDatabase && { reachDatabase }),
    ...(nodeTimeoutMs && { nodeTimeoutMs }),
    ...(openPrices && { openPrices }),
  }
}

function assemble(sandbox: Sandbox, dataDir: string, guard: Guard): TestSandbox {
  const { account, devnet, service, databaseUrl } = sandbox
  const { baseUrl } = service
  const database = openReadOnly(databaseUrl)
  const story: string[] = []
  const secrets = new Set([account.api_secret, account.webhook_secret])
  const expectedErrors = new Set<string>()
  const client = notingTokens(
    createClient({
      baseUrl,
      apiKey: account.api_key,
      apiSecret: account.api_secret,
      fetch: conformingFetch(baseUrl).fetch,
      ...impatient,
    }),
    (token) => secrets.add(token),
  )
  const rows = database.query
  const patiently: TestSandbox['eventually'] = (what, look, patience) =>
    eventually(what, look, { context: () => context(story, dataDir), ...patience })
  const lookAt = (chain: ChainId) => service.world.alarms.ring(`watch ${chain}`)
  const mine = (chain: ChainId, blocks: number) => devnet.mine(chain, blocks).then(() => lookAt(chain))
  return {
    baseUrl,
    dataDir,
    databaseUrl,
    account,
    client,
    remote: sandboxRemote(baseUrl),
    devnet,
    service,
    startAnother: sandbox.startAnother,
    rows,
    log: (sentence) => void story.push(sentence),
    waitForStatus: (orderId, ...statuses) =>
      eventually(
        `order ${orderId} is ${statuses.join(' or ')}`,
        () => haveStatus(client, orderId, statuses),
        {
          context: async () => `${await describeOrder(rows, orderId)}\n${context(story, dataDir)}`,
        },
      ),
    eventually: patiently,
    mine: (network, blocks) => mine(networkChains[network], blocks),
    bury: (network) => {
      const chain = networkChains[network]
      return mine(chain, chainFacts[chain].confirmationsLarge - 1 + blocksToBeTold(devnet, chain))
    },
    settle: async (...chains) => {
      const looked = chains.length > 0 ? chains : [...service.world.chains.keys()]
      await settleChains(patiently, rows, looked, lookAt)
      // What is shown rests on it, and it looks by itself.
      await patiently('the market has looked', () => service.world.market.refresh())
    },
    tellAll: async () => `${context(story, dataDir)}\n${await whatIsKnown(rows)}`,
    logLines: (levelMin) => readLog(dataDir).filter(({ level }) => level >= levelMin),
    addSecret: (secret) => void secrets.add(secret),
    expectError: (text) => void expectedErrors.add(text),
    secrets,
    expectedErrors,
    stop: async () => {
      await database.close()
      await sandbox.stop()
      guard.release()
      discard(dataDir)
    },
  }
}

/** Order tokens are secrets: each that is told is one more text that must not be logged. */
function notingTokens(client: Client, note: (token: string) => void): Client {
  return {
    ...client,
    createOrder: async (request, given) => {
      const order = await client.createOrder(request, given)
      note(order.token)
      return order
    },
  }
}

async function haveStatus(client: Client, orderId: string, statuses: readonly OrderStatus[]): Promise<Order> {
  const order = await client.getOrder(orderId)
  if (statuses.includes(order.status)) return order
  const isOver = order.status === 'DONE' || order.status === 'REFUNDED'
  throw new (isOver ? Hopeless : Error)(`it is ${order.status}`)
}

async function describeOrder(rows: TestSandbox['rows'], orderId: string): Promise<string> {
  const tables = { orders: '*', deposits: '*', outflows: '*', events: 'sequence, status, fact_key' }
  const parts = await Promise.all(
    Object.entries(tables).map(async ([table, columns]) => {
      const found = await rows(`SELECT ${columns} FROM ${table} WHERE order_id = $1`, [orderId])
      return `${table}: ${found.map((row) => showRow(row)).join('\n  ')}`
    }),
  )
  return parts.join('\n')
}

function showRow(row: object): string {
  return JSON.stringify(row, (_key, value: unknown) => (typeof value === 'bigint' ? String(value) : value))
}

type Head = { chain: ChainId; height: number; node_height: number; looked_wall_ms: number }

/** Two whole looks that began after this moment: the first may have been under way already. */
async function settleChains(
  patiently: TestSandbox['eventually'],
  rows: TestSandbox['rows'],
  chains: readonly ChainId[],
  lookAgain: (chain: ChainId) => void,
): Promise<void> {
  const read = async () => {
    const heads = await rows<Head>(
      'SELECT chain, height, node_height, looked_wall_ms FROM chain_heads WHERE chain = ANY($1)',
      [chains],
    )
    return chains.map((chain) => {
      const head = heads.find((one) => one.chain === chain)
      if (head === undefined) throw new Error(`${chain} was never looked at`)
      return head
    })
  }
  for (let looks = 0; looks < 2; looks += 1) {
    const before = await read()
    for (const chain of chains) lookAgain(chain)
    await patiently(`${chains} are looked at`, async () => {
      const behind = (await read()).filter(
        (now, at) => now.looked_wall_ms <= (before[at]?.looked_wall_ms ?? 0) || now.height < now.node_height,
      )
      if (behind.length > 0) throw new Error(`the last looks were ${JSON.stringify(behind)}`)
    })
  }
}

function context(story: readonly string[], dataDir: string): string {
  return `the story so far:\n  ${story.slice(-15).join('\n  ')}\n${endOfLog(dataDir)}`
}

/** Whether the chains were looked at, and what of the newest orders was seen on them. */
async function whatIsKnown(rows: TestSandbox['rows']): Promise<string> {
  const known = {
    heads: await rows('SELECT chain, height, node_height, looked_wall_ms, trouble FROM chain_heads'),
    orders: await rows(
      'SELECT order_id, status, from_asset, to_asset FROM orders ORDER BY created_at_ms DESC LIMIT 5',
    ),
    deposits: await rows('SELECT deposit_key, state FROM deposits ORDER BY seen_at_ms DESC LIMIT 5'),
  }
  return `at ${Date.now()}: ${JSON.stringify(known)}`
}

function endOfLog(dataDir: string): string {
  const lines = readLog(dataDir).filter(({ msg }) => msg !== 'request')
  const tail = lines.slice(-12).map(({ text }) => text.slice(0, 600))
  return `the log ends with:\n  ${tail.join('\n  ')}`
}

function readLog(dataDir: string): LogLine[] {
  const path = join(dataDir, 'service.log')
  if (!existsSync(path)) return []
  return readFileSync(path, 'utf8')
    .split('\n')
    .filter((text) => text.endsWith('}'))
    .map((text) => {
      const { level, msg } = JSON.parse(text) as { level: number; msg: string }
      return { level, msg, text }
    })
}

type Guard = { release(): void; killNow(): void }

/** Should this process end without having stopped its sandbox, the nodes and the database end with it. */
function killAtExit(dataDir: string): Guard {
  const killNow = () => {
    for (const pid of recordedPids(dataDir)) {
      try {
        process.kill(pid, 'SIGKILL')
      } catch {
        // gone already
      }
    }
  }
  process.once('exit', killNow)
  return { release: () => void process.off('exit', killNow), killNow }
}

/** Every program of the sandbox stands in a record beside its data. */
function recordedPids(dataDir: string): number[] {
  const folders = ['devnet/bitcoin', 'devnet/eth', 'devnet/bnb', 'postgres'].map((part) =>
    join(dataDir, part),
  )
  return folders.filter(existsSync).flatMap((folder) =>
    readdirSync(folder)
      .filter((name) => name === 'node.json' || name === 'server.json')
      .map((name) => (JSON.parse(readFileSync(join(folder, name), 'utf8')) as { pid: number }).pid),
  )
}

function discard(dataDir: string): void {
  removePostgres(join(dataDir, 'postgres'))
  for (const folder of [dataDir, socketsOf(dataDir)]) rmSync(folder, { recursive: true, force: true })
}

/** Beside its folder, in which a sandbox begins only while nothing of others is in it. */
function socketsOf(dataDir: string): string {
  return `${dataDir}-sockets`
}
