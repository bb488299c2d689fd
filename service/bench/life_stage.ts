import { reserveAddresses } from '../src/db/addresses.ts'
import { readHead } from '../src/db/chain_heads.ts'
import type { Database } from '../src/db/database.ts'
import { readReserves } from '../src/db/reserves.ts'
import { nativeAsset } from '../src/domain/catalog/assets.ts'
import { chainFacts } from '../src/domain/catalog/networks.ts'
import { amountOf, toChainUnits } from '../src/domain/money/amount.ts'
import { openNodes, type SimulatedNodes } from '../test/simulation/chains/simulated_chains.ts'
import { openBenchDatabase } from './bench_postgres.ts'
import { type LifeChild, startLifeChild } from './life_child.ts'
import { payFor, payTo, requestOf, traded } from './life_customers.ts'

/** The service in processes of its own on simulated chains that mine by the clock, and customers who pay at once. */
export type LifeStage = {
  /** Starts and ends engine processes until there are so many. Without any the chains stand still. */
  setEngines(count: number): Promise<void>
  /** Keeps so many orders on their way for so long; answers how many ended, and in how many seconds. */
  drive(inFlight: number, durationMs: number): Promise<{ readonly ended: number; readonly seconds: number }>
  /** Processor time so far of engines that live now, and of the others. */
  cpuMicroseconds(): Promise<{ readonly engines: number; readonly api: number; readonly chains: number }>
  enginePids(): readonly number[]
  stop(): Promise<void>
}

/** What lies on a chain before the service looks at it for the first time; chain units of the native coin. */
export type Lying = { readonly chain: 'ETH' | 'BNB'; readonly address: string; readonly units: bigint }

const BLOCK_MS = 250
/** A coin is change for a block after each payout: one coin would be one payout a block. */
const COINS = 400
/** Whatever a run pays out: times the largest order. */
const RESERVE_OF_LARGEST = 20n

export async function openLifeStage(databaseUrl: string, lying: readonly Lying[] = []): Promise<LifeStage> {
  const db = openBenchDatabase(databaseUrl, 3)
  const nodes = openNodes(() => Date.now())
  layDown(nodes, lying)
  const engines: LifeChild[] = []
  const miner = setInterval(() => {
    if (engines.length > 0) for (const node of Object.values(nodes)) node.mine(1)
  }, BLOCK_MS)
  engines.push(await startLifeChild(databaseUrl, 'engine', nodes))
  await fundReserves(db, nodes)
  const api = await startLifeChild(databaseUrl, 'api', nodes)
  let made = 0

  return {
    setEngines: async (count) => {
      while (engines.length < count) engines.push(await startLifeChild(databaseUrl, 'engine', nodes))
      while (engines.length > count) await engines.pop()?.stop()
    },
    drive: async (inFlight, durationMs) => {
      const startedMs = Date.now()
      const before = await countUnfinished(db)
      let created = 0
      while (Date.now() - startedMs < durationMs) {
        const missing = Math.min(50, inFlight - (await countUnfinished(db)))
        const orders = await api.create(Array.from({ length: Math.max(0, missing) }, () => requestOf(made++)))
        for (const order of orders) payFor(nodes, order)
        created += orders.length
        await delay(100)
      }
      const ended = before + created - (await countUnfinished(db))
      return { ended, seconds: (Date.now() - startedMs) / 1_000 }
    },
    cpuMicroseconds: async () => {
      const { user, system } = process.cpuUsage()
      const asked = await Promise.all(engines.map((engine) => engine.cpuMicroseconds()))
      const sum = asked.reduce((total, one) => total + one, 0)
      return { engines: sum, api: await api.cpuMicroseconds(), chains: user + system }
    },
    enginePids: () => engines.map(({ pid }) => pid),
    stop: async () => {
      for (const engine of engines) await engine.stop()
      await api.stop()
      clearInterval(miner)
      await db.close()
    },
  }
}

const PAYMENTS_A_TRANSACTION = 1_000

function layDown(nodes: SimulatedNodes, lying: readonly Lying[]): void {
  for (const chain of ['ETH', 'BNB'] as const) {
    const { id: asset } = nativeAsset(chain)
    const payments = lying
      .filter((one) => one.chain === chain)
      .map(({ address, units }) => ({ to: address, asset, units }))
    for (let first = 0; first < payments.length; first += PAYMENTS_A_TRANSACTION) {
      nodes[chain].pay(payments.slice(first, first + PAYMENTS_A_TRANSACTION))
    }
    nodes[chain].mine(1)
  }
}

async function fundReserves(db: Database, nodes: SimulatedNodes): Promise<void> {
  for (const asset of traded) {
    const to = await eventually(async () => (await reserveAddresses(db, chainFacts[asset.chain].family))[0])
    // What is paid before the first look at a chain is never heard of.
    await eventually(async () => (await readHead(db, asset.chain)) ?? undefined)
    const units = toChainUnits(amountOf(asset.id, asset.maxAmount * RESERVE_OF_LARGEST))
    const pieces = asset.chain === 'BTC' ? COINS : 1
    for (let piece = 0; piece < pieces; piece += 1) payTo(nodes, asset, to, units)
  }
  await eventually(async () => {
    const reserves = new Map((await readReserves(db)).map(({ asset, spendable }) => [asset, spendable]))
    return traded.every(({ id }) => (reserves.get(id) ?? 0n) > 0n) ? true : undefined
  })
}

async function countUnfinished(db: Database): Promise<number> {
  const [row] = await db.query<{ count: number }>(
    `SELECT count(*)::int AS count FROM orders WHERE status NOT IN ('DONE', 'EXPIRED', 'REFUNDED')`,
  )
  return row?.count ?? 0
}

async function eventually<Value>(ask: () => Promise<Value | undefined>): Promise<Value> {
  for (;;) {
    const answer = await ask()
    if (answer !== undefined) return answer
    await delay(50)
  }
}

function delay(durationMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, durationMs))
}
