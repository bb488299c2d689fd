import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  findDraftedOutflows,
  findLeavingOutflows,
  findSignedOutflows,
  isAccountBeingMade,
  leavingIntents,
  sumLeavingOutflows,
  sumUnsignedOutflows,
} from '../../db/leaving_outflows.ts'
import { isNonceSpent } from '../../db/outflows.ts'
import type { PayoutId } from '../../domain/payouts/intent.ts'
import { type BooksStage, openBooksStage } from '../testing/books_stage.ts'
import { pagesTouched } from '../testing/pages_touched.ts'

let stage: BooksStage

beforeAll(async () => {
  stage = await openBooksStage('leaving')
})
afterAll(() => stage.stop())

const ASSET = 'ETH:ETH'
/** With a nonce, as where accounts have them; with a transaction written down and none; and with nothing yet. */
const numbered = payoutIds(1, 100)
const written = payoutIds(2, 100)
const planned = payoutIds(3, 100)
const ended = payoutIds(4, 20_000)

function payoutIds(kind: number, count: number): readonly PayoutId[] {
  return Array.from({ length: count }, (_, index) => `CB${kind}${String(index).padStart(15, '0')}:1`)
}

type Row = {
  readonly state: string
  readonly units: bigint
  readonly hasNonce?: true
  readonly hasAttempt?: true
}

async function insert(payoutIds: readonly PayoutId[], { state, units, ...has }: Row): Promise<void> {
  await stage.corrupt(
    `INSERT INTO outflows (bucket, order_id, payout_id, kind, chain, asset, units, address, state, nonce, planned_at_ms,
       due_at_ms)
     SELECT substr(id, 17, 2)::smallint, left(id, 18), id, 'payout', 'ETH', $2, $3, 'somebody', $4,
       CASE WHEN $5 THEN n END, 1, 1 FROM unnest($1::text[]) WITH ORDINALITY AS given (id, n)`,
    [payoutIds, ASSET, units, state, has.hasNonce ?? false],
  )
  if (has.hasAttempt) {
    await stage.corrupt(
      `INSERT INTO attempts (bucket, payout_id, attempt, intent, drafted_at_ms)
       SELECT substr(id, 17, 2)::smallint, id, 1, '{}', 1 FROM unnest($1::text[]) AS given (id)`,
      [payoutIds],
    )
  }
}

async function insertLive(): Promise<void> {
  await insert(numbered, { state: 'broadcast', units: 1n, hasNonce: true, hasAttempt: true })
  await insert(written, { state: 'planned', units: 10n, hasAttempt: true })
  await insert(planned, { state: 'planned', units: 100n })
}

const MINED_ONE_A_BLOCK = `UPDATE outflows SET mined_height = nonce, mined_hash = 'block', mined_cost = 1
  WHERE state = 'confirmed'`

test('of what is live, that which is written down is leaving, and what was leaving before counts as well', async () => {
  await stage.reset()
  await insertLive()
  await insert(ended.slice(0, 3), { state: 'confirmed', units: 1_000n, hasNonce: true, hasAttempt: true })
  const found = await findLeavingOutflows(stage.db, ASSET, 0)
  expect([...found].sort()).toEqual([...numbered, ...written])
  expect(await findLeavingOutflows(stage.db, 'USDT:ERC20', 0)).toEqual([])
  expect(await sumLeavingOutflows(stage.db, ASSET, [])).toBe(1_100n)
  expect(await sumLeavingOutflows(stage.db, ASSET, found)).toBe(1_100n)
  expect(await sumLeavingOutflows(stage.db, ASSET, [...found, ...ended.slice(1, 3)])).toBe(3_100n)
})

test('what was mined above the block that a balance is of is leaving still', async () => {
  await stage.reset()
  await insertLive()
  await insert(ended.slice(0, 3), { state: 'confirmed', units: 1_000n, hasNonce: true, hasAttempt: true })
  await stage.corrupt(MINED_ONE_A_BLOCK)
  const found = await findLeavingOutflows(stage.db, ASSET, 1)
  expect([...found].sort()).toEqual([...numbered, ...written, ...ended.slice(1, 3)])
  expect(await sumLeavingOutflows(stage.db, ASSET, found)).toBe(3_100n)
  expect(await findLeavingOutflows(stage.db, ASSET, 3)).toHaveLength(numbered.length + written.length)
})

test('of what is leaving, and of what was before, the last attempt says what it may take', async () => {
  await stage.reset()
  await insertLive()
  await insert(ended.slice(0, 3), { state: 'confirmed', units: 1_000n, hasNonce: true, hasAttempt: true })
  const again = `INSERT INTO attempts (bucket, payout_id, attempt, intent, drafted_at_ms)
    SELECT bucket, payout_id, 2, '{"attempt":2}', 1 FROM attempts`
  await stage.corrupt(again)
  const left = ended.slice(1, 3)
  const found = await leavingIntents(stage.db, 'ETH', [...numbered, ...left])
  const count = numbered.length + written.length + left.length
  expect(found).toEqual(Array.from({ length: count }, () => ({ attempt: 2 })))
  expect(await leavingIntents(stage.db, 'BNB', [])).toEqual([])
  const drafted = [...numbered, ...written]
  expect((await findDraftedOutflows(stage.db, 'ETH')).toSorted()).toEqual(drafted)
  await stage.corrupt(`UPDATE outflows SET kind = 'sweep', from_address = payout_id, from_index = 1`)
  expect((await findDraftedOutflows(stage.db, 'ETH')).toSorted(), 'from wherever').toEqual(drafted)
  expect(await leavingIntents(stage.db, 'ETH', left)).toHaveLength(count)
})

test('what is written down and not among those that were signed is still to be signed', async () => {
  await stage.reset()
  await insertLive()
  await insert(ended.slice(0, 3), { state: 'confirmed', units: 1_000n, hasNonce: true, hasAttempt: true })
  const signed = await findSignedOutflows(stage.db, ASSET)
  expect([...signed].sort()).toEqual(numbered)
  expect(await sumUnsignedOutflows(stage.db, ASSET, signed)).toBe(1_000n)
  expect(await sumUnsignedOutflows(stage.db, ASSET, signed.slice(1))).toBe(1_001n)
  expect(await sumUnsignedOutflows(stage.db, 'USDT:ERC20', [])).toBe(0n)
})

test('what has ended is not read again to know what is leaving', async () => {
  const touched = async (endedCount: number) => {
    await stage.reset()
    await insertLive()
    await insert(ended.slice(0, endedCount), {
      state: 'confirmed',
      units: 1_000n,
      hasNonce: true,
      hasAttempt: true,
    })
    await stage.corrupt(MINED_ONE_A_BLOCK)
    await stage.corrupt('VACUUM ANALYZE')
    const leftBefore = [...numbered, ...ended.slice(0, 50)]
    return {
      finding: await pagesTouched(stage.db, (sql) => findLeavingOutflows(sql, ASSET, endedCount - 50)),
      findingAll: await pagesTouched(stage.db, (sql) => findDraftedOutflows(sql, 'ETH')),
      adding: await pagesTouched(stage.db, (sql) => sumLeavingOutflows(sql, ASSET, leftBefore)),
      reading: await pagesTouched(stage.db, (sql) => leavingIntents(sql, 'ETH', leftBefore)),
      signed: await pagesTouched(stage.db, (sql) => findSignedOutflows(sql, ASSET)),
      unsigned: await pagesTouched(stage.db, (sql) => sumUnsignedOutflows(sql, ASSET, numbered)),
    }
  }
  const few = await touched(2_000)
  const many = await touched(20_000)
  expect(few.finding).toBeGreaterThan(0)
  // A higher tree may be walked where few rows were all read; ten times the pages are not.
  expect(many.finding).toBeLessThan(3 * few.finding)
  expect(many.findingAll).toBeLessThan(3 * few.findingAll)
  expect(many.adding).toBeLessThan(3 * few.adding)
  expect(many.reading).toBeLessThan(3 * few.reading)
  expect(many.signed).toBeLessThan(3 * few.signed)
  expect(many.unsigned).toBeLessThan(3 * few.unsigned)
})

test('what has ended is not read again to know whether a nonce is spent', async () => {
  await stage.reset()
  await insert(ended, { state: 'confirmed', units: 1_000n, hasNonce: true })
  await stage.corrupt(MINED_ONE_A_BLOCK)
  await stage.corrupt('VACUUM ANALYZE')
  expect(await isNonceSpent(stage.db, 'ETH', 777)).toBe(true)
  expect(await isNonceSpent(stage.db, 'ETH', 777_777)).toBe(false)
  expect(await pagesTouched(stage.db, (sql) => isNonceSpent(sql, 'ETH', 777))).toBeLessThan(60)
  expect(await pagesTouched(stage.db, (sql) => isNonceSpent(sql, 'ETH', 777_777))).toBeLessThan(60)
})

test('what has ended is not read again to know whether an account is being made', async () => {
  const touched = async (endedCount: number) => {
    await stage.reset()
    await insert(ended.slice(0, endedCount), {
      state: 'confirmed',
      units: 1_000n,
      hasNonce: true,
      hasAttempt: true,
    })
    await stage.corrupt(MINED_ONE_A_BLOCK)
    await insertLive()
    await stage.corrupt('VACUUM ANALYZE')
    return pagesTouched(stage.db, (sql) => isAccountBeingMade(sql, 'ETH', 'somebody', endedCount - 50))
  }
  const few = await touched(2_000)
  expect(await touched(20_000)).toBeLessThan(3 * few)
})
