import { afterAll, beforeAll, expect, test } from 'vitest'
import { findBookedOrder } from '../../db/booked_order.ts'
import { lockClaimed, postponeOutflow } from '../../db/claim_outflows.ts'
import type { Sql } from '../../db/database.ts'
import { endOutflow, findOutflow, setOutflowState } from '../../db/outflows.ts'
import { assert } from '../../domain/assert.ts'
import { amountOf } from '../../domain/money/amount.ts'
import { type BooksStage, openBooksStage, placeOrder } from '../testing/books_stage.ts'
import { pagesTouched } from '../testing/pages_touched.ts'

let stage: BooksStage

beforeAll(async () => {
  stage = await openBooksStage('found_by_key')
  await stage.reset()
})
afterAll(() => stage.stop())

function insert(state: string, from: number, count: number): Promise<void> {
  return stage.corrupt(
    `INSERT INTO outflows (bucket, order_id, payout_id, kind, chain, asset, units, address, state, planned_at_ms, due_at_ms)
     SELECT i % 100, 'CB' || lpad(i::text, 16, '0'), 'CB' || lpad(i::text, 16, '0') || ':1', 'payout', 'ETH', 'ETH:ETH', 1,
       'somebody', $1, 1, 1 FROM generate_series($2::integer, $2 + $3 - 1) AS i`,
    [state, from, count],
  )
}

test('when many go out after a quiet time, what concerns one of them reads that one', async () => {
  // The statistics are of a night in which nothing was live.
  await insert('confirmed', 0, 20_000)
  await stage.corrupt('VACUUM ANALYZE')
  await insert('broadcast', 20_000, 10_000)
  const stored = await findOutflow(stage.db, 'CB0000000000020777:1')
  assert(stored !== null, 'it was written')
  const outflow = { ...stored, claimedAtHeight: null }
  const { payoutId } = outflow
  const ended = { block: { height: 1, hash: 'block' }, cost: amountOf('ETH:ETH', 1n) }
  const acts: Readonly<Record<string, (sql: Sql) => Promise<unknown>>> = {
    lock: (sql) => lockClaimed(sql, outflow),
    postpone: (sql) => postponeOutflow(sql, outflow, { dueAtMs: 2, atHeight: null }, null),
    sign: (sql) => setOutflowState(sql, payoutId, ['planned'], 'signed'),
    send: (sql) => setOutflowState(sql, payoutId, ['broadcast', 'signed'], 'broadcast'),
    end: (sql) => endOutflow(sql, payoutId, ['signed', 'broadcast'], 'confirmed', ended),
  }
  for (const [name, act] of Object.entries(acts))
    expect(await pagesTouched(stage.db, act), name).toBeLessThan(60)
})

test('what the books say of one order is found among all that they say, whatever the statistics know of it', async () => {
  const { terms } = await placeOrder(stage, 'BTC:BTC', 'ETH:ETH', { asks: 1n, promises: 1n })
  const owes = { account: 'payouts_owed', asset: 'ETH:ETH' } as const
  const pages = () => pagesTouched(stage.db, (sql) => findBookedOrder(sql, terms.id, owes))
  await stage.corrupt('VACUUM ANALYZE')
  await stage.corrupt(
    `INSERT INTO journal (bucket, owner, entry_key, line, asset, debit, credit, units, at_ms)
     SELECT o.bucket, 'CB' || i, 'BTC:tx:' || i || ':confirmed:block', line, 'ETH:ETH', 'wallet', 'payouts_owed', 1, 1
     FROM orders AS o, generate_series(1, 5000) AS i, generate_series(1, 4) AS line`,
  )
  expect(await pages()).toBeLessThan(60)
  await stage.corrupt('VACUUM ANALYZE')
  expect(await pages()).toBeLessThan(60)
})
