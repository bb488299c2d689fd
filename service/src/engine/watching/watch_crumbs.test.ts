import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Transfer } from '../../chains/chain.ts'
import { takeLease } from '../../db/leases.ts'
import { assert } from '../../domain/assert.ts'
import { HOUR_MS } from '../../domain/time.ts'
import { auditBooks } from '../books/audit_books.ts'
import { type BooksStage, openBooksStage, placeOrder } from '../testing/books_stage.ts'
import { countingRows } from '../testing/counting_rows.ts'
import { watchOnce } from '../testing/watch_once.ts'

/**
 * What: hundreds of coins that somebody sends to one order in one block are told and booked, and cost less than their square.
 * How: a real PostgreSQL and a chain on paper; rows that are answered are counted.
 */
let stage: BooksStage

beforeAll(async () => {
  stage = await openBooksStage('watch_crumbs')
})

beforeEach(() => stage.reset())

afterAll(() => stage?.stop())

const CRUMBS = 450

test('crumbs in one block are told with few looks at the deposits that there are, and all of them are booked', async () => {
  const order = await placeOrder(stage, 'BTC:BTC', 'ETH:ETH', { asks: 100_000_000n, promises: 10n ** 18n })
  const lease = await takeLease(stage.db, 'watch:BTC', 'me', stage.world.clock.wallMs(), 48 * HOUR_MS)
  assert(lease !== null, 'nobody else looks')
  const chain = Object.assign(stage.chain('BTC'), {
    assets: [],
    readMempool: async () => [],
    readBlock: async (height: number, findOwn: (addresses: readonly string[]) => Promise<unknown>) => {
      await findOwn([order.terms.depositAddress])
      return {
        height,
        hash: (await chain.blockHash(height)) ?? '',
        parentHash: (await chain.blockHash(height - 1)) ?? '',
        timeMs: stage.world.clock.wallMs(),
        transfers: height === 101 ? crumbs(order.terms.depositAddress) : [],
      }
    },
  })
  const { db, rows } = countingRows(stage.db)
  const world = { ...stage.world, db }
  chain.setHead(101)
  await watchOnce(world, chain, lease)
  chain.setHead(100 + order.terms.requiredConfirmations)
  await watchOnce(world, chain, lease)
  const [counted] = await stage.db.query(
    `SELECT count(*)::int AS deposits, count(*) FILTER (WHERE state = 'confirmed')::int AS confirmed FROM deposits`,
  )
  expect(counted).toEqual({ deposits: CRUMBS, confirmed: CRUMBS })
  // Told one by one: one row for each that is there already, twice over.
  expect(rows()).toBeLessThan((CRUMBS * CRUMBS) / 5)
  expect((await auditBooks(stage.db)).problems).toEqual([])
})

function crumbs(to: string): Transfer[] {
  return Array.from({ length: CRUMBS }, (_, index) => ({
    id: `${'ab'.repeat(32)}:${index}`,
    txHash: 'ab'.repeat(32),
    to,
    asset: 'BTC:BTC',
    units: 1n,
  }))
}
