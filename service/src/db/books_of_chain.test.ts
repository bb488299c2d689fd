import { afterAll, beforeAll, expect, test } from 'vitest'
import { type BooksStage, lookAt, openBooksStage } from '../engine/testing/books_stage.ts'
import { rowsRead } from '../engine/testing/rows_read.ts'
import { readBooksOfChain } from './books_of_chain.ts'
import { within } from './within.ts'

/**
 * What: what the books say of a chain is read without reading what is over, by the plans that a connection keeps as well.
 * How: a real PostgreSQL with thousands of outflows below the head.
 */
let stage: BooksStage

beforeAll(async () => {
  stage = await openBooksStage('books-of-chain')
})

afterAll(() => stage?.stop())

test('a comparison reads nothing of the outflows that are booked, however many there are', async () => {
  await stage.reset()
  await lookAt(stage, 'ETH', 100_000)
  await stage.corrupt(
    `INSERT INTO outflows (bucket, order_id, payout_id, kind, chain, asset, units, address, state, planned_at_ms, due_at_ms,
       mined_height, mined_hash, mined_cost)
     SELECT 0, 'order-' || n, 'order-' || n || ':1', 'payout', 'ETH', 'ETH:ETH', 1, 'outside', 'confirmed', 1, 1, n, 'block-' || n, 1
     FROM generate_series(1, 5000) AS n`,
  )
  await stage.corrupt('VACUUM ANALYZE outflows')
  const read = await rowsRead(stage.db, ['outflows'], async (tx) => {
    // The isolation of this transaction is set by now, and makes no difference here.
    const query: typeof tx.query = async (text, values) =>
      text.startsWith('SET TRANSACTION') ? [] : tx.query(text, values)
    expect(
      await readBooksOfChain(within({ query }), 'ETH', { kind: 'turn', nowMs: 1, neverSwept: false }),
    ).not.toBeNull()
  })
  expect(read).toBe(0)
})
