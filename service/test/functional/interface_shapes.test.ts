import { beforeAll, expect, test } from 'vitest'
import { createOrder, createUnderpaid, expectPaidOut, payAndBury, quickPair } from '../harness/orders.ts'
import { EVERY_NETWORK, useTestSandbox } from '../harness/test_sandbox.ts'
import { openWire, type Wire } from '../harness/wire.ts'

/**
 * What: every endpoint answers exactly the fields of the specification's tables (2.1 to 2.5) and the additional ones
 * of docs/api.md, each of the right type; defaults, envelopes, content types, the currency list and the logos.
 * How: the tables stand here as tables and are held against real answers; besides, every answer is held against the
 * served /openapi.json.
 */
const given = useTestSandbox({ networks: EVERY_NETWORK })
let wire: Wire

beforeAll(async () => {
  wire = await openWire(given())
})

type Table = Readonly<Record<string, RegExp>>

/** A field is held against its JSON text. */
const text = /^".+"$/
const number = /^(0|[1-9]\d*)(\.\d+)?$/
const count = /^\d+$/
const instant = /^"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"$/
const nothing = /^null$/
const url = /^"http:\/\/127\.0\.0\.1:\d+\/.*"$/
const choice = (...values: string[]) => new RegExp(`^"(${values.join('|')})"$`)
const orNull = (type: RegExp) => new RegExp(`^null$|${type.source}`)
const rateType = choice('fixed', 'float')
const orderId = /^"CB\d{16}"$/

/** Spec 2.1; network_fee and rate_id are ours. */
const floatRate: Table = {
  rate: number,
  from: text,
  from_network: text,
  to: text,
  to_network: text,
  from_amount: number,
  to_amount: number,
  rate_type: rateType,
  fee: number,
  fee_percent: number,
  min_amount: number,
  max_amount: number,
  network_fee: number,
}
const fixedRate: Table = { ...floatRate, expires_at: instant, rate_id: text }

/** Spec 2.2. */
const currency: Table = {
  networks: /^\["[A-Z0-9]+"(,"[A-Z0-9]+")*\]$/,
  name: text,
  logo: url,
  color: /^"#[0-9A-F]{6}"$/,
  precision: count,
  min_amount: number,
  max_amount: number,
  enabled: /^(true|false)$/,
  priority: count,
}

/** Spec 2.3, the fields that both create and get return, and ours. */
const orderInBoth: Table = {
  order_id: orderId,
  status: text,
  deposit_address: text,
  deposit_currency: text,
  deposit_network: text,
  deposit_amount: number,
  receive_currency: text,
  receive_network: text,
  receive_amount: number,
  rate: number,
  rate_type: rateType,
  fee: number,
  destination: text,
  created_at: instant,
  expires_at: instant,
  short_id: /^"\d{8}"$/,
  deposit_tag: nothing,
  network_fee: number,
  destination_tag: orNull(text),
  refund_address: orNull(text),
  callback_url: orNull(text),
}
const createdOrder: Table = { ...orderInBoth, qr_code_url: url, token: /^"[\w-]{43}"$/ }
const order: Table = {
  ...orderInBoth,
  deposit_received: number,
  deposit_confirmations: count,
  deposit_required_confirmations: count,
  receive_final_amount: number,
  deposit_tx_hash: orNull(text),
  withdraw_tx_hash: orNull(text),
  updated_at: instant,
  completed_at: orNull(instant),
}
/** Spec 2.4 and 2.5. */
const qr: Table = { qr_code: /^"data:image\/png;base64,[\w+/]+=*"$/, format: /^"png"$/ }
const action: Table = { order_id: orderId, status: text, message: text, updated_at: instant }

function expectFields(data: unknown, table: Table): void {
  const fields = Object.entries(data as object)
  expect(fields.map(([name]) => name).sort()).toEqual(Object.keys(table).sort())
  const wrong = fields.filter(([name, value]) => table[name]?.test(JSON.stringify(value)) !== true)
  expect(wrong).toEqual([])
}

function expectEnvelope(answer: { status: number; headers: Headers; json: unknown }): unknown {
  expect(answer.status).toBe(200)
  expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8')
  const { success, data, ...rest } = answer.json as { success: unknown; data: unknown }
  expect({ success, rest }).toEqual({ success: true, rest: {} })
  return data
}

test('GET /v1/rate answers table 2.1; float and from are the defaults; a float rate has no end', async () => {
  const answer = await wire.request('GET', '/v1/rate?from=BTC&to=USDT&to_network=ERC20&amount=0.1')
  const data = expectEnvelope(answer)
  expectFields(data, floatRate)
  expect(data).toMatchObject({ rate_type: 'float', from_amount: 0.1, from: 'BTC', from_network: 'BTC' })
  expect(answer.headers.get('cache-control')).toBe('no-store')
})

test('GET /v1/rate answers a fixed rate with its end, fifteen minutes ahead', async () => {
  const target = '/v1/rate?from=BTC&to=USDT&to_network=ERC20&amount=0.1&rate_type=fixed'
  const { clock } = given().service.world
  const sinceMs = clock.nowMs()
  const data = expectEnvelope(await wire.request('GET', target)) as { expires_at: string }
  const untilMs = clock.nowMs()
  expectFields(data, fixedRate)
  const quotedAtMs = Date.parse(data.expires_at) - 900_000
  expect(quotedAtMs).toBeGreaterThanOrEqual(sinceMs)
  expect(quotedAtMs).toBeLessThanOrEqual(untilMs)
})

test('GET /v1/currencies answers table 2.2 for exactly the listed currencies', async () => {
  const answer = await wire.request('GET', '/v1/currencies')
  const data = expectEnvelope(answer) as Record<string, { enabled: boolean }>
  for (const entry of Object.values(data)) expectFields(entry, currency)
  const logo = (code: string) => `${given().baseUrl}/logos/${code}.svg`
  const tokens = { networks: ['ERC20', 'BEP20'], precision: 6, min_amount: 10, max_amount: 500_000 }
  expect(data).toEqual({
    BTC: {
      ...{ networks: ['BTC'], name: 'Bitcoin', logo: logo('BTC'), color: '#F7931A', precision: 8 },
      ...{ min_amount: 0.0002, max_amount: 10, enabled: true, priority: 1 },
    },
    ETH: {
      ...{ networks: ['ETH'], name: 'Ethereum', logo: logo('ETH'), color: '#627EEA', precision: 8 },
      ...{ min_amount: 0.005, max_amount: 200, enabled: true, priority: 2 },
    },
    USDT: {
      ...{ ...tokens, name: 'Tether USD', logo: logo('USDT'), color: '#26A17B', enabled: true, priority: 3 },
      networks: ['ERC20', 'BEP20', 'TRC20'],
    },
    USDC: {
      ...{ ...tokens, name: 'USD Coin', logo: logo('USDC'), color: '#2775CA', enabled: true, priority: 4 },
      networks: ['ERC20', 'BEP20', 'SOL'],
    },
    BNB: {
      ...{ networks: ['BNB'], name: 'BNB', logo: logo('BNB'), color: '#F3BA2F', precision: 8 },
      ...{ min_amount: 0.02, max_amount: 500, enabled: true, priority: 5 },
    },
    XRP: {
      ...{ networks: ['XRP'], name: 'XRP', logo: logo('XRP'), color: '#23292F', precision: 6 },
      ...{ min_amount: 10, max_amount: 100_000, enabled: true, priority: 6 },
    },
    XLM: {
      ...{ networks: ['XLM'], name: 'Stellar Lumens', logo: logo('XLM'), color: '#7D00FF', precision: 7 },
      ...{ min_amount: 50, max_amount: 500_000, enabled: true, priority: 7 },
    },
    TRX: {
      ...{ networks: ['TRX'], name: 'TRON', logo: logo('TRX'), color: '#EF0027', precision: 6 },
      ...{ min_amount: 50, max_amount: 1_000_000, enabled: true, priority: 8 },
    },
    EOS: {
      ...{ networks: ['EOS'], name: 'EOS', logo: logo('EOS'), color: '#443F54', precision: 4 },
      ...{ min_amount: 20, max_amount: 500_000, enabled: true, priority: 9 },
    },
    SOL: {
      ...{ networks: ['SOL'], name: 'Solana', logo: logo('SOL'), color: '#9945FF', precision: 8 },
      ...{ min_amount: 0.1, max_amount: 2000, enabled: true, priority: 10 },
    },
  })
})

test('the currency list is cached for five minutes and has an ETag that answers 304', async () => {
  const first = await wire.request('GET', '/v1/currencies')
  expect(first.headers.get('cache-control')).toMatch(/(^|, )max-age=300($|,)/)
  const etag = first.headers.get('etag') ?? ''
  expect(etag).toMatch(/^"[\w-]+"$/)
  for (const tags of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
    const again = await wire.request('GET', '/v1/currencies', { headers: { 'If-None-Match': tags } })
    expect([tags, again.status, again.text]).toEqual([tags, 304, ''])
    expect(again.headers.get('etag')).toBe(etag)
  }
  const other = await wire.request('GET', '/v1/currencies', { headers: { 'If-None-Match': '"other"' } })
  expect(other.status).toBe(200)
})

test('every logo of the list is served as an SVG image that may not run anything', async () => {
  const currencies = Object.values(await wire.client.getCurrencies())
  expect(currencies).toHaveLength(10)
  const seen = new Set<string>()
  for (const { logo } of currencies) {
    const response = await fetch(logo)
    const body = await response.text()
    expect([logo, response.status]).toEqual([logo, 200])
    expect(response.headers.get('content-type')).toMatch(/^image\/svg\+xml/)
    expect(response.headers.get('content-security-policy')).toContain("default-src 'none'")
    expect(body).toMatch(/^<svg[\s\S]+<\/svg>\s*$/)
    seen.add(body)
  }
  expect(seen.size).toBe(10)
})

test('POST /v1/order/create answers the create column of table 2.3, with status NEW', async () => {
  const destination = await given().remote.freshAddress('ERC20')
  const body = JSON.stringify({
    ...{
      from: 'BTC',
      from_network: 'BTC',
      to: 'USDT',
      to_network: 'ERC20',
      amount: 0.01,
      rate_type: 'fixed',
    },
    destination,
  })
  const answer = await wire.signed('POST', '/v1/order/create', body)
  const data = expectEnvelope(answer) as { order_id: string; token: string }
  expectFields(data, createdOrder)
  given().addSecret(data.token)
  expect(data).toMatchObject({
    ...{ status: 'NEW', deposit_currency: 'BTC', deposit_network: 'BTC', deposit_amount: 0.01, destination },
    ...{
      receive_currency: 'USDT',
      receive_network: 'ERC20',
      rate_type: 'fixed',
      short_id: data.order_id.slice(-8),
    },
    ...{ destination_tag: null, refund_address: null, callback_url: null, deposit_tag: null },
    qr_code_url: `${given().baseUrl}/v1/order/${data.order_id}/qr`,
  })
  expect(answer.headers.get('cache-control')).toBe('no-store')
})

test('what an order was given is echoed by create and get; a tag where none is needed changes nothing', async () => {
  const sandbox = given()
  const refund = await sandbox.remote.freshAddress('ERC20')
  const echoed = {
    destination_tag: '12345',
    refund_address: refund,
    callback_url: 'https://shop.example/hook?order=1',
  }
  const created = await createOrder(sandbox, quickPair, { rate_type: 'float', ...echoed })
  expect(created).toMatchObject(echoed)
  const read = await wire.client.getOrder(created.order_id)
  expect(read).toMatchObject({ ...echoed, rate_type: 'float', deposit_received: 0, deposit_confirmations: 0 })
  const openMs = Date.parse(read.expires_at) - Date.parse(read.created_at)
  // The end is fixed while the rate is agreed, a moment before the order is written.
  expect(openMs).toBeGreaterThan(899_000)
  expect(openMs).toBeLessThanOrEqual(900_000)
})

test('GET /v1/order/{order_id} answers the get column of table 2.3 in NEW and in DONE', async () => {
  const sandbox = given()
  const created = await createOrder(sandbox, quickPair)
  const answer = await wire.signed('GET', `/v1/order/${created.order_id}`)
  const fresh = expectEnvelope(answer)
  expectFields(fresh, order)
  expect(fresh).toMatchObject({
    status: 'NEW',
    deposit_tx_hash: null,
    withdraw_tx_hash: null,
    completed_at: null,
  })
  // What both return is the same.
  const both = Object.fromEntries(
    Object.keys(orderInBoth).map((name) => [name, (created as Record<string, unknown>)[name]]),
  )
  expect(fresh).toMatchObject(both)

  const paid = await payAndBury(sandbox, created)
  await expectPaidOut(sandbox, created)
  const done = expectEnvelope(await wire.signed('GET', `/v1/order/${created.order_id}`))
  expectFields(done, { ...order, withdraw_tx_hash: text, completed_at: instant, deposit_tx_hash: text })
  expect(done).toMatchObject({
    ...{ status: 'DONE', deposit_tx_hash: paid, deposit_received: created.deposit_amount },
    ...{ deposit_confirmations: 12, deposit_required_confirmations: 12 },
    ...{ receive_final_amount: created.receive_amount },
  })
})

test('an order in EMERGENCY tells reasons and offers; the action answers table 2.5; the refund is told', async () => {
  const sandbox = given()
  const stuck = await createUnderpaid(sandbox, quickPair, '600')
  const seen = expectEnvelope(await wire.signed('GET', `/v1/order/${stuck.order_id}`)) as {
    emergency: { reasons: unknown; options: Record<string, object> }
  }
  expectFields(seen, { ...order, emergency: /^\{.+\}$/ })
  const { reasons, options, ...rest } = seen.emergency
  expect({ reasons, rest }).toEqual({ reasons: ['UNDERPAID'], rest: {} })
  expect(Object.keys(options).sort()).toEqual(['continue', 'recalculate', 'refund'])
  expectFields(options.continue, { receive_amount: number, rate: number })
  expectFields(options.recalculate, { receive_amount: number, rate: number })
  expectFields(options.refund, {
    ...{ refund_amount: number, network_fee: number, currency: /^"USDT"$/, network: /^"ERC20"$/ },
    has_refund_address: /^false$/,
  })

  const address = await sandbox.remote.freshAddress('ERC20')
  const body = JSON.stringify({ action: 'refund', refund_address: address })
  const target = `/v1/order/${stuck.order_id}/emergency`
  const chosen = expectEnvelope(await wire.signed('POST', target, body))
  expectFields(chosen, action)
  expect(chosen).toMatchObject({ order_id: stuck.order_id, status: 'REFUND' })
  const refunding = await wire.client.getOrder(stuck.order_id)
  expectFields(refunding, { ...order, refund: /^\{.+\}$/ })
  expect(refunding.refund_address).toBe(address)
  expectFields(refunding.refund, {
    ...{ address: choice(address), amount: number, currency: /^"USDT"$/, network: /^"ERC20"$/ },
    ...{ network_fee: number, tx_hash: orNull(text) },
  })
})

test('GET /v1/order/{order_id}/qr is a PNG of 256 pixels unless told; base64 answers table 2.4', async () => {
  const { order_id, qr_code_url } = await createOrder(given(), quickPair)
  const target = qr_code_url.slice(given().baseUrl.length)
  expect(target).toBe(`/v1/order/${order_id}/qr`)
  const plain = await wire.request('GET', target)
  expect(plain.headers.get('content-type')).toBe('image/png')
  const told = await wire.request('GET', `${target}?format=png&size=256&include_amount=true&style=default`)
  expect(told.bytes.equals(plain.bytes)).toBe(true)
  const svg = await wire.request('GET', `${target}?format=svg`)
  expect(svg.headers.get('content-type')).toBe('image/svg+xml')
  const data = expectEnvelope(await wire.request('GET', `${target}?format=base64`)) as { qr_code: string }
  expectFields(data, qr)
  expect(Buffer.from(data.qr_code.split(',')[1] ?? '', 'base64').equals(plain.bytes)).toBe(true)
})

test('/healthz, /readyz and /metrics tell what is true', async () => {
  expect((await wire.request('GET', '/healthz')).json).toEqual({ success: true, data: { status: 'ok' } })
  const ready = await wire.request('GET', '/readyz')
  expect([ready.status, ready.json.ready]).toEqual([200, true])
  expect(Object.keys(ready.json.checks).sort()).toEqual(
    [
      'chain_BNB',
      'chain_BTC',
      'chain_ETH',
      'chain_SOL',
      'chain_TRX',
      'chain_EOS',
      'chain_XLM',
      'chain_XRP',
      'database',
      'keystore',
      'migrations',
      'prices',
    ].sort(),
  )
  await given().eventually('the gauges count the orders of the table', async () => {
    const rows = await given().rows<{ status: string; count: number }>(
      'SELECT status, count(*) AS count FROM orders GROUP BY status',
    )
    expect(rows.length).toBeGreaterThan(1)
    const metrics = (await wire.request('GET', '/metrics')).text
    for (const { status, count } of rows.filter(
      (row) => row.status !== 'DONE' && row.status !== 'REFUNDED',
    )) {
      expect(metrics).toContain(`cambist_orders{status="${status}"} ${count}\n`)
    }
    expect(metrics).toMatch(/cambist_chain_lag_blocks\{chain="BTC"\} 0\n/)
    expect(metrics).toContain('cambist_database_up 1')
    expect(metrics).toMatch(/cambist_order_oldest_age_seconds\{status="NEW"\} [1-9]/)
    expect(metrics).toMatch(/cambist_payouts\{chain="BNB",kind="payout",state="\w+"\} [1-9]/)
    expect(metrics).toMatch(
      /cambist_http_request_duration_seconds_count\{[^}]*route="\/v1\/rate"[^}]*\} [1-9]/,
    )
    expect(metrics).toMatch(/cambist_ledger_difference\{asset="USDT:ERC20"\} 0\n/)
  })
})

test('every answer of this file was held against the served document', () => {
  expect(wire.answersChecked()).toBeGreaterThan(20)
})
