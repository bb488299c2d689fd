import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Postgres, removePostgres, startPostgres } from '@cambist/devnet'
import pg from 'pg'
import { addressOfScript } from '../src/chains/bitcoin/addresses.ts'
import { bitcoin } from '../src/chains/bitcoin/index.ts'
import type { Chain } from '../src/chains/chain.ts'
import { checksummed } from '../src/chains/evm/decode.ts'
import { evm } from '../src/chains/evm/index.ts'
import { systemClock } from '../src/clock.ts'
import { type Database, openDatabase } from '../src/db/database.ts'
import { takeLease } from '../src/db/leases.ts'
import { migrate } from '../src/db/migrate.ts'
import type { AssetId } from '../src/domain/catalog/assets.ts'
import { type ChainId, chainFacts } from '../src/domain/catalog/networks.ts'
import { defaultPolicy } from '../src/engine/default_policy.ts'
import { marketBoard } from '../src/engine/market.ts'
import { placeOrder } from '../src/engine/testing/books_stage.ts'
import { watchChain } from '../src/engine/watch.ts'
import type { World } from '../src/engine/world.ts'
import type { EvmNodeShape } from './block_server.ts'
import { ownProgram, PAID_A_BLOCK, paidIn } from './blocks/own_addresses.ts'
import { tell } from './figure.ts'
import { inTurns, microsecondsEach, type Work } from './in_turns.ts'
import { postgresCpuMicroseconds } from './postgres_cpu.ts'
import { type ServerProcess, startServerProcess } from './server_process.ts'

/**
 * What looking at a block costs: the real watcher with the real connector over HTTP, from a node that serves blocks as
 * full as mainnet's, on a real PostgreSQL with a thousand and with a million addresses of ours. In each block three
 * orders are paid, which is told and noted as ever. The blocks are the same for both; they are read in turns.
 */
const FEW = 1_000
const MANY = 1_000_000

type Family = {
  readonly chain: 'BTC' | 'ETH' | 'BNB'
  /** How often the chain makes a block. */
  readonly secondsABlock: number
  readonly blocks: number
  readonly shape: EvmNodeShape | null
  readonly pays: readonly AssetId[]
}

const families: readonly Family[] = [
  { chain: 'BTC', secondsABlock: 600, blocks: 15, shape: null, pays: ['BTC:BTC', 'BTC:BTC', 'BTC:BTC'] },
  {
    chain: 'ETH',
    secondsABlock: 12,
    blocks: 41,
    shape: { txs: 350, swaps: 35, traces: 'parity' },
    pays: ['USDT:ERC20', 'USDC:ERC20', 'ETH:ETH'],
  },
  {
    // https://www.bnbchain.org/en/blog: 0.75 s since Maxwell; a node has no trace_block.
    chain: 'BNB',
    secondsABlock: 0.75,
    blocks: 81,
    shape: { txs: 110, swaps: 50, traces: 'call' },
    pays: ['USDT:BEP20', 'USDC:BEP20', 'BNB:BNB'],
  },
]

const contracts = [
  '0x1111111111111111111111111111111111111111',
  '0x2222222222222222222222222222222222222222',
] as const

const folder = mkdtempSync(join(tmpdir(), 'cambist-bench-'))
const postgres = await startPostgres({ dataDir: join(folder, 'postgres') })
try {
  const few = await openWatched(postgres, 'few', FEW)
  const many = await openWatched(postgres, 'many', MANY)
  for (const family of families) await benchFamily(family, few, many)
  await few.close()
  await many.close()
} finally {
  await postgres.stop()
  removePostgres(join(folder, 'postgres'))
  rmSync(folder, { recursive: true, force: true })
}
process.exit(0)

async function benchFamily(family: Family, few: Database, many: Database): Promise<void> {
  const { chain, blocks, shape, secondsABlock } = family
  const node = await startServerProcess(
    'block_server.ts',
    shape === null ? [chain, String(blocks)] : [chain, String(blocks), JSON.stringify(shape), ...contracts],
  )
  try {
    const watchers = {
      few: await startWatcher(family, few, node),
      many: await startWatcher(family, many, node),
    }
    const postgresCost = { few: 0, many: 0 }
    const looker = (name: 'few' | 'many') => async (): Promise<Work> => {
      const atMs = Date.now()
      const postgresBefore = postgresCpuMicroseconds(postgres.pid)
      const before = process.cpuUsage()
      await watchers[name].lookAtNextBlock()
      const { user, system } = process.cpuUsage(before)
      const inPostgres = postgresCpuMicroseconds(postgres.pid) - postgresBefore
      postgresCost[name] += inPostgres
      return { count: 1, cpuMicroseconds: user + system + inPostgres, seconds: (Date.now() - atMs) / 1_000 }
    }
    // One round compiles; the first block is where watching begins.
    const work = await inTurns({ few: looker('few'), many: looker('many') }, blocks - 2)
    report(chain, secondsABlock, work, postgresCost)
  } finally {
    await node.stop()
  }
}

function report(
  chain: ChainId,
  secondsABlock: number,
  work: Record<'few' | 'many', Work>,
  postgresCost: Record<'few' | 'many', number>,
): void {
  const [few, many] = [microsecondsEach(work.few), microsecondsEach(work.many)]
  const milliseconds = (microseconds: number) => `${(microseconds / 1_000).toFixed(1)} ms`
  const inPostgres = (name: 'few' | 'many') => milliseconds(postgresCost[name] / (work[name].count + 1))
  tell({
    name: `${chain}: a block with ${MANY} addresses of ours`,
    value: many / few,
    unit: `times one with ${FEW}`,
    limit: { atMost: 1.5 },
    detail: `${milliseconds(many)} of processor against ${milliseconds(few)}, of these in PostgreSQL ${inPostgres('many')} and ${inPostgres('few')}`,
  })
  tell({
    name: `${chain}: a block of mainnet size is looked at`,
    value: (secondsABlock * 1_000_000) / many,
    unit: `times as fast as the chain makes one (${secondsABlock} s)`,
    limit: { atLeast: 20 },
    detail: `${milliseconds((work.many.seconds * 1e6) / work.many.count)} by the clock`,
  })
}

/** A database of its own on the server, with so many addresses on each family. */
async function openWatched({ url }: Postgres, name: string, addresses: number): Promise<Database> {
  const server = new pg.Client({ connectionString: url })
  await server.connect()
  await server.query(`CREATE DATABASE ${name}`)
  await server.end()
  const own = new URL(url)
  own.pathname = `/${name}`
  await migrate(own.href, () => {})
  const db = openDatabase({
    url: own.href,
    connectionsMax: 5,
    applicationName: 'bench',
    onConnectionLost: () => {},
  })
  const admin = new pg.Client({ connectionString: own.href })
  await admin.connect()
  // Keys that are not paid below: their addresses have the shape of real ones.
  for (const [family, start, length] of [
    ['bitcoin', 'bcrt1q', 38],
    ['evm', '0x', 40],
  ] as const) {
    await admin.query(
      `INSERT INTO addresses (family, address, purpose, key_index, chain, assigned_at_ms)
       SELECT $1, $2 || substr(md5(i::text) || md5((-i)::text), 1, $3), 'deposit', i + 1000000, 'ETH', 1
       FROM generate_series(1, $4::int) i`,
      [family, start, length, addresses],
    )
  }
  await admin.query(
    `INSERT INTO addresses (family, address, purpose, key_index)
     VALUES ('evm', '0x3333333333333333333333333333333333333333', 'reserve', 0)`,
  )
  await admin.query('VACUUM ANALYZE')
  await admin.end()
  return db
}

async function startWatcher(family: Family, db: Database, node: ServerProcess) {
  const chain = connect(family, node)
  const world = worldOf(chain, db)
  for (let height = 1; height <= family.blocks; height += 1) {
    for (const [ordinal, index] of paidIn(height).entries()) await orderAt(family, world, index, ordinal)
  }
  const setHead = (height: number) => fetch(`${node.url}/head`, { method: 'POST', body: String(height) })
  let height = 0
  const look = async () => {
    const lease = await takeLease(db, `watch:${chain.id}`, 'bench', Date.now(), 3_600_000)
    if (lease === null) throw new Error('nobody else watches')
    await setHead(height)
    await watchChain(world, chain, lease)
  }
  await look()
  return {
    lookAtNextBlock: async () => {
      height += 1
      await look()
      const [told] = await db.query<{ count: number }>(
        'SELECT count(*)::int AS count FROM deposits WHERE chain = $1',
        [chain.id],
      )
      if (told?.count !== height * PAID_A_BLOCK)
        throw new Error(`${told?.count} deposits after ${height} blocks`)
    },
  }
}

function connect({ chain }: Family, { url }: ServerProcess): Chain {
  const timeoutMs = 30_000
  if (chain === 'BTC') {
    const fees = { milliSatPerVbMax: 1_000_000n, milliSatPerVbFallback: 1_000n }
    return bitcoin({ id: chain, rpcUrl: url, network: 'regtest', timeoutMs, ...fees })
  }
  const [usdt, usdc] = contracts
  const tokens: Partial<Record<AssetId, `0x${string}`>> =
    chain === 'ETH' ? { 'USDT:ERC20': usdt, 'USDC:ERC20': usdc } : { 'USDT:BEP20': usdt, 'USDC:BEP20': usdc }
  return evm({
    id: chain,
    rpcUrl: url,
    evmChainId: 1,
    tokens,
    maxFeePerGasWeiMax: 10n ** 12n,
    timeoutMs,
    reserveAddress: () => '0x3333333333333333333333333333333333333333',
  })
}

function worldOf(chain: Chain, db: Database): World {
  const clock = systemClock()
  const prices = { usd: () => 1_000_000_000_000n }
  return {
    db,
    clock,
    chains: new Map([[chain.id, chain]]),
    prices,
    market: marketBoard({ db, clock, prices, policy: defaultPolicy, assets: new Set(chain.assets) }),
    policy: defaultPolicy,
    log: { info: () => {}, warn: (facts, message) => console.log(message, facts), error: console.log },
    tokens: {},
    evmChainIds: {},
  }
}

/** An order that the block of its key pays. */
async function orderAt({ pays, chain }: Family, world: World, index: number, ordinal: number): Promise<void> {
  const from = pays[ordinal]
  if (from === undefined) throw new Error('every payment is of an asset')
  const program = ownProgram(chain, index)
  const script = Buffer.concat([Buffer.from([0x00, 0x14]), program])
  const address =
    chainFacts[chain].family === 'bitcoin'
      ? addressOfScript('regtest', script)
      : checksummed(`0x${program.toString('hex')}`)
  await placeOrder({ db: world.db, world }, from, 'BTC:BTC', { asks: 1_000n, promises: 1_000n }, address)
}
