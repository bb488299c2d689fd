import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Database, Sql } from '../db/database.ts'
import { amountOf } from '../domain/money/amount.ts'
import type { Fact } from '../domain/orders/facts.ts'
import { apply } from './apply.ts'
import { type BooksStage, openBooksStage, placeOrder } from './testing/books_stage.ts'

/**
 * What: hearing a fact again costs an order with many deposits no more than one with few.
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
    const key = `BNB:0xaa:call:${index}`
    const fact: Fact = {
      kind: 'DepositSeen',
      key,
      txHash: '0xaa',
      amount: amountOf('BNB:BNB', 1n),
      seenAtMs: stage.world.clock.nowMs(),
      block: { height: 100, hash: 'a' },
    }
    const { kind } = await apply({ ...stage.world, db }, id, `${key}:mined:a`, fact)
    return { kind, rows: rows() }
  }
  for (let index = 0; index < 10; index += 1) expect(await tell(index)).toMatchObject({ kind: 'changed' })
  // The order itself, and that the fact is there.
  expect(await tell(0)).toEqual({ kind: 'duplicate', rows: 2 })
  // The order and its ten deposits: what the fact means depends on all of them.
  expect(await tell(10)).toEqual({ kind: 'changed', rows: 11 })
})

function countingRows(database: Database) {
  let rows = 0
  const counting = (sql: Sql): Sql => ({
    query: async (text, values) => {
      const answer = await sql.query(text, values)
      rows += answer.length
      return answer as never
    },
  })
  const db: Database = {
    ...database,
    transaction: (work) => database.transaction((tx) => work(counting(tx))),
  }
  return { db, rows: () => rows }
}
