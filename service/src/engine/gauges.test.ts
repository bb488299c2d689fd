import { Registry } from 'prom-client'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { systemClock } from '../clock.ts'
import { postForHouse } from '../db/books.ts'
import {
  countFreeAddresses,
  readMailAcceptance,
  readOrphanedDeposits,
  readOrphanedPayouts,
  readUntoldOrders,
} from '../db/figures.ts'
import { claimMails, noteMailSent, queueMail } from '../db/mails.ts'
import { assert } from '../domain/assert.ts'
import { depositOrphaned, outflowOrphaned, reversed } from '../domain/ledger/postings.ts'
import { amountOf } from '../domain/money/amount.ts'
import { HOUR_MS } from '../domain/time.ts'
import { reconcileChain } from './books/reconcile.ts'
import { registerGauges } from './gauges.ts'
import {
  type BooksStage,
  confirmDeposit,
  confirmPayout,
  fundReserve,
  mineDeposit,
  openBooksStage,
  placeOrder,
  RESERVE,
  sendPayout,
  tell,
} from './testing/books_stage.ts'
import { nobodyElse } from './testing/nobody_else.ts'
import { pagesTouched } from './testing/pages_touched.ts'
import { watchedDatabase } from './testing/watched_database.ts'
import type { World } from './world.ts'

/**
 * What: the gauges say what the database says, without wearing it out.
 * How: a real PostgreSQL, orders moved by facts, chains on paper.
 */
let stage: BooksStage

beforeAll(async () => {
  stage = await openBooksStage('gauges')
})

beforeEach(async () => {
  await stage.reset()
  await stage.empty('mails')
})

afterAll(() => stage?.stop())

const ETHER = 10n ** 18n

function place() {
  return placeOrder(stage, 'ETH:ETH', 'USDT:ERC20', { asks: ETHER, promises: 100n * ETHER })
}

/** The values in the text that Prometheus reads, by `name{labels}`. */
async function scrape(registry: Registry): Promise<Map<string, number>> {
  const lines = (await registry.metrics()).split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return new Map(
    lines.map((line) => [
      line.slice(0, line.lastIndexOf(' ')),
      Number(line.slice(line.lastIndexOf(' ') + 1)),
    ]),
  )
}

function gauges(world: World, priceAges?: Parameters<typeof registerGauges>[2]): Registry {
  const registry = new Registry()
  // Time on the stage does not pass by itself; how long a scrape waits is real.
  const clock = { ...world.clock, sleep: systemClock().sleep }
  registerGauges({ ...world, clock }, registry, priceAges)
  return registry
}

/** Whole tables are counted as the test says, everything else as it is. */
function counting(count: () => Promise<void>): World {
  const isCount = (text: string) =>
    text.includes("IN ('DONE', 'EXPIRED', 'REFUNDED')") && !text.includes('NOT IN')
  const db: World['db'] = {
    ...stage.db,
    query: async (text, values) => {
      if (isCount(text)) await count()
      return stage.db.query(text, values)
    },
  }
  return { ...stage.world, db }
}

function watched() {
  const { db, asked, cut } = watchedDatabase(stage.db)
  return { world: { ...stage.world, db }, asked, cut }
}

function queue(eventKey: string): Promise<void> {
  return queueMail(stage.db, {
    kind: 'security_notice',
    data: { what: 'Something.' },
    eventKey,
    orderId: null,
    accountId: null,
    to: 'a@example.org',
    nowMs: stage.world.clock.nowMs(),
  })
}

/** A mail, two webhooks, and one that arrived. */
async function waitForReceivers(): Promise<void> {
  await queue('gauges')
  await stage.db.query(
    `INSERT INTO webhook_lines (bucket, order_id, receiver, account_id, url, host)
     SELECT bucket, order_id, 'callback', account_id, 'https://shop.example/', 'shop.example' FROM orders LIMIT 1`,
  )
  await stage.db.query(
    `INSERT INTO webhook_deliveries
       (bucket, order_id, receiver, sequence, account_id, state, due_at_ms, event_at_ms, ended_at_ms)
     SELECT bucket, order_id, receiver, n, account_id, CASE WHEN n = 1 THEN 'delivered' ELSE 'waiting' END, 1,
       $1::bigint - n * 5000, CASE WHEN n = 1 THEN 1 END
     FROM webhook_lines CROSS JOIN generate_series(1, 3) AS n`,
    [stage.world.clock.nowMs()],
  )
}

test('gauges tell orders, payouts, chains, reserves, prices and the ledger', async () => {
  await fundReserve(stage, 'USDT:ERC20', 1_000n * ETHER)
  await place()
  const order = await place()
  await confirmDeposit(stage, order, await mineDeposit(stage, order, ETHER, 100))
  await sendPayout(stage, order)
  stage.chain('ETH').move(100, 'ETH:ETH', RESERVE, -1n)
  for (let look = 0; look < 3; look += 1)
    await reconcileChain(stage.world, stage.chain('ETH'), { guard: nobodyElse })
  await stage.db.query(
    `INSERT INTO reserves (asset, spendable, payout_cost, at_ms, is_unpayable) VALUES
       ('USDT:ERC20', 900500000000000000000, 1, $1, false), ('BTC:BTC', 1, 1, $1, true), ('ETH:ETH', 1, 1, 1, true)`,
    [stage.world.clock.nowMs()],
  )
  await stage.db.query(
    `INSERT INTO addresses (family, address, purpose, key_index) VALUES ('bitcoin', 'free', 'change', 0)`,
  )
  await stage.db.query(`UPDATE chain_heads SET node_height = 104 WHERE chain = 'BNB'`)
  await waitForReceivers()
  stage.advance(30_000)

  const registry = gauges(stage.world, {
    ageMs: (currency) => (currency === 'ETH' ? null : 2_500),
    currencies: ['BTC', 'ETH', 'USDT'],
  })
  const values = await scrape(registry)
  const expected = {
    cambist_database_up: 1,
    'cambist_orders{status="NEW"}': 1,
    'cambist_orders{status="WITHDRAW"}': 1,
    'cambist_orders{status="DONE"}': 0,
    'cambist_order_oldest_age_seconds{status="NEW"}': 30,
    'cambist_order_oldest_age_seconds{status="PENDING"}': 0,
    'cambist_payouts{chain="ETH",kind="payout",state="broadcast"}': 1,
    'cambist_payouts{chain="ETH",kind="payout",state="planned"}': 0,
    'cambist_payouts_in_trouble{chain="ETH"}': 0,
    'cambist_payout_oldest_age_seconds{chain="ETH"}': 30,
    'cambist_payout_oldest_age_seconds{chain="BTC"}': 0,
    'cambist_chain_height_blocks{chain="BNB"}': 100,
    'cambist_chain_lag_blocks{chain="BNB"}': 4,
    'cambist_chain_lag_blocks{chain="ETH"}': 0,
    'cambist_chain_look_age_seconds{chain="ETH"}': 30,
    'cambist_ledger_difference{asset="ETH:ETH"}': -1e-18,
    'cambist_ledger_difference{asset="USDT:ERC20"}': 0,
    'cambist_ledger_comparison_age_seconds{asset="ETH:ETH"}': 30,
    'cambist_outflows_stopped{chain="ETH"}': 1,
    'cambist_outflows_stopped{chain="BTC"}': 0,
    'cambist_reserve_spendable{asset="USDT:ERC20"}': 900.5,
    'cambist_fee_above_cap{asset="USDT:ERC20"}': 0,
    'cambist_fee_above_cap{asset="BTC:BTC"}': 1,
    'cambist_addresses_free{family="bitcoin",purpose="change"}': 1,
    'cambist_mails{state="waiting"}': 1,
    'cambist_mails{state="refused"}': 0,
    'cambist_mail_oldest_age_seconds{state="waiting"}': 30,
    'cambist_addresses_free{family="evm",purpose="deposit"}': 0,
    'cambist_price_age_seconds{currency="BTC"}': 2.5,
    cambist_orders_untold: 2,
    cambist_order_untold_age_seconds: 30,
    cambist_webhooks_waiting: 2,
    cambist_webhook_oldest_age_seconds: 45,
  }
  expect(Object.fromEntries([...values].filter(([name]) => name in expected))).toEqual(expected)
  expect(values.has('cambist_price_age_seconds{currency="ETH"}'), 'no price, no age').toBe(false)
  expect(values.has('cambist_price_age_seconds{currency="EOS"}'), 'not offered').toBe(false)
  expect(values.has('cambist_fee_above_cap{asset="ETH:ETH"}'), 'of long ago').toBe(false)
  for (const { name, help } of await registry.getMetricsAsJSON()) {
    expect(name).toMatch(/^cambist_[a-z_]+$/)
    expect(help.length).toBeGreaterThan(15)
  }
})

test('a mail that goes on being refused does not hide that others are accepted', async () => {
  const registry = gauges(stage.world)
  const read = async () => {
    const values = await scrape(registry)
    return [
      values.get('cambist_mail_oldest_age_seconds{state="waiting"}'),
      values.get('cambist_mail_accepted_age_seconds'),
    ]
  }
  await queue('refused')
  stage.advance(30_000)
  expect(await read(), 'none was ever accepted').toEqual([30, undefined])
  for (const eventKey of ['accepted', 'accepted later']) {
    await queue(eventKey)
    const time = { nowMs: stage.world.clock.nowMs(), wallMs: stage.world.clock.wallMs(), claimMs: 1 }
    const { mails } = await claimMails(stage.db, time, 10)
    const mail = mails.find((one) => one.eventKey === eventKey)
    assert(mail !== undefined, 'it is due')
    await noteMailSent(stage.db, mail, '250 OK', time.nowMs)
    stage.advance(1_000)
  }
  expect(await read()).toEqual([32, 1])
})

test('a mail that was accepted before the clock was set back does not hide that none is accepted since', async () => {
  const registry = gauges(stage.world)
  const acceptedAge = async () => (await scrape(registry)).get('cambist_mail_accepted_age_seconds')
  const accept = async (eventKey: string) => {
    await queue(eventKey)
    const { clock } = stage.world
    const { mails } = await claimMails(
      stage.db,
      { nowMs: clock.nowMs(), wallMs: clock.wallMs(), claimMs: 1 },
      10,
    )
    const mail = mails.find((one) => one.eventKey === eventKey)
    assert(mail !== undefined, 'it is due')
    await noteMailSent(stage.db, mail, '250 OK', clock.nowMs())
  }
  await accept('accepted')
  stage.advance(HOUR_MS)
  await accept('accepted by a clock that is ahead')
  stage.advance(2_000 - HOUR_MS)
  expect(await acceptedAge()).toBe(2)
})

test('a payout that lost its block is not finished', async () => {
  const order = await place()
  await confirmDeposit(stage, order, await mineDeposit(stage, order, ETHER, 100))
  const { payoutId } = await sendPayout(stage, order)
  await stage.corrupt(
    `UPDATE outflows SET state = 'orphaned', trouble = 'refused', trouble_since_ms = 1, mined_height = 1,
       mined_hash = 'block', mined_cost = 1 WHERE payout_id = $1`,
    [payoutId],
  )
  stage.advance(30_000)
  const values = await scrape(gauges(stage.world))
  expect(values.get('cambist_payouts{chain="ETH",kind="payout",state="orphaned"}')).toBe(1)
  expect(values.get('cambist_payouts_in_trouble{chain="ETH"}')).toBe(1)
  expect(values.get('cambist_payout_oldest_age_seconds{chain="ETH"}')).toBe(30)
})

test('what is owed again shows until it is paid again, whatever becomes of its payout', async () => {
  const owed = async () => {
    stage.advance(1_000)
    const values = await scrape(registry)
    return [...values].filter(([name]) => name.startsWith('cambist_orphaned_payouts_owed'))
  }
  const registry = gauges(stage.world)
  expect(await owed()).toEqual([])
  const [two, three] = [2n, 3n].map((ether) => outflowOrphaned(amountOf('ETH:ETH', ether * ETHER)))
  assert(two !== undefined && three !== undefined, 'there are two')
  await postForHouse(stage.db, 'one:block_lost:b@0', two, 1)
  await postForHouse(stage.db, 'two:block_lost:b@0', three, 1)
  expect(await owed()).toEqual([['cambist_orphaned_payouts_owed{asset="ETH:ETH"}', 5]])
  await postForHouse(stage.db, 'one:block_found:c@0', reversed(two), 2)
  expect(await owed()).toEqual([['cambist_orphaned_payouts_owed{asset="ETH:ETH"}', 3]])
})

test('a deposit that lost its block after its payout left shows until it is confirmed again', async () => {
  const missing = async () => {
    stage.advance(1_000)
    const values = await scrape(registry)
    return [...values].filter(([name]) => name.startsWith('cambist_orphaned_deposits'))
  }
  const registry = gauges(stage.world)
  const order = await place()
  const { id } = order.terms
  const key = await mineDeposit(stage, order, ETHER, 100)
  await confirmDeposit(stage, order, key)
  await confirmPayout(stage, order, { ...(await sendPayout(stage, order)), cost: 1n })
  expect(await missing()).toEqual([])
  await tell(stage, id, `${key}:unmined:a@0`, { kind: 'DepositUnmined', key })
  expect(await missing()).toEqual([['cambist_orphaned_deposits{asset="ETH:ETH"}', 1]])
  const again = {
    txHash: 'again',
    amount: amountOf('ETH:ETH', ETHER),
    seenAtMs: stage.world.clock.nowMs(),
    block: { height: 101, hash: 'b' },
  }
  await tell(stage, id, `${key}:mined:b`, { kind: 'DepositSeen', key, ...again })
  expect(await missing(), 'it is not deep yet').toEqual([['cambist_orphaned_deposits{asset="ETH:ETH"}', 1]])
  await tell(stage, id, `${key}:confirmed:b@1`, { kind: 'DepositConfirmed', key })
  expect(await missing()).toEqual([['cambist_orphaned_deposits{asset="ETH:ETH"}', 0]])
})

test.each([
  ['owed again', outflowOrphaned, readOrphanedPayouts],
  ['missing', depositOrphaned, readOrphanedDeposits],
] as const)('what is %s is summed without reading the rest of the journal', async (_, orphaned, read) => {
  await postForHouse(stage.db, 'one:block_lost:b@0', orphaned(amountOf('ETH:ETH', ETHER)), 1)
  await stage.corrupt(
    `INSERT INTO journal (bucket, owner, entry_key, line, asset, debit, credit, units, at_ms)
     SELECT 0, 'house', 'capital ' || n, 1, 'ETH:ETH', 'wallet', 'capital', 1, 1 FROM generate_series(1, 20000) AS n`,
  )
  await stage.corrupt('VACUUM ANALYZE journal')
  expect(await pagesTouched(stage.db, read)).toBeLessThan(20)
})

test('an order that nobody is told of is no younger for the dust that comes to it', async () => {
  const order = await place()
  await confirmDeposit(stage, order, await mineDeposit(stage, order, ETHER, 100))
  const untoldAge = async () => (await scrape(gauges(stage.world))).get('cambist_order_untold_age_seconds')
  stage.advance(30_000)
  await confirmDeposit(stage, order, await mineDeposit(stage, order, 1n, 101))
  expect(await untoldAge()).toBe(30)
  await stage.db.query('UPDATE orders SET relayed_sequence = sequence')
  expect(await untoldAge()).toBe(0)
})

test('gauges read the database at most once a second, and whole tables once a minute', async () => {
  const { world, asked } = watched()
  const registry = gauges(world)
  await scrape(registry)
  const first = asked()
  await Promise.all([scrape(registry), scrape(registry)])
  expect(asked()).toBe(first)
  await place()
  stage.advance(1_000)
  expect((await scrape(registry)).get('cambist_orders{status="NEW"}')).toBe(1)
  expect(asked()).toBe(2 * first - 2)

  await stage.corrupt(`UPDATE orders SET status = 'EXPIRED'`)
  stage.advance(1_000)
  expect((await scrape(registry)).get('cambist_orders{status="EXPIRED"}')).toBe(0)
  stage.advance(60_000)
  expect((await scrape(registry)).get('cambist_orders{status="EXPIRED"}')).toBe(1)
})

test('while the database is away the scrape works, says so, and shows no old figures', async () => {
  const { world, cut } = watched()
  const registry = gauges(world)
  expect((await scrape(registry)).get('cambist_chain_lag_blocks{chain="ETH"}')).toBe(0)
  cut()
  stage.advance(1_000)
  const values = await scrape(registry)
  expect(values.get('cambist_database_up')).toBe(0)
  expect([...values.keys()]).toEqual(['cambist_database_up'])
})

test('what has ended and takes too long to count is absent, asked for seldom, and takes no other figure with it', async () => {
  await place()
  let tried = 0
  const registry = gauges(
    counting(async () => {
      tried += 1
      stage.advance(30_000)
      throw new Error('canceling statement due to statement timeout')
    }),
  )
  for (let minute = 0; minute < 3; minute += 1) {
    const values = await scrape(registry)
    expect(values.get('cambist_database_up')).toBe(1)
    expect(values.get('cambist_orders{status="NEW"}')).toBe(1)
    expect(values.has('cambist_orders{status="DONE"}')).toBe(false)
    expect(values.get('cambist_payouts{chain="ETH",kind="payout",state="planned"}')).toBe(0)
    expect(values.has('cambist_payouts{chain="ETH",kind="payout",state="confirmed"}')).toBe(false)
    stage.advance(60_000)
  }
  expect(tried).toBe(1)
})

test('a long count does not make the other figures old', async () => {
  await place()
  const registry = gauges(counting(async () => stage.advance(20_000)))
  const first = await scrape(registry)
  expect(first.get('cambist_orders{status="NEW"}')).toBe(1)
  expect(first.get('cambist_orders{status="DONE"}')).toBe(0)
  await place()
  stage.advance(1_000)
  expect((await scrape(registry)).get('cambist_orders{status="NEW"}')).toBe(2)
})

test('a scrape does not wait until all has been counted; a later one tells it', async () => {
  await place()
  const counted = Promise.withResolvers<void>()
  const registry = gauges(counting(() => counted.promise))
  const early = await scrape(registry)
  expect(early.get('cambist_orders{status="NEW"}')).toBe(1)
  expect(early.has('cambist_orders{status="DONE"}')).toBe(false)
  counted.resolve()
  await expect.poll(async () => (await scrape(registry)).get('cambist_orders{status="DONE"}')).toBe(0)
})

test('figures of a slow database are not told as new for longer than a minute', async () => {
  await place()
  let slowMs = 20_000
  const db: World['db'] = {
    ...stage.db,
    query: (text, values) => {
      if (text.includes('FROM mails')) stage.advance(slowMs)
      return stage.db.query(text, values)
    },
  }
  const registry = gauges({ ...stage.world, db })
  expect((await scrape(registry)).get('cambist_orders{status="NEW"}')).toBe(1)
  slowMs = 0
  await place()
  stage.advance(60_000)
  expect((await scrape(registry)).get('cambist_orders{status="NEW"}')).toBe(2)
})

test('an hour that the clock was set back shows as an hour in which nobody looked', async () => {
  stage.advance(-3_600_000)
  const values = await scrape(gauges(stage.world))
  expect(values.get('cambist_chain_look_age_seconds{chain="ETH"}')).toBe(3_600)
})

test('how many addresses are free is counted without reading those that were given to orders', async () => {
  await stage.corrupt(
    `INSERT INTO addresses (family, address, purpose, key_index, assigned_at_ms)
     SELECT 'evm', 'given' || n, 'deposit', n, n FROM generate_series(1000, 21000) AS n`,
  )
  await stage.corrupt('VACUUM ANALYZE addresses')
  expect(await pagesTouched(stage.db, countFreeAddresses)).toBeLessThan(60)
})

test('how many orders are untold is counted without reading those that were told', async () => {
  await place()
  const [{ columns } = { columns: '' }] = await stage.db.query<{ columns: string }>(
    `SELECT string_agg(quote_ident(column_name), ', ') AS columns FROM information_schema.columns
     WHERE table_name = 'orders' AND column_name NOT IN ('order_id', 'relayed_sequence') AND is_generated = 'NEVER'`,
  )
  await stage.corrupt(
    `INSERT INTO orders (order_id, relayed_sequence, ${columns})
     SELECT 'CB' || (1000000000000000 + n * 100 + bucket), sequence, ${columns}
     FROM orders CROSS JOIN generate_series(1, 20000) AS n`,
  )
  await stage.corrupt('VACUUM ANALYZE orders')
  expect(await stage.db.query('SELECT count(*) AS n FROM orders')).toEqual([{ n: 20001 }])
  expect(await pagesTouched(stage.db, readUntoldOrders)).toBeLessThan(20)
})

test('when a mail was accepted last is found without reading all that were', async () => {
  await stage.corrupt(
    `INSERT INTO mails (bucket, event_key, kind, to_address, data, message_id, state, queued_at_ms, due_at_ms, over_at_ms)
     SELECT 0, n, 'security_notice', 'a@example.org', '{}', md5(n::text), 'sent', n, n, n FROM generate_series(1, 20000) AS n`,
  )
  await stage.corrupt('VACUUM ANALYZE mails')
  const { clock } = stage.world
  expect(await readMailAcceptance(stage.db, clock.nowMs())).toEqual({ lastAtMs: 20_000 })
  expect(await pagesTouched(stage.db, (sql) => readMailAcceptance(sql, clock.nowMs()))).toBeLessThan(20)
})
