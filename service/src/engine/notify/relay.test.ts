import { createHash } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { OrderEvent } from '../../db/events.ts'
import { type BooksStage, openBooksStage } from '../testing/books_stage.ts'
import {
  ACCOUNT,
  addEndpoint,
  disableEndpointBy,
  happen,
  openOrder,
  resetWebhooks,
} from '../testing/webhook_stage.ts'
import { type Relay, relayEvents, type StuckOrders } from './relay.ts'
import { relayToWebhooks } from './relay_webhooks.ts'

/**
 * What: every event is handed on, in order, and leaves one row for each receiver, whoever dies and however many relay.
 * How: a real PostgreSQL; events are made by hand as `apply` writes them.
 */
let stage: BooksStage
let webhooks: Relay

beforeAll(async () => {
  stage = await openBooksStage('relay')
  webhooks = relayToWebhooks(stage.world.clock)
})

beforeEach(async () => {
  await stage.reset()
  await resetWebhooks(stage)
})

afterAll(() => stage?.stop())

const relay = (...relays: Relay[]) => relayEvents(stage.world, relays)

/** `receiver:sequence`, in the order in which they are told. */
async function deliveriesOf(orderId: string): Promise<string[]> {
  const rows = await stage.db.query<{ receiver: string; sequence: number }>(
    'SELECT receiver, sequence FROM webhook_deliveries WHERE order_id = $1 ORDER BY receiver, sequence',
    [orderId],
  )
  return rows.map(({ receiver, sequence }) => `${receiver}:${sequence}`)
}

const linesOf = (orderId: string) =>
  stage.db.query(
    'SELECT receiver, url, host, next_sequence AS next FROM webhook_lines WHERE order_id = $1 ORDER BY receiver',
    [orderId],
  )

test('an event goes to the callback_url and to every enabled endpoint of the account, and to no URL twice', async () => {
  await addEndpoint(stage, 'we_first000', 'https://one.example/a')
  await addEndpoint(stage, 'we_second00', 'https://two.example:8443/b')
  await addEndpoint(stage, 'we_disabled', 'https://three.example/')
  await addEndpoint(stage, 'we_other000', 'https://four.example/', 'acc_somebody0')
  await stage.corrupt(
    `UPDATE webhook_endpoints SET disabled_at_ms = 1, disabled_by = 'owner' WHERE endpoint_id = 'we_disabled'`,
  )
  const orderId = await openOrder(stage, 'https://two.example:8443/b')
  await relay(webhooks)
  expect(await linesOf(orderId)).toEqual([
    { receiver: 'callback', url: 'https://two.example:8443/b', host: 'two.example:8443', next: 1 },
    { receiver: 'we_first000', url: 'https://one.example/a', host: 'one.example', next: 1 },
  ])
  expect(await deliveriesOf(orderId)).toEqual(['callback:1', 'we_first000:1'])
})

test('of events that are handed on together each account hears its own, and no other', async () => {
  await addEndpoint(stage, 'we_first000', 'https://one.example/a')
  await addEndpoint(stage, 'we_other000', 'https://four.example/', 'acc_somebody0')
  const [own, other] = [await openOrder(stage, null), await openOrder(stage, null, 'acc_somebody0')]
  await relay(webhooks)
  expect(await deliveriesOf(own)).toEqual(['we_first000:1'])
  expect(await deliveriesOf(other)).toEqual(['we_other000:1'])
})

test('what an endpoint misses that its receiver disabled is written down', async () => {
  await addEndpoint(stage, 'we_first000', 'https://one.example/a')
  await disableEndpointBy(stage, 'we_first000', 'receiver')
  const orderId = await openOrder(stage, null)
  await relay(webhooks)
  expect(await deliveriesOf(orderId)).toEqual(['we_first000:1'])
})

/** One that may be given: of letters that stand for words, punycode makes more than stood there. */
function urlOfLongHost(): string {
  const labels = Array.from({ length: 180 }, (_, index) => {
    const word = encodeURIComponent(String.fromCodePoint(0x3300 + (index % 88)))
    const noise = createHash('md5').update(String(index)).digest('hex')
    return noise.slice(0, index % 5) + word + noise.slice(6, 6 + (index % 4))
  })
  while (labels.join('.').length > 2048 - 'https:///'.length) labels.pop()
  return `https://${labels.join('.')}/`
}

test('a host that is longer than any name keeps nobody else from hearing', async () => {
  const url = urlOfLongHost()
  expect(url.length).toBeLessThanOrEqual(2048)
  expect(URL.parse(url)?.host.length).toBeGreaterThan(2700)
  await openOrder(stage, url)
  const orderId = await openOrder(stage, 'https://one.example/')
  await relay(webhooks)
  expect(await deliveriesOf(orderId)).toEqual(['callback:1'])
})

test('an order that nobody wants to hear of leaves no row and is not looked at again', async () => {
  const orderId = await openOrder(stage, null)
  await relay(webhooks)
  expect(await linesOf(orderId)).toEqual([])
  const seen: OrderEvent[] = []
  expect(await relay(async (_tx, events) => void seen.push(...events))).toBe(false)
  expect(seen).toEqual([])
})

test('events are handed on once and in order, those that happen meanwhile the next time', async () => {
  const orderId = await openOrder(stage, 'https://one.example/')
  await happen(stage, orderId)
  const seen: number[][] = []
  const during: Relay = async (_tx, events) => {
    seen.push(events.map(({ sequence }) => sequence))
    if (seen.length === 1) await happenBeside(orderId)
  }
  await relay(webhooks, during)
  await relay(webhooks, during)
  await relay(webhooks, during)
  expect(seen).toEqual([[1, 2], [3]])
  expect(await deliveriesOf(orderId)).toEqual(['callback:1', 'callback:2', 'callback:3'])
  expect(await linesOf(orderId)).toMatchObject([{ next: 1 }])
})

test('of an order to which very much has happened a part is handed on at once, and others with it', async () => {
  const busy = await openOrder(stage, null)
  for (let index = 0; index < 60; index += 1) await happen(stage, busy)
  const other = await openOrder(stage, 'https://one.example/')
  const seen: number[] = []
  const ofBusy: Relay = async (_tx, events) => {
    seen.push(...events.filter(({ orderId }) => orderId === busy).map(({ sequence }) => sequence))
  }
  expect(await relay(webhooks, ofBusy)).toBe(true)
  expect(seen.length).toBeLessThan(61)
  expect(await deliveriesOf(other)).toEqual(['callback:1'])
  while (await relay(webhooks, ofBusy));
  expect(seen).toEqual(Array.from({ length: 61 }, (_, index) => index + 1))
})

/** The relay's own transaction has not touched the order yet: somebody else may. */
const happenBeside = (orderId: string) => happen(stage, orderId, 'EXCHANGE')

test('a relay that dies after its rows are written, and before that is noted, leaves nothing, and nothing is lost', async () => {
  const orderId = await openOrder(stage, 'https://one.example/')
  const dies: Relay = () => Promise.reject(new Error('killed'))
  await expect(relay(webhooks, dies)).rejects.toThrow('killed')
  expect(await deliveriesOf(orderId)).toEqual([])
  await relay(webhooks)
  expect(await deliveriesOf(orderId)).toEqual(['callback:1'])
})

test('a connection that breaks in the middle is the same', async () => {
  const orderId = await openOrder(stage, 'https://one.example/')
  const breaks: Relay = async (tx) => {
    const [row] = await tx.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
    await stage.kill(`pid = ${row?.pid}`)
    await tx.query('SELECT 1')
  }
  await expect(relay(webhooks, breaks)).rejects.toThrow()
  expect(await deliveriesOf(orderId)).toEqual([])
  await relay(webhooks)
  expect(await deliveriesOf(orderId)).toEqual(['callback:1'])
})

test('of many that relay the same events at once each leaves what one would', async () => {
  await addEndpoint(stage, 'we_first000', 'https://one.example/a')
  const orders: string[] = []
  for (let index = 0; index < 20; index += 1) {
    const orderId = await openOrder(stage, 'https://two.example/')
    await happen(stage, orderId)
    orders.push(orderId)
  }
  let told = 0
  const counting: Relay = async (_tx, events) => {
    told += events.length
  }
  await Promise.all([1, 2, 3, 4].map(() => relay(webhooks, counting)))
  await relay(webhooks, counting)
  expect(told, 'some were handed on by more than one').toBeGreaterThanOrEqual(40)
  for (const orderId of orders) {
    expect(await deliveriesOf(orderId)).toEqual([
      'callback:1',
      'callback:2',
      'we_first000:1',
      'we_first000:2',
    ])
    expect(await linesOf(orderId)).toMatchObject([{ next: 1 }, { next: 1 }])
  }
  expect(await stage.db.query('SELECT 1 FROM orders WHERE relayed_sequence <> sequence')).toEqual([])
})

/** What the database refuses because of what it is given, in each of the classes 22, 23 and 54. */
const refusals = [
  `SELECT '"\\ud83d"'::jsonb`,
  'INSERT INTO mails (bucket) VALUES (NULL)',
  `SELECT lpad('x', 2147483647)`,
]

/** `tried` has how many orders were handed on together, for each time that one that cannot be written was among them. */
function refusing(orderIds: readonly string[], sql = 'SELECT 1 / 0') {
  const opened = { isBroken: true, tried: [] as number[], stuck: new Map() satisfies StuckOrders }
  const refuse: Relay = async (tx, events) => {
    const told = new Set(events.map(({ orderId }) => orderId))
    if (!opened.isBroken || !orderIds.some((id) => told.has(id))) return
    opened.tried.push(told.size)
    await tx.query(sql)
  }
  const step = () => relayEvents(stage.world, [webhooks, refuse], opened.stuck)
  return Object.assign(opened, { step })
}

test.each(refusals)('an order whose events cannot be written keeps no other waiting: %s', async (sql) => {
  const orders: string[] = []
  for (let index = 0; index < 5; index += 1) orders.push(await openOrder(stage, 'https://one.example/'))
  const [before = '', bad = '', after = ''] = orders
  await happen(stage, bad)
  const relaying = refusing([bad], sql)
  await relaying.step()
  expect(await deliveriesOf(before)).toEqual(['callback:1'])
  expect(await deliveriesOf(after)).toEqual(['callback:1'])
  expect(await deliveriesOf(bad)).toEqual([])
  expect(relaying.tried).toEqual([5, 1])
  expect(stage.logged).toMatchObject([{ level: 'error', facts: { order: bad } }])
  await happen(stage, after)
  await relaying.step()
  expect(await deliveriesOf(after)).toEqual(['callback:1', 'callback:2'])
  expect(relaying.tried).toEqual([5, 1])
})

test.each([
  ['has no such field', () => (undefined as unknown as OrderEvent).sequence],
  ['has a time that is none', () => new Date(Number.NaN).toISOString()],
])('an order of which an event %s keeps no other waiting', async (_, stumble) => {
  const [good, bad] = [await openOrder(stage, 'https://one.example/'), await openOrder(stage, null)]
  const stumbling: Relay = async (_tx, events) => {
    if (events.some(({ orderId }) => orderId === bad)) stumble()
  }
  await relay(webhooks, stumbling)
  expect(await deliveriesOf(good)).toEqual(['callback:1'])
  expect(stage.logged).toMatchObject([{ level: 'error', facts: { order: bad, failures: 1 } }])
})

test('what could not be written is tried again by itself, ever less often, and told in order once it can be', async () => {
  const bad = await openOrder(stage, 'https://one.example/')
  await happen(stage, bad)
  const relaying = refusing([bad])
  const triedInAnHour = async () => {
    relaying.tried.length = 0
    for (let second = 0; second < 3_600; second += 10) {
      stage.advance(10_000)
      await relaying.step()
    }
    return relaying.tried.length
  }
  await openOrder(stage, 'https://one.example/')
  expect(await triedInAnHour()).toBeLessThanOrEqual(13)
  expect(new Set(relaying.tried.slice(1))).toEqual(new Set([1]))
  expect(stage.logged.length).toBeLessThanOrEqual(13)
  expect(await triedInAnHour()).toBe(1)
  relaying.isBroken = false
  await happen(stage, bad)
  stage.advance(3_600_000)
  await relaying.step()
  expect(await deliveriesOf(bad)).toEqual(['callback:1', 'callback:2', 'callback:3'])
  expect([...relaying.stuck]).toEqual([])
})

test('more that cannot be written than are handed on at once keep nobody waiting', async () => {
  const bad: string[] = []
  for (let index = 0; index < 200; index += 1) bad.push(await openOrder(stage, null))
  stage.advance(1)
  const good = await openOrder(stage, 'https://one.example/')
  const relaying = refusing(bad)
  expect(await relaying.step()).toBe(true)
  expect(await relaying.step()).toBe(false)
  expect(await deliveriesOf(good)).toEqual(['callback:1'])
})

test('what another process could write after all is not kept in mind', async () => {
  const bad = await openOrder(stage, 'https://one.example/')
  const relaying = refusing([bad])
  await relaying.step()
  expect([...relaying.stuck.keys()]).toEqual([bad])
  await relay(webhooks)
  stage.advance(3_600_000)
  await relaying.step()
  expect([...relaying.stuck]).toEqual([])
})

test('an event that is handed on again does not wake a line that has told it', async () => {
  const orderId = await openOrder(stage, 'https://one.example/')
  await relay(webhooks)
  await stage.corrupt(`UPDATE webhook_deliveries SET state = 'delivered', ended_at_ms = 1`)
  await stage.corrupt('UPDATE webhook_lines SET next_sequence = NULL, due_at_ms = NULL')
  const again = { orderId, accountId: ACCOUNT, callbackUrl: 'https://one.example/', sequence: 1, atMs: 1 }
  const event: OrderEvent = { ...again, previousStatus: null, status: 'NEW', snapshot: {} }
  await stage.db.transaction((tx) => webhooks(tx, [event]))
  expect(await linesOf(orderId)).toMatchObject([{ next: null }])
})
