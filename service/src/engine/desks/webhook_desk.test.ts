import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { soon } from '../../../test/harness/eventually.ts'
import type { Sql } from '../../db/database.ts'
import { findDeliveries, findEnded } from '../../db/webhook_log.ts'
import { bucketOf } from '../../domain/orders/identifiers.ts'
import type { Loop } from '../loop.ts'
import { startDelivering } from '../notify/deliveries.ts'
import { relayEvents } from '../notify/relay.ts'
import { relayToWebhooks } from '../notify/relay_webhooks.ts'
import { type BooksStage, openBooksStage } from '../testing/books_stage.ts'
import { pagesTouched } from '../testing/pages_touched.ts'
import {
  ACCOUNT,
  addEndpoint,
  disableEndpointBy,
  openOrder,
  openWebhookStage,
  resetWebhooks,
} from '../testing/webhook_stage.ts'
import { type DeliveryView, webhookDesk } from './webhook_desk.ts'

/**
 * What: however often a delivery is made again, its list of attempts stays short, and keeps the newest; a request to do so
 * acts once.
 * How: a real PostgreSQL and the real delivering; the receiver is a function.
 */
let stage: BooksStage

beforeAll(async () => {
  stage = await openBooksStage('webhook_desk')
})

beforeEach(async () => {
  await stage.reset()
  await resetWebhooks(stage)
})

afterAll(() => stage?.stop())

const desk = () => webhookDesk(stage.world)

async function listed(): Promise<DeliveryView> {
  const page = { after: null, limit: 1 }
  const { deliveries } = await desk().listDeliveries(ACCOUNT, { orderId: null, state: null }, page)
  if (deliveries[0] === undefined) throw new Error('there is no delivery')
  return deliveries[0]
}

const statusesOf = ({ attempts }: DeliveryView) => attempts.map(({ http_status }) => http_status)

const countAttempts = async () => (await stage.db.query('SELECT 1 AS one FROM webhook_attempts')).length

/** An order whose event was delivered after `count` attempts; the status of each is its number. */
async function deliveredAfter(count: number): Promise<string> {
  const orderId = await openOrder(stage, 'https://one.example/')
  await relayEvents(stage.world, [relayToWebhooks(stage.world.clock)])
  const key = [bucketOf(orderId), orderId]
  await stage.corrupt(
    `INSERT INTO webhook_attempts
       (bucket, order_id, receiver, sequence, fence, began_at_ms, ended_at_ms, outcome, status, said)
     SELECT $1, $2, 'callback', 1, n, n, n, 'answered', n, 'said' FROM generate_series(1, $3::integer) AS n`,
    [...key, count],
  )
  await stage.corrupt(
    `UPDATE webhook_deliveries SET state = 'delivered', ended_at_ms = 1 WHERE bucket = $1 AND order_id = $2`,
    key,
  )
  await stage.corrupt(
    `UPDATE webhook_lines SET next_sequence = NULL, due_at_ms = NULL, claim_fence = $3
     WHERE bucket = $1 AND order_id = $2`,
    [...key, count],
  )
  return orderId
}

const from = (first: number, last: number) => Array.from({ length: last - first + 1 }, (_, n) => first + n)

test('a delivery shows its newest 20 attempts, the oldest of them first', async () => {
  await deliveredAfter(23)
  expect(statusesOf(await listed())).toEqual(from(4, 23))
})

test('a redelivery forgets all but the newest 10 attempts, and keeps the one that nobody noted the end of', async () => {
  const orderId = await deliveredAfter(23)
  await stage.corrupt(
    `UPDATE webhook_attempts SET outcome = NULL, ended_at_ms = NULL, status = NULL, said = NULL WHERE fence = 23`,
  )
  const outcome = await desk().redeliver(ACCOUNT, `${orderId}-1-callback`, {
    slot: 'key:one',
    bodyHash: 'same',
  })
  expect(outcome?.ok && statusesOf(outcome.value.delivery)).toEqual([...from(14, 22), null])
  expect(await countAttempts()).toBe(10)
})

test('a repetition of a redelivery acts once, and shows the delivery as it is by then', async () => {
  const orderId = await deliveredAfter(1)
  const ask = () =>
    desk().redeliver(ACCOUNT, `${orderId}-1-callback`, { slot: 'key:again', bodyHash: 'same' })
  const stateOf = (outcome: Awaited<ReturnType<typeof ask>>) =>
    outcome?.ok ? [outcome.value.isReplay, outcome.value.delivery.state] : outcome?.rejection.code
  expect(stateOf(await ask())).toEqual([false, 'waiting'])
  await stage.corrupt(`UPDATE webhook_deliveries SET state = 'delivered', ended_at_ms = 2`)
  expect(stateOf(await ask())).toEqual([true, 'delivered'])
})

test('of two requests under one key at the same moment one acts, and the other one hears so', async () => {
  const orders = [await deliveredAfter(1), await deliveredAfter(1)]
  const ask = (orderId = '') =>
    desk().redeliver(ACCOUNT, `${orderId}-1-callback`, { slot: 'key:both', bodyHash: orderId })
  // Both have looked for the slot before either fills it.
  await stage.corrupt('BEGIN')
  await stage.corrupt('LOCK TABLE retry_slots IN SHARE MODE')
  const asked = orders.map(ask)
  await soon(async () => {
    const waits = await stage.db.query(`SELECT 1 AS one FROM pg_locks WHERE NOT granted`)
    expect(waits).toHaveLength(2)
  })
  await stage.corrupt('COMMIT')
  const told = (await Promise.all(asked)).map((outcome) => (outcome?.ok ? 'done' : outcome?.rejection.code))
  expect(told.toSorted()).toEqual(['IDEMPOTENCY_CONFLICT', 'done'])
  const again = await stage.db.query(`SELECT 1 AS one FROM webhook_deliveries WHERE state = 'waiting'`)
  expect(again).toHaveLength(1)
})

const everything = { sinceMs: 0, state: null }

test('what went to an endpoint is delivered again only while that is enabled, alone and among all', async () => {
  for (const id of ['we_enabled00', 'we_disabled0', 'we_deleted00'])
    await addEndpoint(stage, id, `https://${id.slice(3)}.example/`)
  const orderId = await openOrder(stage, 'https://one.example/')
  await relayEvents(stage.world, [relayToWebhooks(stage.world.clock)])
  await disableEndpointBy(stage, 'we_disabled0', 'receiver')
  await stage.corrupt(`DELETE FROM webhook_endpoints WHERE endpoint_id = 'we_deleted00'`)
  const end = () => stage.corrupt(`UPDATE webhook_deliveries SET state = 'cancelled', ended_at_ms = 1`)
  const ask = async (receiver: string) => {
    const slot = { slot: `key:${receiver}`, bodyHash: 'same' }
    const outcome = await desk().redeliver(ACCOUNT, `${orderId}-1-${receiver}`, slot)
    return outcome?.ok ? outcome.value.delivery.state : outcome?.rejection.code
  }
  await end()
  expect([await ask('callback'), await ask('we_enabled00')]).toEqual(['waiting', 'waiting'])
  expect([await ask('we_disabled0'), await ask('we_deleted00')]).toEqual(Array(2).fill('INVALID_PARAMETER'))
  await end()
  const all = await desk().redeliverSince(ACCOUNT, everything, { slot: 'key:every', bodyHash: 'same' })
  expect(all).toEqual({ ok: true, value: { redelivered: 2, isReplay: false } })
})

test('a delivery that waits keeps all its attempts when everything is redelivered', async () => {
  await deliveredAfter(12)
  await stage.corrupt(`UPDATE webhook_deliveries SET state = 'waiting', ended_at_ms = NULL`)
  await desk().redeliverSince(ACCOUNT, everything, { slot: 'key:all', bodyHash: 'same' })
  expect(await countAttempts()).toBe(12)
})

test('a redelivery of many under one key acts once, also for who asks while it is under way; another body is refused', async () => {
  await deliveredAfter(1)
  const ask = (bodyHash: string) => desk().redeliverSince(ACCOUNT, everything, { slot: 'key:many', bodyHash })
  const waiting = (count: number) =>
    soon(async () => {
      const waits = await stage.db.query('SELECT 1 AS one FROM pg_locks WHERE NOT granted')
      expect(waits).toHaveLength(count)
    })
  // The first one stands in its middle while the others ask.
  await stage.corrupt('BEGIN')
  await stage.corrupt('SELECT 1 FROM webhook_lines FOR UPDATE')
  const first = ask('same')
  await waiting(1)
  const repeated = ask('same')
  const other = ask('other')
  await waiting(3)
  await stage.corrupt('COMMIT')
  expect(await first).toEqual({ ok: true, value: { redelivered: 1, isReplay: false } })
  expect(await repeated).toEqual({ ok: true, value: { redelivered: 1, isReplay: true } })
  expect(await other).toMatchObject({ ok: false, rejection: { code: 'IDEMPOTENCY_CONFLICT' } })
  await stage.corrupt(`UPDATE webhook_deliveries SET state = 'delivered', ended_at_ms = 1`)
  expect(await ask('same')).toEqual({ ok: true, value: { redelivered: 1, isReplay: true } })
  expect(await ask('other')).toMatchObject({ ok: false, rejection: { code: 'IDEMPOTENCY_CONFLICT' } })
  expect((await listed()).state).toBe('delivered')
})

test('who repeats a redelivery that died in its middle has the rest of it done, and hears of all', async () => {
  await deliveredAfter(1)
  await deliverMore(1_000)
  stage.advance(10_000)
  let begun = 0
  const transaction: typeof stage.db.transaction = async (work) => {
    begun += 1
    if (begun > 1) throw new Error('died')
    return stage.db.transaction(work)
  }
  const retry = { slot: 'key:dies', bodyHash: 'same' }
  const dying = webhookDesk({ ...stage.world, db: { ...stage.db, transaction } })
  await expect(dying.redeliverSince(ACCOUNT, everything, retry)).rejects.toThrow('died')
  const isAgain = `UPDATE webhook_deliveries SET state = 'delivered', ended_at_ms = 1 WHERE state = 'waiting' RETURNING 1 AS one`
  expect(await stage.db.query(isAgain), 'and they are told before the repeat').toHaveLength(500)
  const outcome = await desk().redeliverSince(ACCOUNT, everything, retry)
  expect(outcome).toEqual({ ok: true, value: { redelivered: 1_001, isReplay: true } })
  expect(await stage.db.query(isAgain), 'each once').toHaveLength(501)
})

test('what is delivered again and again does not lengthen its list of attempts', async () => {
  await openOrder(stage, 'https://one.example/')
  await relayEvents(stage.world, [relayToWebhooks(stage.world.clock)])
  const webhooks = openWebhookStage(stage)
  const loop: Loop = startDelivering(webhooks.world)
  try {
    for (let round = 0; round < 15; round += 1) {
      await soon(async () => expect((await listed()).state).toBe('delivered'))
      const retry = { slot: `key:${round}`, bodyHash: 'same' }
      const outcome = await desk().redeliverSince(ACCOUNT, everything, retry)
      expect(outcome).toMatchObject({ ok: true, value: { redelivered: 1 } })
    }
    await soon(async () => expect((await listed()).state).toBe('delivered'))
  } finally {
    await loop.stop()
  }
  expect(webhooks.calls).toHaveLength(16)
  expect(await countAttempts()).toBe(11)
})

/** After five executions PostgreSQL may keep one plan for all values. */
const EXECUTIONS = 8

/** How many deliveries are read by a connection that has asked the same before. */
function deliveriesRead(ask: (sql: Sql) => Promise<unknown>): Promise<number> {
  return stage.db.transaction(async (tx) => {
    for (let execution = 0; execution < EXECUTIONS; execution += 1) await ask(tx)
    const before = await countRead(tx)
    await ask(tx)
    return (await countRead(tx)) - before
  })
}

async function countRead(tx: Sql): Promise<number> {
  const [row] = await tx.query<{ count: number | null }>(
    `SELECT seq_tup_read + idx_tup_fetch AS count FROM pg_stat_xact_user_tables WHERE relname = 'webhook_deliveries'`,
  )
  return row?.count ?? 0
}

/** So many orders more of the account, whose events were all delivered. */
async function deliverMore(count = 20_000): Promise<void> {
  await stage.corrupt(
    `WITH made AS (
       INSERT INTO orders SELECT (made).* FROM (
         SELECT jsonb_populate_record(o, jsonb_build_object('bucket', n % 100, 'created_at_ms', o.created_at_ms + n,
           'order_id', 'CB7' || lpad(n::text, 13, '0') || lpad((n % 100)::text, 2, '0'))) AS made
         FROM orders o, generate_series(1, $1::integer) AS n OFFSET 0) AS others
       RETURNING *),
     told AS (
       INSERT INTO events (bucket, order_id, sequence, status, fact_key, snapshot, at_ms)
       SELECT bucket, order_id, 1, 'NEW', 'fact', '{}', created_at_ms FROM made),
     line AS (
       INSERT INTO webhook_lines (bucket, order_id, receiver, account_id, url, host)
       SELECT bucket, order_id, 'callback', account_id, 'https://one.example/', 'one.example' FROM made)
     INSERT INTO webhook_deliveries (bucket, order_id, receiver, sequence, account_id, state, due_at_ms, event_at_ms, ended_at_ms)
     SELECT bucket, order_id, 'callback', 1, account_id, 'delivered', 1, created_at_ms, 1 FROM made`,
    [count],
  )
}

test('a page of deliveries, of all orders or of one, is found without reading those of the whole account', async () => {
  const orderId = await deliveredAfter(1)
  await deliverMore()
  await stage.corrupt('VACUUM ANALYZE')
  const states = ['delivered', 'waiting'] as const
  const page = (of: string | null) => (sql: Sql) =>
    findDeliveries(sql, ACCOUNT, { orderId: of, states }, null, 50)
  expect(await page(orderId)(stage.db)).toHaveLength(1)
  expect(await page(null)(stage.db)).toHaveLength(50)
  expect(await deliveriesRead(page(orderId))).toBeLessThan(100)
  expect(await deliveriesRead(page(null))).toBeLessThan(100)
})

test('a page of deliveries costs the same however many there are, also for who asks for the first time', async () => {
  await deliveredAfter(1)
  await deliverMore()
  await stage.corrupt(
    `UPDATE webhook_deliveries SET account_id = account_id || event_at_ms % 3 WHERE event_at_ms % 3 <> 0;
     INSERT INTO events (bucket, order_id, sequence, status, fact_key, snapshot, at_ms)
     SELECT bucket, order_id, n, status, n, snapshot, at_ms FROM events, generate_series(2, 5) AS n WHERE order_id LIKE 'CB7%'`,
  )
  await stage.corrupt('VACUUM ANALYZE')
  const all = ['delivered', 'waiting', 'exhausted', 'cancelled'] as const
  const page = (sql: Sql) => findDeliveries(sql, ACCOUNT, { orderId: null, states: all }, null, 101)
  expect(await page(stage.db)).toHaveLength(101)
  expect(await pagesTouched(stage.db, page), 'a dozen each').toBeLessThan(1_200)
})

test.each(['waiting', 'exhausted', 'cancelled'] as const)(
  'the few that are %s are found without reading all that was delivered',
  async (state) => {
    await deliveredAfter(1)
    await deliverMore()
    await stage.corrupt(
      `UPDATE webhook_deliveries SET state = $1::text, ended_at_ms = CASE WHEN $1::text <> 'waiting' THEN 1 END
       WHERE event_at_ms % 2000 = 7`,
      [state],
    )
    await stage.corrupt('VACUUM ANALYZE')
    const page = (sql: Sql) => findDeliveries(sql, ACCOUNT, { orderId: null, states: [state] }, null, 50)
    const since = { eventAtMs: 0, orderId: '', receiver: '', sequence: 0 }
    const ended = (sql: Sql) =>
      findEnded(sql, ACCOUNT, { after: since, untilMs: Number.MAX_SAFE_INTEGER }, [state], 500)
    const found = (await page(stage.db)).length
    expect(found).toBeGreaterThan(0)
    expect(await deliveriesRead(page)).toBeLessThan(10 * found)
    expect(await deliveriesRead(ended)).toBeLessThan(10 * found)
  },
)
