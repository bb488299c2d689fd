import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { findEarlyOutflows } from '../harness/invariants.ts'
import { type Ground, openGround } from './ground.ts'
import { runSchedule } from './schedule.ts'
import { type ScratchPostgres, startScratchPostgres } from './scratch_postgres.ts'

/**
 * What: an outflow that was drafted before its deposit was confirmed is found, also when its order has gone on without it, and when the
 * order does not say what it was for.
 * How: the tables that a schedule leaves behind, altered in a transaction that is rolled back.
 */
let server: ScratchPostgres
let ground: Ground
let payoutId: string

beforeAll(async () => {
  server = await startScratchPostgres()
  ground = await openGround(server.url)
  for (let seed = 1; payoutId === undefined; seed += 1) {
    await runSchedule(ground, seed)
    const [paid] = await ground.rows<{ payout_id: string }>(
      `SELECT payout_id FROM orders WHERE status = 'DONE' ORDER BY order_id`,
    )
    if (paid !== undefined) payoutId = paid.payout_id
  }
})

afterAll(async () => {
  await ground?.close()
  await server?.stop()
})

beforeEach(() => ground.rows('BEGIN'))
afterEach(() => ground.rows('ROLLBACK'))

const confirmLater = () =>
  ground.rows(`UPDATE facts SET at_ms = at_ms + 100000000 WHERE kind = 'DepositConfirmed'`)

test('what a schedule leaves behind left when it might', async () => {
  expect(await findEarlyOutflows(ground)).toEqual([])
})

test('the last outflow of an order', async () => {
  await confirmLater()
  expect(await findEarlyOutflows(ground)).toContainEqual(expect.stringMatching(`^${payoutId} .* when 0 `))
})

test('one that its order has gone on without', async () => {
  await confirmLater()
  await ground.rows('UPDATE orders SET payout_id = NULL WHERE payout_id = $1', [payoutId])
  expect(await findEarlyOutflows(ground)).toContainEqual(expect.stringMatching(`^${payoutId} .* when 0 `))
})

test('one whose order does not say what it was for', async () => {
  await ground.rows('UPDATE orders SET settled_received = NULL WHERE payout_id = $1', [payoutId])
  expect(await findEarlyOutflows(ground)).toEqual([
    expect.stringMatching(`^${payoutId} was drafted for unknown `),
  ])
})
