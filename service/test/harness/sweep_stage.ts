import { createSecretKey, randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Devnet, removePostgres, startDevnet } from '@cambist/devnet'
import type { Chain } from '../../src/chains/chain.ts'
import { evm } from '../../src/chains/evm/index.ts'
import { type Clock, systemClock } from '../../src/clock.ts'
import { reserveAddresses } from '../../src/db/addresses.ts'
import type { Database, Sql } from '../../src/db/database.ts'
import { signedTransactions } from '../../src/db/signed_transactions.ts'
import { openAlarms } from '../../src/engine/alarms.ts'
import { defaultPolicy } from '../../src/engine/default_policy.ts'
import { leaseKeeper } from '../../src/engine/lease.ts'
import { marketBoard } from '../../src/engine/market.ts'
import { workPayouts } from '../../src/engine/payouts/work.ts'
import { fillPools } from '../../src/engine/pool.ts'
import { makeSeal } from '../../src/engine/seal.ts'
import { planSweeps } from '../../src/engine/sweeps/plan.ts'
import { watchOnce } from '../../src/engine/testing/watch_once.ts'
import type { SigningWorld } from '../../src/engine/world.ts'
import { sandboxPrices } from '../../src/prices/index.ts'
import { sandboxChains, sandboxSignerSettings } from '../../src/sandbox/chains.ts'
import { localSigner } from '../../src/signer/local_signer.ts'
import { startMigratedPostgres } from './migrated_postgres.ts'
import { PATIENCE_MS } from './patience.ts'
import { openTestDatabase } from './test_database.ts'

/** A process that ends after so many beats; every statement and every broadcast is a beat before it and one after it. */
/** Ends after so many statements, or at the first place that begins with `at`. */
export type Life = { left: number; readonly at?: string; endedAt: string | null }

type Line = (chain: Chain) => Chain

/** One account chain, a watcher, and sweeping processes that a test lets live and die. */
export type SweepStage = {
  readonly chain: Chain
  /** Of somebody who lives on. */
  readonly world: SigningWorld
  readonly reserve: string
  readonly paidUnits: Readonly<Record<'ETH' | 'USDC', bigint>>
  readonly logged: string[]
  /** Pays to the next address of the pool, which no order has. */
  deposit(currency: 'ETH' | 'USDC'): Promise<string>
  /** Makes all that was sent final, and lets the watcher see it. The clock jumps over every claim. */
  buryAndWatch(): Promise<void>
  /** A process begins and does what is due, until there is nothing or it dies; `through` is how it reaches the chain. */
  liveOnce(life: Life, through?: Line): Promise<void>
  /** Processes that live on, with blocks in between, until `look` does not throw. */
  liveUntil(what: string, look: () => Promise<void>, through?: Line): Promise<void>
  jump(durationMs: number): void
  /** Outflows that have not ended. */
  live(): Promise<string[]>
  /** States of what ended of an address, in the order of their making. */
  endedOf(address: string): Promise<string[]>
  held(currency: 'ETH' | 'USDC', address: string): Promise<bigint>
  nonce(address: string): Promise<number>
  stop(): Promise<void>
}

const PAID = { ETH: 10n ** 18n, USDC: 1_000_000_000n } as const
const OVER_EVERY_CLAIM_MS = 61_000
const ROUNDS_MAX = 40

export async function startSweepStage(): Promise<SweepStage> {
  const folder = mkdtempSync(join(tmpdir(), 'cambist-sweeps-'))
  const dataDir = join(folder, 'postgres')
  const [devnet, server] = await Promise.all([
    startDevnet({ dataDir: join(folder, 'devnet'), networks: ['ETH'], mining: 'manual' }),
    startMigratedPostgres(dataDir),
  ])
  const db = openTestDatabase(server.url, 'sweep stage')
  const stage = await assemble(devnet, db)
  return {
    ...stage,
    stop: async () => {
      await db.close()
      await Promise.all([devnet.stop(), server.stop()])
      removePostgres(dataDir)
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function assemble(devnet: Devnet, db: Database): Promise<Omit<SweepStage, 'stop'>> {
  const clock = jumpingClock()
  const logged: string[] = []
  const parts = await openParts(devnet, db, clock, logged)
  const world = worldOf(parts, db, parts.chain)
  for (let made = 0; made < world.policy.poolSize; made += 25) await fillPools(world)
  const [reserve = ''] = await reserveAddresses(db, 'evm')
  const watch = watcher(world, parts.chain)
  const buryAndWatch = async () => {
    await devnet.mine('ETH', 12)
    await watch()
    clock.jump(OVER_EVERY_CLAIM_MS)
  }
  await watch()
  for (const currency of ['ETH', 'USDC'] as const) {
    await devnet.send('ETH', currency, reserve, PAID[currency] * 10n)
  }
  await buryAndWatch()
  const liveOnce = async (life: Life, through: Line = (chain) => chain) => {
    const chain = mortalChain(through(parts.chain), life)
    const mortal = worldOf(parts, mortalDatabase(db, life), chain)
    try {
      await doWhatIsDue(mortal, chain, clock)
    } catch (error) {
      if (life.endedAt === null) throw error
    }
  }
  return {
    chain: parts.chain,
    world,
    reserve,
    paidUnits: PAID,
    logged,
    buryAndWatch,
    liveOnce,
    ...questions(devnet, db),
    deposit: depositor(devnet, db),
    jump: clock.jump,
    liveUntil: async (what, look, through) => {
      for (let round = 1; ; round += 1) {
        await liveOnce({ left: Number.POSITIVE_INFINITY, endedAt: null }, through)
        await buryAndWatch()
        try {
          return await look()
        } catch (error) {
          if (round === ROUNDS_MAX) throw new Error(`never came true: ${what}`, { cause: error })
        }
      }
    },
  }
}

/** As the loops of an engine do it, one after the other. */
async function doWhatIsDue(world: SigningWorld, chain: Chain, clock: JumpingClock): Promise<void> {
  await planSweeps(world, chain)
  for (const from of ['reserve', 'deposits', 'reserve', 'deposits'] as const) {
    await workPayouts(world, chain, from)
    clock.jump(1_000)
  }
}

type Parts = Awaited<ReturnType<typeof openParts>>

async function openParts(devnet: Devnet, db: Database, clock: Clock, logged: string[]) {
  const settings = await sandboxChains(devnet.networks)
  const { rpcUrl, ...eth } = settings.ETH
  if (rpcUrl === null) throw new Error('the devnet runs ETH')
  const reserveAddress = async () => (await reserveAddresses(db, 'evm'))[0] ?? ''
  const chain = evm({ ...eth, id: 'ETH', rpcUrl, timeoutMs: PATIENCE_MS, reserveAddress })
  const log = (facts: object, message: string) => {
    logged.push(`${message} ${Object.entries(facts).map(([name, fact]) => `${name}: ${String(fact)}`)}`)
  }
  const sealKey = createSecretKey(randomBytes(32))
  return { settings, chain, clock, log: { info: log, warn: log, error: log }, sealKey, seed: randomBytes(64) }
}

/** A process with this database and this chain; its signer dies with it. */
function worldOf({ settings, clock, log, sealKey, seed }: Parts, db: Database, chain: Chain): SigningWorld {
  const prices = sandboxPrices()
  const policy = { ...defaultPolicy, poolSize: 150, sweepRestMs: 200, atOnce: 1 }
  const signer = localSigner({
    seed,
    store: signedTransactions(db),
    sealKey,
    settings: sandboxSignerSettings(settings),
    clock,
  })
  return {
    db,
    clock,
    chains: new Map([['ETH', chain]]),
    prices,
    market: marketBoard({ db, clock, prices, policy, assets: new Set(chain.assets) }),
    policy,
    log,
    tokens: settings.ETH.tokens,
    alarms: openAlarms(),
    evmChainIds: { ETH: settings.ETH.evmChainId, BNB: settings.BNB.evmChainId },
    seal: (terms, whose) => makeSeal(sealKey, terms, whose),
    signer,
  }
}

function watcher(world: SigningWorld, chain: Chain): () => Promise<void> {
  const keeper = leaseKeeper(world, 'watch:ETH', 'the watcher')
  return async () => {
    const lease = await keeper.hold()
    if (lease === null) throw new Error('nobody else watches')
    while (await watchOnce(world, chain, lease)) world.log.info({}, 'more blocks')
  }
}

function questions(devnet: Devnet, db: Database): Pick<SweepStage, 'live' | 'endedOf' | 'held' | 'nonce'> {
  const texts = async (sql: string, values: readonly unknown[] = []) =>
    (await db.query<{ text: string }>(sql, values)).map(({ text }) => text)
  return {
    live: () =>
      texts(
        `SELECT payout_id || ' is ' || state AS text FROM outflows WHERE state IN ('planned', 'signed', 'broadcast')`,
      ),
    endedOf: (address) =>
      texts(
        `SELECT state AS text FROM outflows WHERE kind = 'sweep' AND $1 IN (address, from_address)
         ORDER BY planned_at_ms`,
        [address],
      ),
    held: (currency, address) => devnet.balance('ETH', currency, address),
    nonce: (address) =>
      devnet.evm('ETH').client.getTransactionCount({ address: address as `0x${string}`, blockTag: 'latest' }),
  }
}

function depositor(devnet: Devnet, db: Database): SweepStage['deposit'] {
  let index = 0
  return async (currency) => {
    const [row] = await db.query<{ address: string }>(
      `SELECT address FROM addresses WHERE family = 'evm' AND purpose = 'deposit' AND key_index = $1`,
      [index],
    )
    if (row === undefined) throw new Error('the pool is large enough')
    index += 1
    await devnet.send('ETH', currency, row.address, PAID[currency])
    return row.address
  }
}

type JumpingClock = Clock & { jump(durationMs: number): void }

/** Jumps the wall as well: claims and leases live by it. */
function jumpingClock(): JumpingClock {
  const real = systemClock()
  let skewMs = 0
  return {
    nowMs: () => real.nowMs() + skewMs,
    wallMs: () => real.wallMs() + skewMs,
    fromWallMs: (wallMs) => wallMs + skewMs,
    sleep: real.sleep,
    endOfTurn: real.endOfTurn,
    jump: (durationMs) => {
      skewMs += durationMs
    },
  }
}

function beat(life: Life, place: string): void {
  if (life.endedAt === null) {
    life.left -= 1
    const isHere = life.at !== undefined && place.startsWith(life.at)
    if (life.left > 0 && !isHere) return
    life.endedAt = place
  }
  throw new Error(`the process is dead since ${life.endedAt}`)
}

async function between<Value>(life: Life, place: string, work: () => Promise<Value>): Promise<Value> {
  beat(life, `before ${place}`)
  const value = await work()
  beat(life, `after ${place}`)
  return value
}

/** What the dead process had begun is rolled back; what it had committed stays, whether it learnt of it or not. */
function mortalDatabase(db: Database, life: Life): Database {
  const mortal = (sql: Sql): Sql => ({
    query: (text, values) => between(life, text.trim().slice(0, 60), () => sql.query(text, values)),
  })
  return {
    ...mortal(db),
    transaction: (work) => between(life, 'a transaction', () => db.transaction((tx) => work(mortal(tx)))),
    close: db.close,
  }
}

function mortalChain(chain: Chain, life: Life): Chain {
  return { ...chain, broadcast: (tx) => between(life, 'broadcast', () => chain.broadcast(tx)) }
}
