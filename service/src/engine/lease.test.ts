import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Chain } from '../chains/chain.ts'
import { readHead } from '../db/chain_heads.ts'
import type { Database } from '../db/database.ts'
import { type Lease, takeLease } from '../db/leases.ts'
import { assert } from '../domain/assert.ts'
import { HOUR_MS, SECOND_MS } from '../domain/time.ts'
import { keepWhile, leaseKeeper } from './lease.ts'
import { startWatching } from './run.ts'
import { type BooksStage, openBooksStage, placeOrder } from './testing/books_stage.ts'
import { watchOnce } from './testing/watch_once.ts'
import { watchedDatabase } from './testing/watched_database.ts'

/**
 * What: a look that lasts longer than a lease holds ends all the same, while somebody else waits for the lease.
 * How: a real PostgreSQL behind which every transaction takes a second of the stage's time, and a chain on paper.
 */
let stage: BooksStage

beforeAll(async () => {
  stage = await openBooksStage('lease')
})

beforeEach(() => stage.reset())

afterAll(() => stage?.stop())

/** A block above the head that brings `count` deposits to one order. */
async function crowdedBlock(count: number): Promise<Chain> {
  const order = await placeOrder(stage, 'BTC:BTC', 'ETH:ETH', { asks: 100_000n, promises: 1_000n })
  const to = order.terms.depositAddress
  const chain = stage.chain('BTC')
  chain.setHead(101)
  return {
    ...chain,
    assets: [],
    readMempool: async () => [],
    readBlock: async (height, findOurs) => {
      await findOurs([to])
      return {
        height,
        hash: (await chain.blockHash(height)) ?? '',
        parentHash: (await chain.blockHash(height - 1)) ?? '',
        timeMs: stage.world.clock.wallMs(),
        transfers: Array.from({ length: count }, (_, index) => ({
          id: `aa:${index}`,
          txHash: 'aa',
          to,
          asset: 'BTC:BTC',
          units: 20_000n,
        })),
      }
    },
  }
}

/** `after` happens at the end of every transaction. */
function slowDatabase(after: () => Promise<unknown>): Database {
  return {
    ...stage.db,
    transaction: async (work) => {
      const value = await stage.db.transaction(work)
      await after()
      return value
    },
  }
}

async function requireHeld(keeper: { hold(): Promise<Lease | null> }): Promise<Lease> {
  const lease = await keeper.hold()
  assert(lease !== null, 'nobody else has it')
  return lease
}

async function countDeposits(): Promise<number> {
  return (await stage.db.query('SELECT 1 AS one FROM deposits')).length
}

test('a look that lasts longer than a lease holds keeps it', async () => {
  const chain = await crowdedBlock(200)
  const [mine, another] = ['me', 'another'].map((holder) => leaseKeeper(stage.world, 'watch:BTC', holder))
  assert(mine !== undefined && another !== undefined, 'there are two')
  const lease = await requireHeld(mine)
  const startedAtMs = stage.world.clock.nowMs()
  const db = slowDatabase(async () => {
    stage.advance(SECOND_MS)
    expect(await another.hold()).toBeNull()
  })
  await watchOnce({ ...stage.world, db }, chain, lease, { hold: mine.hold })
  expect(stage.world.clock.nowMs() - startedAtMs).toBeGreaterThan(20 * SECOND_MS)
  expect(await countDeposits()).toBe(200)
  expect(await readHead(stage.db, 'BTC')).toMatchObject({ block: { height: 101 }, trouble: null })
})

test('a watcher that slept until another had the lease does not take it back in the middle of its look', async () => {
  const chain = await crowdedBlock(200)
  const mine = leaseKeeper(stage.world, 'watch:BTC', 'me')
  const lease = await requireHeld(mine)
  let count = 0
  const db = slowDatabase(async () => {
    count += 1
    if (count !== 5) return
    stage.advance(HOUR_MS)
    // It comes and goes: the lease is free again when the sleeper asks for it, and no longer the same.
    await takeLease(stage.db, 'watch:BTC', 'another', stage.world.clock.wallMs(), SECOND_MS)
    stage.advance(HOUR_MS)
  })
  const late = watchOnce({ ...stage.world, db }, chain, lease, { hold: mine.hold })
  await expect(late).rejects.toThrow('the lease watch:BTC was lost')
  // The first transaction begins the block; the other four told of ten deposits each.
  expect(await countDeposits()).toBe(40)
  expect(await readHead(stage.db, 'BTC')).toMatchObject({ block: { height: 100 }, trouble: null })
})

test('a lease that was taken before the clock was set back is not held for as long as that', async () => {
  const wallMs = stage.world.clock.wallMs()
  const take = (holder: string, atMs: number) => takeLease(stage.db, 'watch:BTC', holder, atMs, 6 * SECOND_MS)
  await take('an earlier life', wallMs + HOUR_MS)
  expect(await take('me', wallMs)).toMatchObject({ holder: 'me', fence: 2 })
  // Clocks of two machines are never quite the same.
  expect(await take('another', wallMs - 30 * SECOND_MS)).toBeNull()
})

test('whoever holds a lease when the clock is set back renews it at once', async () => {
  const keeper = leaseKeeper(stage.world, 'watch:BTC', 'me')
  stage.advance(HOUR_MS)
  await requireHeld(keeper)
  stage.advance(-HOUR_MS)
  await requireHeld(keeper)
  const [row] = await stage.db.query<{ expires_wall_ms: number }>('SELECT expires_wall_ms FROM leases')
  expect(row?.expires_wall_ms).toBe(stage.world.clock.wallMs() + 6 * SECOND_MS)
})

test('whoever lost the lease has none until it is free again', async () => {
  const [mine, another] = ['me', 'another'].map((holder) => leaseKeeper(stage.world, 'watch:BTC', holder))
  assert(mine !== undefined && another !== undefined, 'there are two')
  const first = await requireHeld(mine)
  stage.advance(7 * SECOND_MS)
  await requireHeld(another)
  expect([await mine.hold(), await mine.hold()]).toEqual([null, null])
  await another.release()
  expect((await requireHeld(mine)).fence).toBe(first.fence + 2)
})

test('whoever asks for the lease while it is renewed waits for that', async () => {
  const { db, asked } = watchedDatabase(stage.db)
  const keeper = leaseKeeper({ ...stage.world, db }, 'watch:BTC', 'me')
  const first = await requireHeld(keeper)
  stage.advance(3 * SECOND_MS)
  expect(await Promise.all([1, 2, 3, 4].map(() => keeper.hold()))).toEqual([first, first, first, first])
  expect(asked()).toBe(2)
  await keeper.hold()
  expect(asked()).toBe(2)
})

test('a lease is renewed while somebody waits for a single answer, also when a renewal fails', async () => {
  const slept: (() => void)[] = []
  const clock = {
    ...stage.world.clock,
    sleep: (_: number, signal?: AbortSignal) =>
      new Promise<void>((resolve) => {
        slept.push(resolve)
        signal?.addEventListener('abort', () => resolve())
      }),
  }
  const warned: string[] = []
  const log = { ...stage.world.log, warn: (_: object, message: string) => void warned.push(message) }
  let renewals = 0
  const hold = async () => {
    renewals += 1
    if (renewals === 1) throw new Error('the database is away')
    return null
  }
  const answer = Promise.withResolvers<string>()
  const kept = keepWhile({ clock, log }, { hold }, () => answer.promise)
  for (const done of [1, 2]) {
    await expect.poll(() => slept.length).toBe(done)
    slept.at(-1)?.()
    await expect.poll(() => renewals).toBe(done)
  }
  answer.resolve('at last')
  expect(await kept).toBe('at last')
  expect(renewals).toBe(2)
  expect(warned).toEqual(['a lease was not renewed'])
})

/** Whoever sleeps on its clock wakes when the stage's time has come; `passSeconds` ends when they sleep again. */
function sleepersWorld() {
  const sleepers = new Set<{ readonly dueMs: number; readonly wake: () => void }>()
  const { nowMs } = stage.world.clock
  const sleep = (durationMs: number, signal?: AbortSignal) =>
    new Promise<void>((resolve) => {
      const sleeper = {
        dueMs: nowMs() + durationMs,
        wake: () => {
          sleepers.delete(sleeper)
          resolve()
        },
      }
      sleepers.add(sleeper)
      signal?.addEventListener('abort', sleeper.wake)
    })
  const passSeconds = async (seconds: number, each: () => Promise<void>) => {
    for (let passed = 0; passed < seconds; passed += 1) {
      stage.advance(SECOND_MS)
      const count = sleepers.size
      for (const { dueMs, wake } of [...sleepers]) if (dueMs <= nowMs()) wake()
      await expect.poll(() => sleepers.size).toBe(count)
      await each()
    }
  }
  return { world: { ...stage.world, clock: { ...stage.world.clock, sleep } }, passSeconds }
}

test('a watcher whose node takes longer over one answer than a lease holds comes to the end of its look', async () => {
  const chain = await crowdedBlock(1)
  const { world, passSeconds } = sleepersWorld()
  const another = leaseKeeper(world, 'watch:BTC', 'another')
  const taken: (Lease | null)[] = []
  const answerSlowly = () => passSeconds(7, async () => void taken.push(await another.hold()))
  const slow: Chain = {
    ...chain,
    checkIdentity: answerSlowly,
    readBlock: async (height, findOurs) => {
      await answerSlowly()
      return chain.readBlock(height, findOurs)
    },
  }
  const loops = startWatching({ ...world, chains: new Map([['BTC', slow]]) }, 'me')
  await expect.poll(() => readHead(stage.db, 'BTC')).toMatchObject({ block: { height: 101 }, trouble: null })
  await Promise.all(loops.map((loop) => loop.stop()))
  expect(taken).toEqual(Array.from({ length: 14 }, () => null))
  expect(await countDeposits()).toBe(1)
})
