import type { CreatedOrder } from '@cambist/sdk'
import pg from 'pg'
import { beforeAll, expect, test } from 'vitest'
import { createOrder, type Pair, quickPair } from '../harness/orders.ts'
import { EVERY_NETWORK, useTestSandbox } from '../harness/test_sandbox.ts'
import { type Answer, failureOf, openWire, type Wire } from '../harness/wire.ts'

/**
 * What: while a chain or the prices are away, their currencies are off, MAINTENANCE and RATE_UNAVAILABLE say so, all
 * else goes on, and everything comes back by itself.
 * How: the node of Ethereum is frozen (SIGSTOP). Prices are taken away in the process: the sandbox's own never fail. What is
 * to be offered is asked for until it is: on a machine that is busy a look may take longer than a chain may be silent here.
 */
const TROUBLE_S = 20
const given = useTestSandbox({ networks: EVERY_NETWORK, policy: { chainTroubleMs: TROUBLE_S * 1_000 } })
let wire: Wire

beforeAll(async () => {
  wire = await openWire(given())
})

function expectBusy(answer: Answer, code: string): void {
  const { message, ...rest } = answer.json
  expect([answer.status, rest]).toEqual([503, { error: true, error_code: code }])
  expect(message).toMatch(/at the moment/)
  expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
}

/** The list, as soon as it offers just these. */
function listOffering(what: string, expected: Readonly<Record<string, boolean>>): Promise<Answer> {
  return given().eventually(what, async () => {
    const answer = await wire.request('GET', '/v1/currencies')
    const entries = Object.entries(answer.json.data as Record<string, { enabled: boolean }>)
    expect(Object.fromEntries(entries.map(([code, entry]) => [code, entry.enabled]))).toEqual(expected)
    return answer
  })
}

function expectQuoted(query: string): Promise<void> {
  return given().eventually(`it is quoted: ${query}`, async () => {
    expect((await wire.request('GET', `/v1/rate?${query}`)).status).toBe(200)
  })
}

/** A chain that is away for a moment would be named before the price. */
function expectUnpriced(ask: () => Promise<Answer>): Promise<void> {
  return given().eventually('there is no price', async () => expectBusy(await ask(), 'RATE_UNAVAILABLE'))
}

function createWhenOffered(pair: Pair): Promise<CreatedOrder> {
  return given().eventually('an order is taken', () => createOrder(given(), pair))
}

const all = {
  BTC: true,
  ETH: true,
  USDT: true,
  USDC: true,
  BNB: true,
  XRP: true,
  XLM: true,
  TRX: true,
  EOS: true,
  SOL: true,
}

function signal(network: 'ETH' | 'BNB', name: NodeJS.Signals): void {
  const node = given().devnet.processes.find((each) => each.network === network)
  if (node === undefined) throw new Error(`${network} runs`)
  process.kill(node.pid, name)
}

test('a chain whose node is frozen takes its currencies off; the others go on; it comes back', async () => {
  const sandbox = given()
  const before = await listOffering('everything is on', all)
  const address = await sandbox.remote.freshAddress('ETH')
  const stopped = await createWhenOffered(quickPair)
  signal('ETH', 'SIGSTOP')
  try {
    await listOffering('ETH is off, and tokens that also travel elsewhere are not', { ...all, ETH: false })
    const etag = before.headers.get('etag') ?? ''
    const list = await wire.request('GET', '/v1/currencies', { headers: { 'If-None-Match': etag } })
    expect(list.status).toBe(200)
    for (const pair of ['from=ETH&to=BTC', 'from=BTC&to=ETH', 'from=BTC&to=USDT&to_network=ERC20']) {
      expectBusy(await wire.request('GET', `/v1/rate?${pair}&amount=1`), 'MAINTENANCE')
    }
    const order = {
      from: 'BTC',
      from_network: 'BTC',
      to: 'ETH',
      to_network: 'ETH',
      rate_type: 'float',
      amount: 0.1,
    }
    const create = await wire.signed(
      'POST',
      '/v1/order/create',
      JSON.stringify({ ...order, destination: address }),
    )
    expectBusy(create, 'MAINTENANCE')
    const { api_key: keyId, api_secret: secret } = sandbox.account
    const hasty = wire.clientOf({ keyId, secret }, { retries: 0 })
    const failure = await failureOf(hasty.getRate({ from: 'ETH', to: 'BTC', amount: 1 }))
    expect(failure).toMatchObject({ code: 'MAINTENANCE', status: 503 })
    expect(failure.retryAfterMs).toBeGreaterThan(0)

    // What does not need Ethereum works, and orders can still be read and paid for by their QR.
    await expectQuoted('from=BTC&to=USDT&to_network=BEP20&amount=0.1')
    await createWhenOffered({ from: 'BNB', from_network: 'BNB', to: 'BTC', to_network: 'BTC' })
    expect((await wire.client.getOrder(stopped.order_id)).status).toBe('NEW')
    expect((await wire.request('GET', `/v1/order/${stopped.order_id}/qr`)).status).toBe(200)
    const ready = await sandbox.eventually('readiness names this chain and no other', async () => {
      const told = await wire.request('GET', '/readyz')
      const { chain_ETH, chain_BTC } = told.json.checks
      expect([told.status, told.json.ready, chain_ETH.ok, chain_BTC.ok]).toEqual([200, true, false, true])
      return told
    })
    expect(ready.json.checks.chain_ETH.detail).toMatch(/the last whole look was \d+ s ago/)
    const { text } = await wire.request('GET', '/metrics')
    const [, age] = /cambist_chain_look_age_seconds\{chain="ETH"\} (\d+)/.exec(text) ?? []
    expect(Number(age)).toBeGreaterThanOrEqual(TROUBLE_S)
  } finally {
    signal('ETH', 'SIGCONT')
  }
  await listOffering('everything is back', all)
  const after = await createWhenOffered(quickPair)
  expect(after.status).toBe('NEW')
})

test('without a price there is no quote and no order: RATE_UNAVAILABLE, and only for that currency', async () => {
  const { prices } = given().service.world
  const { usd } = prices
  const open = prices as { usd: typeof usd }
  open.usd = (currency) => (currency === 'BNB' ? null : usd(currency))
  try {
    await expectUnpriced(() => wire.request('GET', '/v1/rate?from=BNB&to=BTC&amount=1'))
    const destination = await given().remote.freshAddress('BNB')
    const order = {
      from: 'BTC',
      from_network: 'BTC',
      to: 'BNB',
      to_network: 'BNB',
      rate_type: 'fixed',
      amount: 0.1,
    }
    const body = JSON.stringify({ ...order, destination })
    await expectUnpriced(() => wire.signed('POST', '/v1/order/create', body))
    await expectQuoted('from=BTC&to=ETH&amount=0.1')
    await given().eventually('readiness names the currency', async () => {
      const ready = await wire.request('GET', '/readyz')
      expect(ready.json.checks.prices).toEqual({ ok: false, detail: 'no reliable price for BNB' })
    })
    await listOffering('BNB is off the list, and no other', { ...all, BNB: false })
    open.usd = () => null
    await given().eventually('without any price it is not ready', async () => {
      const dead = await wire.request('GET', '/readyz')
      expect([dead.status, dead.json.ready]).toEqual([503, false])
    })
    expect((await wire.request('GET', '/healthz')).status).toBe(200)
  } finally {
    open.usd = usd
  }
  await expectQuoted('from=BNB&to=BTC&amount=1')
  await listOffering('everything is on again', all)
})

test('MAINTENANCE while no deposit address is ready', async () => {
  const sandbox = given()
  const { db, policy } = sandbox.service.world
  const destination = await sandbox.remote.freshAddress('BEP20')
  const body = JSON.stringify({ ...quickPair, amount: 100, rate_type: 'float', destination })
  const free = "FROM addresses WHERE family = 'evm' AND purpose = 'deposit' AND assigned_at_ms IS NULL"
  await sandbox.eventually('the pool is full, so that nobody fills it meanwhile', async () => {
    const [pool] = await sandbox.rows<{ count: number }>(`SELECT count(*) AS count ${free}`)
    expect(pool?.count).toBeGreaterThanOrEqual(policy.poolSize)
  })
  // Addresses that are locked are passed over: while this transaction holds them all, the pool is dry.
  const answer = await db.transaction(async (tx) => {
    await tx.query(`SELECT address ${free} FOR UPDATE`)
    return wire.signed('POST', '/v1/order/create', body)
  })
  expectBusy(answer, 'MAINTENANCE')
  const again = await sandbox.eventually('it is taken', async () => {
    const taken = await wire.signed('POST', '/v1/order/create', body)
    expect(taken.status).toBe(200)
    return taken
  })
  sandbox.addSecret(again.json.data.token)
})

test('INTERNAL_ERROR tells a request id and nothing else; the log tells the rest under it', async () => {
  const sandbox = given()
  sandbox.expectError('rate_locks')
  const query = 'from=BTC&to=ETH&amount=0.1&rate_type=fixed'
  const owner = new pg.Client({ connectionString: sandbox.databaseUrl })
  await owner.connect()
  await owner.query('ALTER TABLE rate_locks RENAME TO rate_locks_away')
  try {
    const { json } = await sandbox.eventually('it fails', async () => {
      const answer = await wire.request('GET', `/v1/rate?${query}`)
      expect(answer.status).toBe(500)
      return answer
    })
    const { message, request_id: id, ...rest } = json
    expect(rest).toEqual({ error: true, error_code: 'INTERNAL_ERROR' })
    expect(message).toBe('something went wrong on our side')
    await sandbox.eventually('the log has it', () => {
      const line = sandbox.logLines(50).find(({ text }) => text.includes(`"request_id":"${id}"`))
      expect(line?.text).toContain('rate_locks')
    })
  } finally {
    await owner.query('ALTER TABLE rate_locks_away RENAME TO rate_locks')
    await owner.end()
  }
  await expectQuoted(query)
})
