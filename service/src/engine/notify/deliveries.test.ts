import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { soon } from '../../../test/harness/eventually.ts'
import type { WebhookAnswer } from '../../channels/channel.ts'
import type { Sql } from '../../db/database.ts'
import { claimLines, findLanes, type Lane } from '../../db/webhook_lanes.ts'
import { bucketOf } from '../../domain/orders/identifiers.ts'
import { webhookDesk } from '../desks/webhook_desk.ts'
import type { Loop } from '../loop.ts'
import { type BooksStage, openBooksStage } from '../testing/books_stage.ts'
import { pagesTouched } from '../testing/pages_touched.ts'
import {
  ACCOUNT,
  addEndpoint,
  disableEndpointBy,
  happen,
  openOrder,
  openWebhookStage,
  resetWebhooks,
  type WebhookStage,
} from '../testing/webhook_stage.ts'
import { startDelivering } from './deliveries.ts'
import { mailOwner } from './mail_owner.ts'
import { relayEvents } from './relay.ts'
import { relayToWebhooks } from './relay_webhooks.ts'
import type { WebhookWorld } from './webhook_world.ts'

/**
 * What: what waits for receivers is told one after the other, again until it is had, and nobody waits for anybody else.
 * How: a real PostgreSQL; receivers are functions here, and real ones in test/functional/webhooks.test.ts.
 */
let stage: BooksStage
let webhooks: WebhookStage
const loops: Loop[] = []

beforeAll(async () => {
  stage = await openBooksStage('deliveries')
})

beforeEach(async () => {
  await stage.reset()
  await resetWebhooks(stage)
  webhooks = openWebhookStage(stage)
})

afterEach(async () => {
  for (const loop of loops.splice(0)) await loop.stop()
})

afterAll(() => stage?.stop())

const status = (code: number): WebhookAnswer => ({ kind: 'answered', status: code, head: `${code}` })
const never = () => new Promise<WebhookAnswer>(() => {})
const relay = () => relayEvents(stage.world, [relayToWebhooks(stage.world.clock)])

function start(one = webhooks): Loop {
  const loop = startDelivering(one.world)
  loops.push(loop)
  return loop
}

/** `order:sequence` of every call so far. */
const called = (one = webhooks) => one.calls.map(({ sequence }) => sequence)

const statesOf = async (orderId: string) => {
  const rows = await stage.db.query<{ sequence: number; state: string; attempts: number }>(
    'SELECT sequence, state, attempts FROM webhook_deliveries WHERE order_id = $1 ORDER BY sequence',
    [orderId],
  )
  return rows.map(({ sequence, state, attempts }) => `${sequence} ${state} ${attempts}`)
}

/** The account of the stage gets its mails, and none is written yet. */
async function ownMails(): Promise<void> {
  await stage.empty('mails', 'notification_settings')
  await stage.corrupt(`UPDATE accounts SET email = 'owner@shop.example' WHERE account_id = '${ACCOUNT}'`)
}

const enableAll = () =>
  stage.corrupt('UPDATE webhook_endpoints SET disabled_at_ms = NULL, disabled_by = NULL')

/** What owners have to hear of is mailed, as in the service. */
const mailing = (world: WebhookWorld): WebhookWorld => ({
  ...world,
  webhooks: { ...world.webhooks, ...mailOwner },
})

async function orderWith(events: number, url = 'https://one.example/'): Promise<string> {
  const orderId = await openOrder(stage, url)
  for (let index = 1; index < events; index += 1) await happen(stage, orderId)
  return orderId
}

test('events of an order are told one after the other, each with the same id and body at every attempt', async () => {
  const orderId = await orderWith(3)
  await relay()
  let failures = 2
  webhooks.answer = ({ id }) => (id.endsWith('_2') && failures-- > 0 ? status(500) : status(204))
  start()
  await soon(() => expect(called()).toEqual([1, 2]))
  await soon(async () =>
    expect(await statesOf(orderId)).toEqual(['1 delivered 0', '2 waiting 1', '3 waiting 0']),
  )
  stage.advance(5_000)
  await soon(async () => expect(await statesOf(orderId)).toContain('2 waiting 2'))
  stage.advance(299_999)
  await relay()
  expect(called()).toEqual([1, 2, 2])
  stage.advance(1)
  await soon(async () =>
    expect(await statesOf(orderId)).toEqual(['1 delivered 0', '2 delivered 2', '3 delivered 0']),
  )
  expect(called()).toEqual([1, 2, 2, 2, 3])
  expect(
    new Set(webhooks.calls.filter(({ sequence }) => sequence === 2).map(({ id, body }) => id + body)).size,
  ).toBe(1)
  expect(await stage.db.query('SELECT next_sequence, due_at_ms FROM webhook_lines')).toEqual([
    { next_sequence: null, due_at_ms: null },
  ])
  const attempts = await stage.db.query(
    'SELECT sequence, outcome, status, said FROM webhook_attempts ORDER BY sequence, fence',
  )
  const expected = [
    [1, 204],
    [2, 500],
    [2, 500],
    [2, 204],
    [3, 204],
  ] as const
  expect(attempts).toEqual(
    expected.map(([sequence, code]) => ({ sequence, outcome: 'answered', status: code, said: `${code}` })),
  )
})

test('what an attempt has come to is counted from where it ended, however late it is written down', async () => {
  const orderId = await orderWith(1)
  await relay()
  webhooks.answer = () => status(500)
  const { db } = webhooks.world
  const query: typeof db.query = async (text, values) => {
    const rows = await db.query(text, values)
    if (/SET outcome/.test(text)) stage.advance(5_000)
    return rows as never
  }
  loops.push(startDelivering({ ...webhooks.world, db: { ...db, query } }))
  await soon(async () => expect(await statesOf(orderId)).toContain('1 waiting 2'))
})

test('after ten failures a delivery is given up and told to its owner, and the line goes on', async () => {
  const orderId = await orderWith(2)
  await relay()
  const failures: WebhookAnswer[] = [
    status(500),
    status(302),
    { kind: 'failed', why: 'ECONNRESET' },
    { kind: 'forbidden', why: 'the host has an address that is not public' },
  ]
  webhooks.answer = ({ id }) =>
    id.endsWith('_1') ? (failures[webhooks.calls.length % 4] ?? status(404)) : status(200)
  start()
  for (let attempt = 1; attempt < 10; attempt += 1) {
    await soon(async () => expect(await statesOf(orderId)).toContain(`1 waiting ${attempt}`))
    expect(called()).toHaveLength(attempt)
    stage.advance(24 * 3_600_000)
  }
  await soon(async () => expect(await statesOf(orderId)).toEqual(['1 exhausted 10', '2 delivered 0']))
  expect(called()).toEqual([1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2])
  expect(webhooks.exhausted).toMatchObject([
    { orderId, url: 'https://one.example/', host: 'one.example', endpoint: null, lastAnswer: 'ECONNRESET' },
  ])
})

const said = `no such name: \0${'x'.repeat(100_000)}`

test.each([
  { kind: 'failed', why: said },
  { kind: 'answered', status: 500, head: said },
] as const)(
  'what is kept of an attempt is short and can be kept, whatever the channel said: $kind',
  async (answer) => {
    const orderId = await orderWith(1)
    await relay()
    webhooks.answer = () => answer
    start()
    await soon(async () => expect(await statesOf(orderId)).toEqual(['1 waiting 1']))
    expect(await stage.db.query('SELECT said FROM webhook_attempts')).toEqual([
      { said: 'no such name: '.padEnd(1_000, 'x') },
    ])
  },
)

test('410 ends what one order tells its callback_url, for good', async () => {
  const orderId = await orderWith(2)
  const other = await orderWith(1)
  await relay()
  webhooks.answer = (call) => (call.id.includes(other) ? status(200) : status(410))
  start()
  await soon(async () => expect(await statesOf(orderId)).toEqual(['1 cancelled 1', '2 cancelled 0']))
  await soon(async () => expect(await statesOf(other)).toEqual(['1 delivered 0']))
  await happen(stage, orderId)
  await relay()
  await soon(async () => expect(await statesOf(orderId)).toContain('3 cancelled 0'))
  expect(called()).toHaveLength(2)
})

test('410 disables an endpoint for all orders, and so does its owner', async () => {
  await addEndpoint(stage, 'we_first000', 'https://gone.example/')
  await addEndpoint(stage, 'we_second00', 'https://unwanted.example/')
  const orders = [await openOrder(stage, null), await openOrder(stage, null), await openOrder(stage, null)]
  await relay()
  await disableEndpointBy(stage, 'we_second00', 'owner')
  webhooks.answer = () => status(410)
  start()
  await soon(async () => {
    for (const orderId of orders) {
      const states = await statesOf(orderId)
      expect(states.map((state) => state.split(' ')[1])).toEqual(['cancelled', 'cancelled'])
    }
  })
  expect(webhooks.calls.filter(({ url }) => url.includes('unwanted'))).toEqual([])
  expect(await stage.db.query('SELECT endpoint_id, disabled_by FROM webhook_endpoints ORDER BY 1')).toEqual([
    { endpoint_id: 'we_first000', disabled_by: 'receiver' },
    { endpoint_id: 'we_second00', disabled_by: 'owner' },
  ])
  // Of a hundred that are told the same at once, its owner hears once.
  expect(webhooks.disabled).toMatchObject([{ endpoint: 'we_first000', url: 'https://gone.example/' }])
})

test('what happens while an endpoint is disabled by its receiver is cancelled, and can be delivered again', async () => {
  await addEndpoint(stage, 'we_first000', 'https://gone.example/')
  const orderId = await openOrder(stage, null)
  await relay()
  webhooks.answer = () => status(410)
  start()
  await soon(async () => expect(await statesOf(orderId)).toEqual(['1 cancelled 1']))
  await happen(stage, orderId)
  const later = await openOrder(stage, null)
  await relay()
  await soon(async () => {
    expect(await statesOf(orderId)).toEqual(['1 cancelled 1', '2 cancelled 0'])
    expect(await statesOf(later)).toEqual(['1 cancelled 0'])
  })
  expect([called(), webhooks.disabled.length], 'it is not asked, nor its owner told, again').toEqual([[1], 1])
  const { redeliverSince } = webhookDesk(stage.world)
  const again = (slot: string) =>
    redeliverSince(ACCOUNT, { sinceMs: 0, state: 'cancelled' }, { slot, bodyHash: 'same' })
  expect(await again('key:disabled'), 'while it is disabled').toMatchObject({ value: { redelivered: 0 } })
  await enableAll()
  webhooks.answer = () => status(200)
  expect(await again('key:enabled')).toMatchObject({ value: { redelivered: 3 } })
  await soon(async () => {
    expect(await statesOf(orderId)).toEqual(['1 delivered 0', '2 delivered 0'])
    expect(await statesOf(later)).toEqual(['1 delivered 0'])
  })
})

test('an endpoint that disabled itself is mailed to its owner, once each time', async () => {
  await ownMails()
  await addEndpoint(stage, 'we_first000', 'https://gone.example/')
  const [orderId, other] = [await openOrder(stage, null), await openOrder(stage, null)]
  await relay()
  webhooks.answer = () => status(410)
  start({ ...webhooks, world: mailing(webhooks.world) })
  const mailed = () => stage.db.query('SELECT kind, to_address, data FROM mails')
  const mail = (order: string) => ({
    kind: 'endpoint_disabled',
    to_address: 'owner@shop.example',
    data: { order_id: order, url: 'https://gone.example/', endpoint: 'we_first000' },
  })
  await soon(async () => {
    for (const one of [orderId, other]) expect((await statesOf(one))[0]).toMatch(/cancelled/)
  })
  expect([[mail(orderId)], [mail(other)]]).toContainEqual(await mailed())
  const messageId = async () => (await stage.db.query('SELECT message_id FROM mails'))[0]?.message_id
  const first = await messageId()
  await stage.empty('mails')
  await enableAll()
  stage.advance(1)
  const next = await openOrder(stage, null)
  await relay()
  await soon(async () => expect(await statesOf(next)).toEqual(['1 cancelled 1']))
  expect(await mailed()).toEqual([mail(next)])
  expect(await messageId(), 'it is another mail').not.toBe(first)
})

test('a receiver that hangs takes its own places and nobody else’s', async () => {
  for (let index = 0; index < 30; index += 1) await orderWith(1, 'https://dead.example/')
  for (let host = 0; host < 8; host += 1) {
    for (let index = 0; index < 7; index += 1) {
      await openOrder(stage, `https://dead${host}.example/`, 'acc_deadly0000')
    }
  }
  const live = await orderWith(4, 'https://live.example/')
  await relay()
  webhooks.answer = ({ url }) => (url.includes('live') ? status(200) : never())
  start()
  await soon(async () => expect((await statesOf(live))[3]).toBe('4 delivered 0'))
  const to = (part: string) => webhooks.calls.filter(({ url }) => url.includes(part)).length
  await soon(() => expect(to('//dead.')).toBe(10))
  await soon(() => expect(to('dead') - to('//dead.'), 'of one account, on eight hosts').toBe(40))
  const later = await orderWith(2, 'https://live.example/')
  await relay()
  await soon(async () => expect(await statesOf(later)).toEqual(['1 delivered 0', '2 delivered 0']))
  expect(to('//dead.')).toBe(10)
})

test.each([
  { what: 'an account that has none', live: 'live', limits: { all: 4, ofHost: 9 } },
  { what: 'an account that has none, of the same host', live: 'slow0', limits: { all: 9, ofHost: 4 } },
])('a place that comes free goes to $what, however long others have waited', async ({ live, limits }) => {
  for (let index = 0; index < 9; index += 1) {
    await openOrder(stage, `https://slow${index % 2}.example/`, `acc_backlog${index % 3}`)
  }
  await relay()
  stage.advance(60_000)
  const orderId = await openOrder(stage, `https://${live}.example/`)
  await relay()
  const underWay = [0, 1, 2].map((index) => ({ host: 'slow0.example', accountId: `acc_backlog${index}` }))
  const places = { ...limits, ofAccount: 9, underWay }
  const time = { nowMs: stage.world.clock.nowMs(), wallMs: 1_800_000_000_000, claimMs: 1_000 }
  const lanes = await findLanes(stage.db, [], { ofAccount: 9, all: 99 })
  const claimed = await claimLines(stage.db, lanes, time, places)
  expect(claimed.filter(({ host }) => host === `${live}.example`).map((line) => line.orderId)).toEqual([
    orderId,
  ])
})

/** Lines of one order to as many hosts, and nothing to tell them: whoever claims one sees that and lets it go. */
async function emptyLines(hosts: number, dueAtMs: number, accountId: string, name = 'host'): Promise<void> {
  const orderId = await openOrder(stage, null)
  await stage.corrupt(
    `INSERT INTO webhook_lines (bucket, order_id, receiver, account_id, url, host, next_sequence, due_at_ms)
     SELECT bucket, order_id, $3 || i, $4, 'https://' || i || '.example/', $3 || i || '.example', 1, $5
     FROM orders CROSS JOIN generate_series(1, $2::integer) AS i WHERE order_id = $1`,
    [orderId, hosts, name, accountId, dueAtMs],
  )
}

test('an account with any number of hosts costs a look no more than one with a few hundred', async () => {
  const nowMs = stage.world.clock.nowMs()
  const pages = async () => {
    await stage.corrupt('ANALYZE webhook_lines')
    return pagesTouched(stage.db, (sql) => findLanes(sql, [], { ofAccount: 200, all: 4_000 }))
  }
  await emptyLines(1_000, nowMs + 3_600_000, 'acc_hoster0000')
  const few = await pages()
  await emptyLines(20_000, nowMs + 3_600_000, 'acc_hoster0000', 'other')
  expect(await pages()).toBeLessThan(1.5 * few)
})

test('many accounts with many hosts cost a look no more than a few, and each has its turn', async () => {
  for (let index = 0; index < 30; index += 1) {
    await emptyLines(40, stage.world.clock.nowMs(), `acc_hoster${String(index).padStart(4, '0')}`)
  }
  await emptyLines(1, stage.world.clock.nowMs(), 'acc_another000')
  const most = { ofAccount: 20, all: 310 }
  const seen = new Set<string>()
  let leftOff: readonly Lane[] = []
  for (let looks = 0; looks < 4; looks += 1) {
    const lanes = await findLanes(stage.db, leftOff, most)
    expect(lanes.length).toBeLessThanOrEqual(310)
    for (const { accountId, host } of lanes) seen.add(`${accountId} ${host}`)
    leftOff = lanes.filter(({ isLast }) => isLast)
  }
  expect(seen.size).toBe(30 * 40 + 1)
  const fewer = await findLanes(stage.db, [], { ofAccount: 3, all: 7 })
  expect(new Set(fewer.map(({ accountId }) => accountId)).size, 'everybody has one').toBe(31)
})

test('every host of an account has its turn, however many wait for later', async () => {
  const nowMs = stage.world.clock.nowMs()
  await emptyLines(900, nowMs + 3_600_000, 'acc_hoster0000', 'later')
  await emptyLines(450, nowMs, 'acc_hoster0000', 'now')
  await emptyLines(3, nowMs, 'acc_another000')
  start()
  await soon(async () => {
    const [left] = await stage.db.query(
      `SELECT count(*) FILTER (WHERE host LIKE 'later%') AS later, count(*) FILTER (WHERE host NOT LIKE 'later%') AS now
       FROM webhook_lines WHERE due_at_ms IS NOT NULL`,
    )
    expect(left).toEqual({ later: 900, now: 0 })
  })
})

test('whoever lost a claim writes nothing but what came of its attempt', async () => {
  const orderId = await orderWith(2)
  await relay()
  const wall = { ms: 1_800_000_000_000 }
  const slow = openWebhookStage(stage, wall)
  const late = Promise.withResolvers<WebhookAnswer>()
  slow.answer = () => (called(slow).length === 1 ? late.promise : status(200))
  start(slow)
  await soon(() => expect(called(slow)).toEqual([1]))
  const second = openWebhookStage(stage, wall)
  start(second)
  // Nobody may while the claim lasts.
  wall.ms += 1_000
  await relay()
  expect([called(slow), called(second)]).toEqual([[1], []])
  wall.ms += 1
  await soon(async () => expect(await statesOf(orderId)).toEqual(['1 delivered 0', '2 delivered 0']))
  late.resolve(status(500))
  await soon(async () =>
    expect(
      await stage.db.query('SELECT sequence, status FROM webhook_attempts ORDER BY sequence, fence'),
    ).toEqual([
      { sequence: 1, status: 500 },
      { sequence: 1, status: 200 },
      { sequence: 2, status: 200 },
    ]),
  )
  expect(await statesOf(orderId)).toEqual(['1 delivered 0', '2 delivered 0'])
})

test('what begins to wait while a line is let go is told', async () => {
  const orderId = await orderWith(1)
  await relay()
  start()
  await soon(() => expect(called()).toEqual([1]))
  await soon(async () => expect(await statesOf(orderId)).toEqual(['1 delivered 0']))
  await loops.splice(0)[0]?.stop()
  await happen(stage, orderId)
  const key = [bucketOf(orderId), orderId]
  let isLengthened = false
  /** Somebody lengthens the line, and has not committed yet when it is let go. */
  const lengthen = async () => {
    isLengthened = true
    await stage.corrupt('BEGIN')
    await stage.corrupt(
      `INSERT INTO webhook_deliveries (bucket, order_id, receiver, account_id, sequence, event_at_ms, state, due_at_ms)
       VALUES ($1, $2, 'callback', 'acc_stage00000', 2, 1, 'waiting', 1)`,
      key,
    )
    await stage.corrupt(
      'UPDATE webhook_lines SET next_sequence = 2, due_at_ms = 1 WHERE bucket = $1 AND order_id = $2',
      key,
    )
  }
  const commit = async () => {
    await soon(async () =>
      expect(await stage.db.query('SELECT 1 AS one FROM pg_locks WHERE NOT granted')).toHaveLength(1),
    )
    await stage.corrupt('COMMIT')
  }
  const isLettingGo = (text: string) =>
    text.startsWith('UPDATE webhook_lines SET claimed_until_wall_ms = 0') ||
    /FROM webhook_lines\s+WHERE .* FOR NO KEY UPDATE$/.test(text)
  const slowly = (sql: Sql): Sql => ({
    query: async (text, values) => {
      if (isLengthened || !isLettingGo(text)) return sql.query(text, values)
      await lengthen()
      const [answer] = await Promise.all([sql.query(text, values), commit()])
      return answer as never
    },
  })
  // It is due, and there is nothing.
  await stage.corrupt(
    'UPDATE webhook_lines SET next_sequence = 1, due_at_ms = 1 WHERE bucket = $1 AND order_id = $2',
    key,
  )
  const db = {
    ...webhooks.world.db,
    ...slowly(webhooks.world.db),
    transaction: <Value>(work: (tx: Sql) => Promise<Value>) =>
      webhooks.world.db.transaction((tx) => work(slowly(tx))),
  }
  loops.push(startDelivering({ ...webhooks.world, db }))
  await soon(() => expect(called()).toEqual([1, 2]))
})

test('a process that stops cuts off what is under way, which is no failure of the receiver', async () => {
  const orderId = await orderWith(1)
  await relay()
  webhooks.answer = never
  const loop = start()
  await soon(() => expect(called()).toEqual([1]))
  await loop.stop()
  expect(await statesOf(orderId)).toEqual(['1 waiting 0'])
  const next = openWebhookStage(stage)
  start(next)
  await soon(async () => expect(await statesOf(orderId)).toEqual(['1 delivered 0']))
  expect(called(next)).toEqual([1])
})

test('several processes tell every event of many orders once, and each order in its order', async () => {
  const orders: string[] = []
  for (let index = 0; index < 25; index += 1)
    orders.push(await orderWith(4, `https://host${index % 3}.example/`))
  await relay()
  const workers = [webhooks, openWebhookStage(stage), openWebhookStage(stage)]
  for (const worker of workers) start(worker)
  await soon(async () =>
    expect(await stage.db.query(`SELECT 1 FROM webhook_deliveries WHERE state <> 'delivered'`)).toEqual([]),
  )
  expect(workers.flatMap(({ calls }) => calls)).toHaveLength(100)
  const attempts = await stage.db.query<{ order_id: string; told: number[] }>(
    'SELECT order_id, array_agg(sequence ORDER BY fence) AS told FROM webhook_attempts GROUP BY order_id',
  )
  expect(attempts.map(({ told }) => told)).toEqual(orders.map(() => [1, 2, 3, 4]))
})

test('what cannot be made into a message is a failure that is logged, and waits like any other', async () => {
  const orderId = await orderWith(1)
  await relay()
  const { world } = webhooks
  const broken = {
    ...world,
    webhooks: {
      ...world.webhooks,
      writeEvent: () => {
        throw new Error('no such field')
      },
    },
  }
  start({ ...webhooks, world: broken })
  await soon(async () => expect(await statesOf(orderId)).toEqual(['1 waiting 1']))
  expect(stage.logged.filter(({ level }) => level === 'error')).toHaveLength(1)
})

test('what no secret can be found for to sign it with is a failure like any other, and is sent to nobody', async () => {
  const orderId = await orderWith(1)
  await relay()
  const { world } = webhooks
  start({ ...webhooks, world: { ...world, webhooks: { ...world.webhooks, secretsOf: async () => [] } } })
  await soon(async () => expect(await statesOf(orderId)).toEqual(['1 waiting 1']))
  expect(await stage.db.query('SELECT outcome, said FROM webhook_attempts')).toEqual([
    { outcome: 'failed', said: 'no secret of the account could be opened to sign it with' },
  ])
  expect(called()).toEqual([])
})

test('a database that does not tell the secrets uses up nobody’s attempts', async () => {
  const orderId = await orderWith(1)
  await relay()
  const wall = { ms: 1_800_000_000_000 }
  const { world, calls } = openWebhookStage(stage, wall)
  let asked = 0
  const secretsOf = async (accountId: string) => {
    asked += 1
    if (asked === 1) throw new Error('the connection was lost')
    return world.webhooks.secretsOf(accountId)
  }
  loops.push(startDelivering({ ...world, webhooks: { ...world.webhooks, secretsOf } }))
  await soon(() => expect(stage.logged.map(({ level }) => level)).toContain('warn'))
  expect([await statesOf(orderId), calls]).toEqual([['1 waiting 0'], []])
  // When the claim has run out it is tried again.
  wall.ms += 1_001
  await soon(async () => expect(await statesOf(orderId)).toEqual(['1 delivered 0']))
  expect(asked).toBe(2)
})

test('what is given up is mailed to the owner in the same transaction, unless mails are off or there is no address', async () => {
  await ownMails()
  await stage.corrupt(`INSERT INTO accounts VALUES ('acc_nomail0000', 'No mail', 1) ON CONFLICT DO NOTHING`)
  const orderId = await orderWith(1)
  const silent = await openOrder(stage, 'https://one.example/', 'acc_nomail0000')
  await relay()
  await stage.corrupt('UPDATE webhook_deliveries SET attempts = 9')
  webhooks.answer = () => status(503)
  start({ ...webhooks, world: mailing(webhooks.world) })
  await soon(async () => {
    expect(await statesOf(orderId)).toEqual(['1 exhausted 10'])
    expect(await statesOf(silent)).toEqual(['1 exhausted 10'])
  })
  expect(await stage.db.query('SELECT kind, to_address, data FROM mails')).toEqual([
    {
      kind: 'webhook_exhausted',
      to_address: 'owner@shop.example',
      data: { order_id: orderId, url: 'https://one.example/', endpoint: null, last_answer: 'HTTP 503' },
    },
  ])
})

test('what an owner is told of an answer is cut between two characters, and never within one', async () => {
  await ownMails()
  const urls = ['https://one.example/', 'https://two.example/']
  for (const url of urls) await openOrder(stage, url)
  await relay()
  await stage.corrupt('UPDATE webhook_deliveries SET attempts = 9')
  const why = new Map([
    ['https://one.example/', `x${'\u{1f4b8}'.repeat(150)}\ud83d`],
    ['https://two.example/', `x${'\u{1f4b8}'.repeat(250)}`],
  ])
  webhooks.answer = ({ url }) => ({ kind: 'failed', why: why.get(url) ?? '' })
  start({ ...webhooks, world: mailing(webhooks.world) })
  const told = () => stage.db.query(`SELECT data->>'last_answer' AS told FROM mails ORDER BY data->>'url'`)
  await soon(async () => {
    expect(await told()).toEqual([
      { told: `x${'\u{1f4b8}'.repeat(150)}\ufffd` },
      { told: `x${'\u{1f4b8}'.repeat(199)}` },
    ])
  })
})

test('of all that one receiver lets be given up its owner is mailed once a day', async () => {
  await ownMails()
  await addEndpoint(stage, 'we_first000', 'https://one.example/all')
  const giveUp = async () => {
    const round = openWebhookStage(stage)
    round.answer = () => status(503)
    const urls = ['https://one.example/a', 'https://one.example/b', 'https://two.example/', null]
    for (const url of urls) await openOrder(stage, url)
    await relay()
    await stage.corrupt(`UPDATE webhook_deliveries SET attempts = 9 WHERE state = 'waiting'`)
    const loop = start({ ...round, world: mailing(round.world) })
    await soon(async () =>
      expect(await stage.db.query(`SELECT 1 FROM webhook_deliveries WHERE state = 'waiting'`)).toEqual([]),
    )
    await loop.stop()
  }
  const told = async () =>
    (
      await stage.db.query<{ told: string }>(
        `SELECT coalesce(data->>'endpoint', split_part(data->>'url', '/', 3)) AS told FROM mails ORDER BY 1`,
      )
    ).map((mail) => mail.told)
  await giveUp()
  expect(await told()).toEqual(['one.example', 'two.example', 'we_first000'])
  await stage.corrupt(`UPDATE mails SET state = 'sent', over_at_ms = 1, data = '{}'`)
  await giveUp()
  expect(await told(), 'also once the mail was sent').toEqual([null, null, null])
  stage.advance(24 * 3_600_000)
  await giveUp()
  expect(await told()).toEqual(['one.example', 'two.example', 'we_first000', null, null, null])
})

test('an owner who wants no mails gets none', async () => {
  await stage.empty('mails', 'notification_settings')
  await stage.corrupt(
    `INSERT INTO notification_settings (account_id, emails) VALUES ('acc_stage00000', 'off')`,
  )
  const orderId = await orderWith(1)
  await relay()
  await stage.corrupt('UPDATE webhook_deliveries SET attempts = 9')
  webhooks.answer = () => status(503)
  start({ ...webhooks, world: mailing(webhooks.world) })
  await soon(async () => expect(await statesOf(orderId)).toEqual(['1 exhausted 10']))
  expect(await stage.db.query('SELECT 1 FROM mails')).toEqual([])
  await stage.empty('notification_settings')
})
