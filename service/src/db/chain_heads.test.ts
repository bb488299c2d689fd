import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { assert } from '../domain/assert.ts'
import { HOUR_MS } from '../domain/time.ts'
import { type BooksStage, openBooksStage } from '../engine/testing/books_stage.ts'
import { advanceHead, blockHashAt, noteFinal } from './chain_heads.ts'
import { type Lease, takeLease } from './leases.ts'

/** What: which of the blocks that were read are remembered. How: a real PostgreSQL; the blocks are made up. */
let stage: BooksStage
let lease: Lease

beforeAll(async () => {
  stage = await openBooksStage('chain-heads')
})
beforeEach(async () => {
  await stage.reset()
  const taken = await takeLease(stage.db, 'watch:BNB', 'me', stage.world.clock.wallMs(), HOUR_MS)
  assert(taken !== null, 'nobody else looks')
  lease = taken
  await stage.corrupt(
    "INSERT INTO chain_blocks SELECT 'BNB', n, 'block ' || n FROM generate_series(1001, 3000) AS n",
  )
})
afterAll(() => stage?.stop())

async function lowestAfter(height: number, finalHeight: number | null): Promise<number | undefined> {
  if (finalHeight !== null) await noteFinal(stage.db, lease, 'BNB', finalHeight)
  await advanceHead(stage.db, lease, 'BNB', { height, hash: `block ${height}` })
  const rows = await stage.db.query<{ height: number }>(
    "SELECT min(height) AS height FROM chain_blocks WHERE chain = 'BNB'",
  )
  return rows[0]?.height
}

test.each([
  ['where the network does not say what is final', null],
  ['where it does, and that is newer', 2_990],
])('of the blocks that were read 2,000 are remembered %s', async (_, finalHeight) => {
  expect(await lowestAfter(3_001, finalHeight)).toBe(1_002)
  expect(await lowestAfter(3_002, finalHeight)).toBe(1_003)
})

test('a block is remembered until it is final, however long that takes, as what is called final is compared with it', async () => {
  expect(await lowestAfter(3_001, 1_000)).toBe(1_001)
  await lowestAfter(3_150, 1_000)
  expect(await blockHashAt(stage.db, 'BNB', 1_001)).toBe('block 1001')
  // So many at once, that no block takes long to note.
  expect(await lowestAfter(3_151, 3_140)).toBe(1_101)
  expect(await lowestAfter(3_152, 3_140)).toBe(1_153)
})
