import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type BooksStage, openBooksStage, placeOrder } from '../engine/testing/books_stage.ts'
import { pagesTouched } from '../engine/testing/pages_touched.ts'
import { rowsRead } from '../engine/testing/rows_read.ts'
import { wasEverTold } from './chain_looks.ts'
import type { Sql } from './database.ts'

/**
 * What: whether anything of a chain was ever written down is known without reading what was written down of others.
 * How: a real PostgreSQL in which everything is of one chain.
 */
let stage: BooksStage

beforeAll(async () => {
  stage = await openBooksStage('chain-looks')
})
beforeEach(() => stage.reset())
afterAll(() => stage?.stop())

/** So many deposits of one order, outflows and transfers to the house; all of Ethereum, and all over. */
async function makeHistory(count: number): Promise<void> {
  const { terms } = await placeOrder(stage, 'ETH:ETH', 'BTC:BTC', { asks: 1n, promises: 1n })
  await insertDeposits(terms.id, 'ETH', 'confirmed', count)
  await insertOutflows('ETH', 'confirmed', count)
  await stage.corrupt(
    `INSERT INTO house_deposits (chain, deposit_key, kind, tx_hash, address, asset, units, state, block_height, block_hash, seen_at_ms)
     SELECT 'ETH', 'key-' || n, 'stray', 'tx-' || n, 'address', 'ETH:ETH', 1, 'confirmed', n, 'block-' || n, 1
     FROM generate_series(1, $1) AS n`,
    [count],
  )
  await stage.corrupt('VACUUM ANALYZE')
}

type DepositState = 'seen' | 'mined' | 'confirmed' | 'vanished'

async function insertDeposits(orderId: string, chain: string, state: DepositState, count: number) {
  await stage.corrupt(
    `INSERT INTO deposits (bucket, order_id, deposit_key, chain, tx_hash, asset, units, role, is_late, state, seen_at_ms,
       block_height, block_hash)
     SELECT right($1, 2)::smallint, $1, $2 || n, $2, 'tx-' || n, 'ETH:ETH', 1, 'counted', false, $3, 1,
       CASE WHEN $3 IN ('mined', 'confirmed') THEN n END, CASE WHEN $3 IN ('mined', 'confirmed') THEN 'block-' || n END
     FROM generate_series(1, $4::int) AS n`,
    [orderId, chain, state, count],
  )
}

async function insertOutflows(chain: string, state: string, count: number) {
  await stage.corrupt(
    `INSERT INTO outflows (bucket, order_id, payout_id, kind, chain, asset, units, address, state, planned_at_ms, due_at_ms,
       mined_height, mined_hash, mined_cost)
     SELECT 0, $1 || n, $1 || n || ':1', 'payout', $1, 'ETH:ETH', 1, 'outside', $2, 1, 1,
       CASE $2 WHEN 'confirmed' THEN n END, CASE $2 WHEN 'confirmed' THEN 'block-' || n END, CASE $2 WHEN 'confirmed' THEN 1 END
     FROM generate_series(1, $3::int) AS n`,
    [chain, state, count],
  )
}

const ofSolana = (sql: Sql) => wasEverTold(sql, 'SOL')

test('that nothing of a chain was ever told is known without reading the past of others', async () => {
  await makeHistory(20_000)
  expect(await ofSolana(stage.db)).toBe(false)
  expect(await pagesTouched(stage.db, ofSolana)).toBeLessThan(60)
  expect(await rowsRead(stage.db, ['deposits', 'outflows', 'house_deposits'], ofSolana)).toBe(0)
})

test('what is in a block, in a mempool or on its way was told, and what vanished or was given up moved nothing', async () => {
  const { terms } = await placeOrder(stage, 'ETH:ETH', 'BTC:BTC', { asks: 1n, promises: 1n })
  const told = async (insert: () => Promise<unknown>) => {
    await stage.corrupt('DELETE FROM deposits')
    await stage.corrupt('DELETE FROM outflows')
    await insert()
    return ofSolana(stage.db)
  }
  for (const [state, isTold] of [
    ['seen', true],
    ['mined', true],
    ['confirmed', true],
    ['vanished', false],
  ] as const) {
    expect(await told(() => insertDeposits(terms.id, 'SOL', state, 1)), state).toBe(isTold)
  }
  for (const [state, isTold] of [
    ['planned', true],
    ['broadcast', true],
    ['confirmed', true],
    ['failed', false],
    ['cancelled', false],
  ] as const) {
    expect(await told(() => insertOutflows('SOL', state, 1)), state).toBe(isTold)
  }
})
