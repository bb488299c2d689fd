import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Sql } from '../../db/database.ts'
import { findOrderPage } from '../../db/order_pages.ts'
import { type BooksStage, openBooksStage, placeOrder } from '../testing/books_stage.ts'
import { pagesTouched } from '../testing/pages_touched.ts'
import { rowsRead } from '../testing/rows_read.ts'
import type { DeskWorld } from '../world.ts'
import type { Desk, OrderFilter, OrderPage, OrderPosition } from './desk.ts'
import { orderDesk } from './order_desk.ts'

/**
 * What: whoever turns the pages of an account's orders meets each that was there at the beginning once, whatever is
 * created and changed meanwhile.
 * How: the real desk on a real PostgreSQL; orders are made between the pages, also with times that lie between those
 * already read, as a process with a slow clock makes them.
 */
let stage: BooksStage
let desk: Pick<Desk, 'listOrders'>

beforeAll(async () => {
  stage = await openBooksStage('order-pages')
})
beforeEach(async () => {
  await stage.reset()
  desk = orderDesk({ ...stage.world, tokenOf: () => '', seal: () => '' } as unknown as DeskWorld)
})
afterAll(() => stage?.stop())

const everything: OrderFilter = {
  statuses: null,
  createdFromMs: null,
  createdBeforeMs: null,
  updatedFromMs: null,
}

async function make(count: number, advanceMs = 0): Promise<string[]> {
  const made: string[] = []
  for (let index = 0; index < count; index += 1) {
    const order = await placeOrder(stage, 'BTC:BTC', 'ETH:ETH', { asks: 10n ** 15n, promises: 10n ** 17n })
    made.push(order.terms.id)
    stage.advance(advanceMs)
  }
  return made
}

function page(limit: number, after: OrderPosition | null, filter: Partial<OrderFilter> = {}) {
  return desk.listOrders('acc_stage', { ...everything, ...filter }, { after, limit })
}

function idsOf({ orders }: OrderPage): string[] {
  return orders.map(({ order_id }) => order_id)
}

/** All pages; `between` happens after each. */
async function readAll(limit: number, between: () => Promise<unknown>, filter: Partial<OrderFilter> = {}) {
  const met: string[] = []
  for (let after: OrderPosition | null = null; ; ) {
    const read: OrderPage = await page(limit, after, filter)
    met.push(...idsOf(read))
    if (read.next === null) return met
    after = read.next
    await between()
  }
}

test('pages are the newest first, also among orders of one moment, and end where the orders end', async () => {
  const atOnce = await make(5)
  stage.advance(1)
  const later = await make(2, 1)
  const all = [...later.reverse(), ...atOnce.reverse()]
  for (const limit of [1, 2, 3, 6, 7, 8]) expect(await readAll(limit, async () => {})).toEqual(all)
  expect((await page(7, null)).next).toBeNull()
  expect((await page(6, null)).next).not.toBeNull()
})

test('an order that was there at the beginning is met once while others are created', async () => {
  const before = await make(12, 10)
  const met = await readAll(3, async () => {
    await make(2, 1)
    // As a process whose clock is behind makes them: amid what has been read, and amid what has not.
    stage.advance(-35)
    await make(2, 1)
    stage.advance(31)
  })
  expect(new Set(met).size).toBe(met.length)
  expect(met.filter((id) => before.includes(id))).toEqual([...before].reverse())
})

test('an order that changes while pages are turned is not met twice', async () => {
  const before = await make(6, 10)
  const met = await readAll(2, () =>
    stage.corrupt(`UPDATE orders SET status = 'EXPIRED', updated_at_ms = updated_at_ms + 1000`),
  )
  expect(met).toEqual([...before].reverse())
})

test('filters hold their bounds: from a time on, and before a time', async () => {
  const startMs = stage.world.clock.nowMs()
  const [first, second, third] = (await make(3, 100)) as [string, string, string]
  const of = async (filter: Partial<OrderFilter>) => idsOf(await page(10, null, filter))
  expect(await of({ createdFromMs: startMs + 100 })).toEqual([third, second])
  expect(await of({ createdFromMs: startMs + 101 })).toEqual([third])
  expect(await of({ createdBeforeMs: startMs + 100 })).toEqual([first])
  expect(await of({ createdBeforeMs: startMs + 101 })).toEqual([second, first])
  expect(await of({ createdFromMs: startMs + 1, createdBeforeMs: startMs + 200 })).toEqual([second])
  await stage.corrupt(`UPDATE orders SET status = 'EXPIRED', updated_at_ms = $1 WHERE order_id = $2`, [
    startMs + 5_000,
    first,
  ])
  expect(await of({ updatedFromMs: startMs + 5_000 })).toEqual([first])
  expect(await of({ updatedFromMs: startMs + 5_001 })).toEqual([])
  expect(await of({ statuses: ['EXPIRED'] })).toEqual([first])
  expect(await of({ statuses: ['NEW', 'EXPIRED'] })).toEqual([third, second, first])
  expect(await of({ statuses: ['NEW', 'EXPIRED', 'NEW'] })).toEqual([third, second, first])
  // The bound of the filter still holds behind a cursor.
  const { next } = await page(1, null, { createdBeforeMs: startMs + 200 })
  expect(idsOf(await page(10, next, { createdBeforeMs: startMs + 200 }))).toEqual([first])
})

test('somebody else has none of them', async () => {
  await make(2)
  expect(await desk.listOrders('acc_other', everything, { after: null, limit: 10 })).toEqual({
    orders: [],
    next: null,
  })
})

/** So many orders of the account that are over, none of which has changed for as many seconds as came after it. */
async function makeHistory(count: number): Promise<void> {
  await make(1)
  await stage.corrupt(
    `INSERT INTO orders SELECT (made).* FROM (
       SELECT jsonb_populate_record(o, jsonb_build_object('bucket', n % 100,
         'order_id', 'CB7' || lpad(n::text, 13, '0') || lpad((n % 100)::text, 2, '0'), 'status', 'EXPIRED',
         'created_at_ms', o.created_at_ms - n * 1000, 'updated_at_ms', o.created_at_ms - n * 1000)) AS made
       FROM orders o, generate_series(1, $1) AS n OFFSET 0) AS history`,
    [count],
  )
  // What other tests left behind is not read again.
  await stage.corrupt('VACUUM (ANALYZE) orders')
}

/** The pages of the database that are touched to find a page of orders, and how many orders are on it. */
async function costOf(
  filter: Partial<OrderFilter>,
  after: OrderPosition | null = null,
): Promise<{ pages: number; found: number }> {
  let pages = 0
  const counting: Sql = {
    query: async (text, values) => {
      pages += await pagesTouched(stage.db, (sql) => sql.query(text, values))
      return stage.db.query(text, values)
    },
  }
  const found = await findOrderPage(counting, 'acc_stage', { ...everything, ...filter }, after, 50)
  return { pages, found: found.length }
}

test('whoever follows changes does not read the whole past', async () => {
  await makeHistory(20_000)
  const nowMs = stage.world.clock.nowMs()
  for (const filter of [
    { updatedFromMs: nowMs - 5_000 },
    { updatedFromMs: nowMs + 1 },
    { statuses: ['DONE'], updatedFromMs: nowMs - 60_000 },
  ] satisfies Partial<OrderFilter>[]) {
    expect((await costOf(filter)).pages, JSON.stringify(filter)).toBeLessThan(400)
  }
  expect((await costOf({ updatedFromMs: nowMs - 5_000 })).found).toBe(6)
})

test('the end of what has changed is found without reading what came before', async () => {
  await makeHistory(20_000)
  const nowMs = stage.world.clock.nowMs()
  const filter = { updatedFromMs: nowMs - 2_000_000 }
  const nearEnd = { createdAtMs: nowMs - 1_990_000, orderId: '' }
  const costs = [
    await costOf(filter, nearEnd),
    await costOf({ ...filter, createdBeforeMs: nowMs - 5_000_000 }),
    await costOf({ ...filter, statuses: ['EXPIRED', 'DONE'] }, nearEnd),
    // What is older than all there is costs nothing.
    await costOf({ updatedFromMs: 1 }, { createdAtMs: nowMs - 19_990_000, orderId: '' }),
  ]
  expect(costs.map(({ found }) => found)).toEqual([10, 0, 10, 10])
  for (const [index, { pages }] of costs.entries()) expect(pages, `${index}`).toBeLessThan(200)
})

test('old orders that have changed are found among many that have not, and each is met once', async () => {
  await makeHistory(20_000)
  const nowMs = stage.world.clock.nowMs()
  await stage.corrupt(
    `UPDATE orders SET updated_at_ms = $1 WHERE order_id LIKE 'CB7%' AND substr(order_id, 4, 13)::int % 18 = 0`,
    [nowMs],
  )
  await stage.corrupt('VACUUM (ANALYZE) orders')
  const filter = { updatedFromMs: nowMs - 10_000 }
  const nearEnd = { createdAtMs: nowMs - 19_900_000, orderId: '' }
  for (const [after, count] of [
    [null, 50],
    [{ createdAtMs: nowMs - 10_000_000, orderId: '' }, 50],
    [nearEnd, 6],
  ] satisfies [OrderPosition | null, number][]) {
    const { pages, found } = await costOf(filter, after)
    expect(pages, JSON.stringify(after)).toBeLessThan(400)
    expect(found).toBe(count)
    const ask = (sql: Sql) => findOrderPage(sql, 'acc_stage', { ...everything, ...filter }, after, 50)
    expect(await rowsRead(stage.db, ['orders'], ask), JSON.stringify(after)).toBeLessThan(100)
  }
  expect((await costOf({ ...filter, statuses: ['EXPIRED'] }, nearEnd)).found).toBe(6)
  const met = await readAll(300, async () => {}, filter)
  expect(met).toHaveLength(11 + 1_111)
  expect(new Set(met).size).toBe(met.length)
  const rows = await stage.db.query<{ order_id: string }>(
    'SELECT order_id FROM orders WHERE updated_at_ms >= $1 ORDER BY created_at_ms DESC, order_id DESC',
    [filter.updatedFromMs],
  )
  expect(met).toEqual(rows.map(({ order_id }) => order_id))
})

test('a page is found by its index, however many orders there are', async () => {
  await makeHistory(20_000)
  const nowMs = stage.world.clock.nowMs()
  for (const filter of [{}, { createdBeforeMs: nowMs - 10_000_000 }] satisfies Partial<OrderFilter>[]) {
    const { pages, found } = await costOf(filter)
    expect(pages, JSON.stringify(filter)).toBeLessThan(400)
    expect(found).toBe(50)
  }
})

test('whoever asks for a status does not read all orders of the others', async () => {
  await makeHistory(20_000)
  const nowMs = stage.world.clock.nowMs()
  for (const [filter, count] of [
    [{ statuses: ['DONE'] }, 0],
    [{ statuses: ['REFUNDED', 'EMERGENCY'] }, 0],
    [{ statuses: ['NEW', 'REFUNDED'] }, 1],
    [{ statuses: ['NEW', 'EXPIRED', 'DONE'], createdBeforeMs: nowMs - 10_000_000 }, 50],
    // More have changed than are looked at one by one.
    [{ statuses: ['NEW'], updatedFromMs: nowMs - 10_000_000 }, 1],
  ] satisfies [Partial<OrderFilter>, number][]) {
    const { pages, found } = await costOf(filter)
    expect(pages, JSON.stringify(filter)).toBeLessThan(400)
    expect(found, JSON.stringify(filter)).toBe(count)
  }
})

test('whoever asks for all that ever changed gets page by page what there is', async () => {
  await makeHistory(1_500)
  const met = await readAll(400, async () => {}, { updatedFromMs: 1 })
  expect(new Set(met).size).toBe(1_501)
  expect(met).toHaveLength(1_501)
})
