import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Postgres, removePostgres, startPostgres } from '@cambist/devnet'
import pg from 'pg'
import type { Chain } from '../src/chains/chain.ts'
import { systemClock } from '../src/clock.ts'
import { type Database, openDatabase } from '../src/db/database.ts'
import { takeLease } from '../src/db/leases.ts'
import { migrate } from '../src/db/migrate.ts'
import { type ChainId, chainFacts, chainIds } from '../src/domain/catalog/networks.ts'
import { openAlarms } from '../src/engine/alarms.ts'
import { defaultPolicy } from '../src/engine/default_policy.ts'
import { marketBoard } from '../src/engine/market.ts'
import { placeOrder } from '../src/engine/testing/books_stage.ts'
import { watchOnce } from '../src/engine/testing/watch_once.ts'
import type { World } from '../src/engine/world.ts'
import { secondsABlock } from './block_times.ts'
import { PAID_A_BLOCK, paidIn } from './blocks/own_addresses.ts'
import { tell } from './figure.ts'
import { inTurns, microsecondsEach, type Work } from './in_turns.ts'
import { postgresCpuMicroseconds } from './postgres_cpu.ts'
import { scannedChains } from './scanned_chains.ts'
import { type ServerProcess, startServerProcess } from './server_process.ts'

/**
 * What looking at a block costs: the real watcher with the real connector over HTTP, from a node that serves blocks as
 * full as mainnet's, on a real PostgreSQL with a thousand and with a million addresses of ours. In each block three
 * orders are paid, which is told and noted as ever. The blocks are the same for both; they are read in turns.
 */
const FEW = 1_000
const MANY = 1_000_000

/** `scanning.ts XRP` looks at this chain alone. */
const asked = process.argv.slice(2)
const isAsked = (chain: ChainId) => asked.length === 0 || asked.includes(chain)

const folder = mkdtempSync(join(tmpdir(), 'cambist-bench-'))
const postgres = await startPostgres({ dataDir: join(folder, 'postgres') })
try {
  const few = await openWatched(postgres, 'few', FEW)
  const many = await openWatched(postgres, 'many', MANY)
  for (const chain of chainIds) if (isAsked(chain)) await benchChain(chain, few, many)
  await few.close()
  await many.close()
} finally {
  await postgres.stop()
  removePostgres(join(folder, 'postgres'))
  rmSync(folder, { recursive: true, force: true })
}
process.exit(0)

async function benchChain(chain: ChainId, few: Watched, many: Watched): Promise<void> {
  const { blocks } = scannedChains[chain]
  const node = await startServerProcess('block_server.ts', [chain, String(blocks)])
  try {
    const watchers = {
      few: await startWatcher(chain, few.db, node),
      many: await startWatcher(chain, many.db, node),
    }
    // As a server does by itself, once a minute and in one database before the other: until then plans are those for empty tables.
    await few.analyze()
    await many.analyze()
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
    report(chain, work, postgresCost)
  } finally {
    await node.stop()
  }
}

function report(
  chain: ChainId,
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
    value: (secondsABlock[chain] * 1_000_000) / many,
    unit: `times as fast as the chain makes one (${secondsABlock[chain]} s)`,
    limit: { atLeast: 20 },
    detail: `${milliseconds((work.many.seconds * 1e6) / work.many.count)} by the clock`,
  })
}

type Watched = {
  readonly db: Database
  /** As its owner, who alone may. */
  analyze(): Promise<void>
  close(): Promise<void>
}

/** A database of its own on the server, with so many addresses on each family. */
async function openWatched({ url }: Postgres, name: string, addresses: number): Promise<Watched> {
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
  const families = new Map(chainIds.map((chain) => [chainFacts[chain].family, scannedChains[chain]]))
  for (const [family, { spelled, reserve }] of families) {
    await admin.query(
      `INSERT INTO addresses (family, address, purpose, key_index, chain, assigned_at_ms)
       SELECT $1, $2 || substr(md5(i::text) || md5((-i)::text), 1, $3), 'deposit', i + 1000000, 'ETH', 1
       FROM generate_series(1, $4::int) i`,
      [family, ...spelled, addresses],
    )
    if (reserve === null) continue
    await admin.query(
      `INSERT INTO addresses (family, address, purpose, key_index) VALUES ($1, $2, 'reserve', 0)`,
      [family, reserve],
    )
  }
  await admin.query('VACUUM ANALYZE')
  return {
    db,
    analyze: async () => void (await admin.query('ANALYZE')),
    close: async () => {
      await admin.end()
      await db.close()
    },
  }
}

async function startWatcher(id: ChainId, db: Database, node: ServerProcess) {
  const { blocks, connect } = scannedChains[id]
  const chain = connect(node.url)
  const world = worldOf(chain, db)
  for (let height = 1; height <= blocks; height += 1) {
    for (const [ordinal, index] of paidIn(height).entries()) await orderAt(id, world, index, ordinal)
  }
  const setHead = (height: number) => fetch(`${node.url}/head`, { method: 'POST', body: String(height) })
  let height = 0
  const look = async () => {
    const lease = await takeLease(db, `watch:${chain.id}`, 'bench', Date.now(), 3_600_000)
    if (lease === null) throw new Error('nobody else watches')
    await setHead(height)
    await watchOnce(world, chain, lease)
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
    alarms: openAlarms(),
    evmChainIds: { ETH: 31337, BNB: 31338 },
  }
}

/** An order that the block of its key pays. */
async function orderAt(chain: ChainId, world: World, index: number, ordinal: number): Promise<void> {
  const { pays, addressOf } = scannedChains[chain]
  const from = pays[ordinal]
  if (from === undefined) throw new Error('every payment is of an asset')
  const amounts = { asks: 1_000n, promises: 1_000n }
  await placeOrder({ db: world.db, world }, from, 'BTC:BTC', amounts, addressOf(index))
}
