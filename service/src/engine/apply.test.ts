import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Database } from '../db/database.ts'
import { amountOf } from '../domain/money/amount.ts'
import type { Fact } from '../domain/orders/facts.ts'
import { apply, applyInTurn } from './apply.ts'
import { type BooksStage, openBooksStage, placeOrder } from './testing/books_stage.ts'
import { countingRows } from './testing/counting_rows.ts'
import { pricedOrder } from './testing/priced_order.ts'

/**
 * What: hearing a fact again costs an order with many deposits no more than one with few, and many facts at once read them
 * once.
 * How: a real PostgreSQL, behind a connection that counts the rows that it answers.
 */
let stage: BooksStage

beforeAll(async () => {
  stage = await openBooksStage('apply')
})

beforeEach(() => stage.reset())

afterAll(() => stage?.stop())

test('a fact that is known is dropped before any deposit is read', async () => {
  const order = await placeOrder(stage, 'BNB:BNB', 'BTC:BTC', { asks: 10n ** 18n, promises: 1_000n })
  const { id } = order.terms
  const tell = async (index: number) => {
    const { db, rows } = countingRows(stage.db)
    const { factKey, fact } = crumb(index)
    const { kind } = await apply({ ...stage.world, db }, id, factKey, fact)
    return { kind, rows: rows() }
  }
  for (let index = 0; index < 10; index += 1) expect(await tell(index)).toMatchObject({ kind: 'changed' })
  // The order itself, and that the fact is there.
  expect(await tell(0)).toEqual({ kind: 'duplicate', rows: 2 })
  // The order and its ten deposits: what the fact means depends on all of them.
  expect(await tell(10)).toEqual({ kind: 'changed', rows: 11 })
})

test('what many crumbs in one block mean is told with one look at the deposits there are', async () => {
  const order = await placeOrder(stage, 'BNB:BNB', 'BTC:BTC', { asks: 10n ** 18n, promises: 1_000n })
  const { id } = order.terms
  const first = [0, 1, 2, 3, 4].map(crumb)
  for (const { factKey, fact } of first) await apply(stage.world, id, factKey, fact)
  const { db, rows } = countingRows(stage.db)
  const later = [4, 5, 6, 7, 8, 9].map(crumb)
  const answers = await applyInTurn({ ...stage.world, db }, id, later)
  expect(answers.map(({ kind }) => kind)).toEqual(['duplicate', ...Array(5).fill('changed')])
  // The order, that the first fact is there, and five deposits.
  expect(rows()).toBe(7)
  const stored = await stage.db.query('SELECT deposit_key FROM deposits ORDER BY deposit_key')
  expect(stored).toEqual(Array.from({ length: 10 }, (_, index) => ({ deposit_key: crumb(index).key })))
  const last = answers.at(-1)
  expect(last?.kind === 'changed' && last.order.deposits.length).toBe(10)
})

test('facts that are told together are all told or none', async () => {
  const order = await placeOrder(stage, 'BNB:BNB', 'BTC:BTC', { asks: 10n ** 18n, promises: 1_000n })
  const lost = async () => {
    throw new Error('the lease is lost')
  }
  const told = [crumb(0), crumb(1), { ...crumb(2), alongside: lost }]
  await expect(applyInTurn(stage.world, order.terms.id, told)).rejects.toThrow('the lease is lost')
  expect(await stage.db.query(`SELECT FROM facts WHERE kind = 'DepositSeen'`)).toEqual([])
  expect(await stage.db.query('SELECT FROM deposits')).toEqual([])
})

test('what waits for the database or for its turn has happened when it had its turn', async () => {
  const order = await placeOrder(stage, 'BNB:BNB', 'BTC:BTC', { asks: 10n ** 18n, promises: 1_000n })
  const { id } = order.terms
  const connected = Promise.withResolvers<void>()
  const transaction: Database['transaction'] = async (work) => {
    await connected.promise
    return stage.db.transaction(work)
  }
  const startedAtMs = stage.world.clock.nowMs()
  const slow = apply({ ...stage.world, db: { ...stage.db, transaction } }, id, 'slow', crumb(0).fact)
  stage.advance(5_000)
  await apply(stage.world, id, 'quick', crumb(1).fact)
  connected.resolve()
  expect(await slow).toMatchObject({ kind: 'changed', order: { updatedAtMs: startedAtMs + 5_000 } })
  const told = await stage.db.query(`SELECT at_ms AS at FROM facts WHERE kind = 'DepositSeen'`)
  expect(told).toEqual([{ at: startedAtMs + 5_000 }, { at: startedAtMs + 5_000 }])
})

test('what means nothing is noted once, with what belongs to its moment; what is refused leaves nothing', async () => {
  const { id } = await pricedOrder(stage)
  const events = () =>
    stage.db.query('SELECT sequence, previous_status, status FROM events ORDER BY sequence')
  const before = await events()
  expect(before.at(-1)).toMatchObject({ previous_status: 'PENDING', status: 'EXCHANGE' })
  let written = 0
  const tell = async (factKey: string, fact: Fact) => {
    const { kind } = await apply(stage.world, id, factKey, fact, async () => {
      written += 1
    })
    const noted = await stage.db.query('SELECT outcome FROM facts WHERE fact_key = $1', [factKey])
    return [kind, written, noted]
  }
  const late: Fact = { kind: 'ExchangeStalled', payoutId: null, sequence: 1 }
  expect(await tell('late', late)).toEqual(['ignored', 1, [{ outcome: 'ignored' }]])
  expect(await tell('late', late)).toEqual(['duplicate', 1, [{ outcome: 'ignored' }]])
  const chosen: Fact = { kind: 'ActionChosen', action: 'continue', quote: null }
  expect(await tell('chosen', chosen)).toEqual(['refused', 1, []])
  expect(await tell('chosen', chosen)).toEqual(['refused', 1, []])
  expect(await events()).toEqual(before)
})

/** One wei, by a call of a contract; all of them in one block. */
function crumb(index: number) {
  const key = `BNB:0xaa:call:${index}`
  const fact: Fact = {
    kind: 'DepositSeen',
    key,
    txHash: '0xaa',
    amount: amountOf('BNB:BNB', 1n),
    seenAtMs: stage.world.clock.nowMs(),
    block: { height: 100, hash: 'a' },
  }
  return { key, factKey: `${key}:mined:a`, fact }
}
