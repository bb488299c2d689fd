import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { keepHouse } from './housekeeping.ts'
import { type BooksStage, openBooksStage, placeOrder } from './testing/books_stage.ts'

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

test('links, sessions, changes of addresses and counts are deleted when they are over', async () => {
  const now = stage.world.clock.wallMs()
  const day = 24 * 3_600_000
  const { db } = stage
  await db.query(`INSERT INTO accounts VALUES ('acc_00000001', 'a', 1), ('acc_00000002', 'b', 1)`)
  for (const [id, expiresAtMs] of [
    ['old', now - day - 1],
    ['kept', now - day],
  ]) {
    await db.query(`INSERT INTO sign_in_links VALUES ($1, $1::text::bytea, '', 'a@b.example', 1, $2)`, [
      id,
      expiresAtMs,
    ])
    await db.query('INSERT INTO ask_counts VALUES ($1, $2, 1)', [id, expiresAtMs])
  }
  for (const [id, lastUsedAtMs, endsAtMs] of [
    ['idle', now - day - 1, now + day],
    ['ended', now, now - 1],
    ['kept', now - day, now],
  ]) {
    await db.query(
      `INSERT INTO sessions VALUES ($1, $1::text::bytea, 'acc_00000001', 1, $2, $3, '127.0.0.1', NULL)`,
      [id, lastUsedAtMs, endsAtMs],
    )
  }
  for (const [account, id, expiresAtMs] of [
    ['acc_00000001', 'old', now - 1],
    ['acc_00000002', 'kept', now],
  ]) {
    await db.query(
      `INSERT INTO email_changes VALUES ($1, $2, 'a@b.example', 'c@d.example', $2::text::bytea, ('n' || $2)::bytea,
         NULL, NULL, 1, $3)`,
      [account, id, expiresAtMs],
    )
  }
  expect(await keepHouse(stage.world)).toBe(false)
  for (const [table, column] of [
    ['sign_in_links', 'link_id'],
    ['ask_counts', 'asked'],
    ['sessions', 'session_id'],
    ['email_changes', 'change_id'],
  ]) {
    expect(await db.query(`SELECT ${column} AS id FROM ${table}`), table).toEqual([{ id: 'kept' }])
  }
})

test('a backlog is deleted in steps', async () => {
  await stage.db.query(
    `INSERT INTO rate_locks SELECT 'lock-' || n, 'a', 'b', 1, 1, '1', 0, 0, 0, 1, 1 FROM generate_series(1, 10001) n`,
  )
  expect(await keepHouse(stage.world)).toBe(true)
  expect(await keepHouse(stage.world)).toBe(false)
  expect(await stage.db.query('SELECT 1 FROM rate_locks')).toEqual([])
})

test('webhooks that have been over for 30 days are deleted with their attempts, and lines that have nothing left', async () => {
  const old = stage.world.clock.nowMs() - 30 * 24 * 3_600_000
  const orders = [await order(), await order()]
  for (const [index, { terms }] of orders.entries()) {
    const key = [Number(terms.id.slice(-2)), terms.id]
    await stage.db.query(
      `INSERT INTO webhook_lines (bucket, order_id, receiver, account_id, url, host) VALUES ($1, $2, 'callback', 'acc', 'u', 'h')`,
      key,
    )
    for (const sequence of [1, 2]) {
      // Of the second order one is a millisecond younger.
      const endedAtMs = old - 1 + (index === 1 && sequence === 2 ? 1 : 0)
      await stage.db.query(
        `INSERT INTO webhook_deliveries
           (bucket, order_id, receiver, sequence, account_id, state, due_at_ms, event_at_ms, ended_at_ms)
         VALUES ($1, $2, 'callback', $3, 'acc', 'delivered', 1, 1, $4)`,
        [...key, sequence, endedAtMs],
      )
      await stage.db.query(
        `INSERT INTO webhook_attempts (bucket, order_id, receiver, sequence, fence, began_at_ms)
         VALUES ($1, $2, 'callback', $3, 1, 1)`,
        [...key, sequence],
      )
    }
  }
  // Who dies between the two leaves no line behind that nobody would look at again.
  await stage.corrupt(`CREATE FUNCTION dies() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'dies here'; END $$;
    CREATE TRIGGER dies BEFORE DELETE ON webhook_lines EXECUTE FUNCTION dies()`)
  await expect(keepHouse(stage.world)).rejects.toThrow('dies here')
  expect(await stage.db.query('SELECT 1 AS one FROM webhook_deliveries')).toHaveLength(4)
  await stage.corrupt('DROP TRIGGER dies ON webhook_lines; DROP FUNCTION dies')

  expect(await keepHouse(stage.world)).toBe(false)
  const kept = [{ order_id: orders[1]?.terms.id, sequence: 2 }]
  expect(await stage.db.query('SELECT order_id, sequence FROM webhook_deliveries')).toEqual(kept)
  expect(await stage.db.query('SELECT order_id, sequence FROM webhook_attempts')).toEqual(kept)
  expect(await stage.db.query('SELECT order_id FROM webhook_lines')).toEqual([
    { order_id: orders[1]?.terms.id },
  ])
})

test('a callback_url that wanted no more of its order wants none after 30 days either', async () => {
  const { terms } = await order()
  const key = [Number(terms.id.slice(-2)), terms.id]
  const old = stage.world.clock.nowMs() - 31 * 24 * 3_600_000
  await stage.db.query(
    `INSERT INTO webhook_lines (bucket, order_id, receiver, account_id, url, host, closed_at_ms)
     VALUES ($1, $2, 'callback', 'acc', 'u', 'h', $3)`,
    [...key, old],
  )
  await stage.db.query(
    `INSERT INTO webhook_deliveries
       (bucket, order_id, receiver, sequence, account_id, state, due_at_ms, event_at_ms, ended_at_ms)
     VALUES ($1, $2, 'callback', 1, 'acc', 'cancelled', $3, $3, $3)`,
    [...key, old],
  )
  await keepHouse(stage.world)
  expect(await stage.db.query('SELECT 1 FROM webhook_deliveries')).toEqual([])
  expect(await stage.db.query('SELECT closed_at_ms AS at FROM webhook_lines')).toEqual([{ at: old }])
})

const order = () => placeOrder(stage, 'BTC:BTC', 'ETH:ETH', { asks: 1n, promises: 1n })
