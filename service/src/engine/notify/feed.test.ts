import { setImmediate } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { eventually } from '../../../test/harness/eventually.ts'
import { systemClock } from '../../clock.ts'
import type { Database } from '../../db/database.ts'
import { HOUR_MS, SECOND_MS } from '../../domain/time.ts'
import { type BooksStage, openBooksStage } from '../testing/books_stage.ts'
import { watchedDatabase } from '../testing/watched_database.ts'
import { happen, openOrder } from '../testing/webhook_stage.ts'
import { type EventFeed, openFeed } from './feed.ts'

/**
 * What: whoever follows an order is told each of its events once and in order, and is let go when it is time.
 * How: a real PostgreSQL; events are made by hand as `apply` writes them, and the wall clock stands still unless moved.
 */
let stage: BooksStage
let feed: EventFeed
let wallMs = 1_800_000_000_000

beforeAll(async () => {
  stage = await openBooksStage('feed')
})

beforeEach(async () => {
  await stage.reset()
  const clock = { ...stage.world.clock, wallMs: () => wallMs, sleep: systemClock().sleep }
  feed = openFeed({ ...stage.world, clock })
})

afterAll(() => stage?.stop())

function follow(orderId: string, after = 0, from = feed) {
  const told: (number | 'beat' | 'end')[] = []
  const leave = from.follow({
    orderId,
    after,
    tell: ({ sequence }) => told.push(sequence),
    beat: () => told.push('beat'),
    end: () => told.push('end'),
  })
  return { told, leave }
}

test('followers of one order are told what each of them has not had, once and in order', async () => {
  const [orderId, other] = [await openOrder(stage, null), await openOrder(stage, null)]
  await happen(stage, orderId)
  const [new_, old, elsewhere] = [follow(orderId), follow(orderId, 1), follow(other, 1)]
  await eventually('both are told', () => expect([new_.told, old.told]).toEqual([[1, 2], [2]]))
  await happen(stage, orderId, 'EXCHANGE')
  await happen(stage, orderId, 'WITHDRAW')
  await eventually('both are told the rest', () => expect(new_.told).toEqual([1, 2, 3, 4]))
  expect([old.told, elsewhere.told]).toEqual([[2, 3, 4], []])
  await feed.close()
})

test('who comes while others are looked for is told what only they have not had', async () => {
  const orderId = await openOrder(stage, null)
  await happen(stage, orderId)
  const [isRead, mayGoOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const db: Database = {
    ...stage.db,
    query: async <Row extends object>(text: string, values?: readonly unknown[]) => {
      const rows = await stage.db.query<Row>(text, values)
      isRead.resolve()
      await mayGoOn.promise
      return rows
    },
  }
  const slow = openFeed({ ...stage.world, db, clock: { ...stage.world.clock, sleep: systemClock().sleep } })
  const early = follow(orderId, 1, slow)
  await isRead.promise
  const late = follow(orderId, 0, slow)
  mayGoOn.resolve()
  await eventually('both are told', () => expect([early.told, late.told]).toEqual([[2], [1, 2]]))
  await slow.close()
})

test('a long history is told whole, and a piece at a time', async () => {
  const orderId = await openOrder(stage, null)
  for (let sequence = 2; sequence <= 60; sequence += 1) await happen(stage, orderId)
  const { told } = follow(orderId)
  const there = follow(orderId, 60)
  await eventually('the first are told', () => expect(told.length).toBeGreaterThan(0))
  expect(told.length).toBeLessThan(60)
  await happen(stage, orderId)
  await eventually('nobody waits for it', () => expect(there.told).toEqual([61]))
  await eventually('all are told', () => expect(told).toEqual(Array.from({ length: 61 }, (_, at) => at + 1)))
  await feed.close()
})

test('who has left is told nothing more, and the others are', async () => {
  const orderId = await openOrder(stage, null)
  const [gone, there] = [follow(orderId, 1), follow(orderId, 1)]
  gone.leave()
  gone.leave()
  await happen(stage, orderId)
  await eventually('the other one is told', () => expect(there.told).toEqual([2]))
  expect(gone.told).toEqual([])
  await feed.close()
})

test('what is missing is read at once, of that order alone', async () => {
  const orderId = await openOrder(stage, null)
  await openOrder(stage, null)
  await happen(stage, orderId)
  const read = async (after: number) =>
    (await feed.since(orderId, after)).map((event) => [event.orderId, event.sequence, event.status])
  expect(await read(0)).toEqual([
    [orderId, 1, 'NEW'],
    [orderId, 2, 'PENDING'],
  ])
  expect(await read(1)).toEqual([[orderId, 2, 'PENDING']])
  expect(await read(2)).toEqual([])
  await feed.close()
})

test('in a silence there is a beat every 15 seconds, and after an hour an end', async () => {
  const { told } = follow(await openOrder(stage, null), 1)
  wallMs += 15 * SECOND_MS
  await eventually('it beats', () => expect(told).toEqual(['beat']))
  wallMs += HOUR_MS
  await eventually('it ends', () => expect(told.at(-1)).toBe('end'))
  const before = told.length
  await feed.close()
  wallMs += 15 * SECOND_MS
  expect(told).toHaveLength(before)
})

test('a database that does not answer keeps nobody from a beat, and lets nobody go', async () => {
  const mayGoOn = Promise.withResolvers<[]>()
  const query = vi.fn(() => mayGoOn.promise)
  const clock = { ...stage.world.clock, wallMs: () => wallMs, sleep: systemClock().sleep }
  const slow = openFeed({ ...stage.world, db: { ...stage.db, query }, clock })
  const { told } = follow('CB4821093377160542', 1, slow)
  expect(query).toHaveBeenCalledOnce()
  wallMs += 15 * SECOND_MS
  await eventually('it beats', () => expect(told).toEqual(['beat']))
  wallMs += HOUR_MS
  await eventually('it beats again', () => expect(told).toEqual(['beat', 'beat']))
  mayGoOn.resolve([])
  await eventually('it ends when it could come back', () => expect(told).toEqual(['beat', 'beat', 'end']))
  await slow.close()
})

test('everybody is let go when the feed closes', async () => {
  const { told } = follow(await openOrder(stage, null), 1)
  await feed.close()
  expect(told).toEqual(['end'])
})

test('a database that does not answer keeps nobody from being let go, and then nothing more is told', async () => {
  const orderId = 'CB4821093377160542'
  const mayGoOn = Promise.withResolvers<object[]>()
  const query = vi.fn(() => mayGoOn.promise)
  const slow = openFeed({ ...stage.world, db: { ...stage.db, query } as never })
  const { told } = follow(orderId, 0, slow)
  expect(query).toHaveBeenCalledOnce()
  await slow.close()
  expect(told).toEqual(['end'])
  mayGoOn.resolve([{ orderId, sequence: 1 }])
  await setImmediate()
  expect(told).toEqual(['end'])
})

test('who comes when the feed has closed is let go at once, and nobody looks for them', async () => {
  const { db, asked } = watchedDatabase(stage.db)
  const closed = openFeed({ ...stage.world, db })
  await closed.close()
  const { told, leave } = follow(await openOrder(stage, null), 1, closed)
  leave()
  await closed.close()
  expect([told, asked()]).toEqual([['end'], 0])
})

test('a database that fails for a while costs nobody an event', async () => {
  const orderId = await openOrder(stage, null)
  const { told } = follow(orderId)
  await eventually('it is told', () => expect(told).toEqual([1]))
  expect(await stage.kill('true')).toBeGreaterThan(0)
  // Who writes may have got a connection that is gone, too.
  await eventually('it happens', () => happen(stage, orderId))
  await eventually('it is told the next', () => expect(told).toEqual([1, 2]))
  await feed.close()
})
