import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { keepHouse } from './housekeeping.ts'
import { type BooksStage, openBooksStage } from './testing/books_stage.ts'

/**
 * What: what nobody can ask for any more is deleted, to the millisecond, in short steps.
 * How: a real PostgreSQL.
 */
let stage: BooksStage

beforeAll(async () => {
  stage = await openBooksStage('housekeeping')
})

beforeEach(() => stage.reset())

afterAll(() => stage?.stop())

test('lapsed locks and old retry slots are deleted, living ones are kept', async () => {
  const { policy, clock } = stage.world
  const lapsed = clock.nowMs() - policy.lockMemoryMs
  const old = clock.wallMs() - policy.retrySlotMs
  for (const [id, expiresAtMs] of [
    ['lapsed', lapsed - 1],
    ['remembered', lapsed],
  ]) {
    await stage.db.query(`INSERT INTO rate_locks VALUES ($1, 'a', 'b', 1, 1, '1', 0, 0, 0, 1, $2)`, [
      id,
      expiresAtMs,
    ])
  }
  for (const [id, atMs] of [
    ['old', old - 1],
    ['kept', old],
  ]) {
    await stage.db.query(`INSERT INTO retry_slots VALUES ('acc', $1, 'h', 'o', NULL, $2)`, [id, atMs])
  }
  expect(await keepHouse(stage.world)).toBe(false)
  expect(await stage.db.query('SELECT rate_id FROM rate_locks')).toEqual([{ rate_id: 'remembered' }])
  expect(await stage.db.query('SELECT slot FROM retry_slots')).toEqual([{ slot: 'kept' }])
})

test('a backlog is deleted in steps', async () => {
  await stage.db.query(
    `INSERT INTO rate_locks SELECT 'lock-' || n, 'a', 'b', 1, 1, '1', 0, 0, 0, 1, 1 FROM generate_series(1, 10001) n`,
  )
  expect(await keepHouse(stage.world)).toBe(true)
  expect(await keepHouse(stage.world)).toBe(false)
  expect(await stage.db.query('SELECT 1 FROM rate_locks')).toEqual([])
})
