import { connect } from 'node:net'
import { Registry } from 'prom-client'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { soon } from '../../test/harness/eventually.ts'
import type { ApiKey } from '../accounts/api_key.ts'
import { fakeDesk, ORDER_ID, ORDER_TOKEN } from './testing/fake_desk.ts'
import { API_SECRET, fullKey, type Harness, signedHeaders, startHttp } from './testing/harness.ts'

let http: Harness
beforeAll(async () => {
  http = await startHttp()
})
afterAll(() => http.close())

const rate = '/v1/rate?from=BTC&to=USDT&amount=1'

type Line = Readonly<Record<string, unknown>>

function linesOf(text: string): readonly Line[] {
  return text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))
}

test('one line a request, and nothing secret in it', async () => {
  const own = await startHttp()
  const signed = signedHeaders('GET', `/v1/order/${ORDER_ID}`, '')
  await own.request('GET', `/v1/order/${ORDER_ID}`, { headers: signed })
  await own.request('GET', `/v1/order/77160542?token=${ORDER_TOKEN}`)
  await own.request('GET', '/v1/order/77160542', { headers: { 'X-ORDER-TOKEN': ORDER_TOKEN } })
  await own.signed('POST', '/v1/order/create', '{"canary":"body_canary"}', {
    headers: { 'Idempotency-Key': 'idem_canary' },
  })
  await own.request('GET', '/nothing/path_canary')
  await soon(() => expect(linesOf(own.logText())).toHaveLength(5))
  const lines = linesOf(own.logText())
  expect(lines[0]).toEqual({
    level: 30,
    time: expect.any(Number),
    pid: process.pid,
    hostname: expect.any(String),
    request_id: expect.any(String),
    method: 'GET',
    route: '/v1/order/:order_id',
    status: 200,
    duration_ms: expect.any(Number),
    key_id: 'ck_test',
    msg: 'request',
  })
  expect(lines.map(({ status }) => status)).toEqual([200, 200, 200, 400, 404])
  for (const secret of [
    ORDER_TOKEN,
    API_SECRET,
    signed['X-API-SIGN'] ?? '',
    'canary',
    ORDER_ID,
    '77160542',
  ]) {
    expect(own.logText()).not.toContain(secret)
  }
  await own.close()
})

test('a failure of ours tells a request id and nothing else; the log tells the rest, redacted', async () => {
  const desk = fakeDesk({
    findOrder: async (_, viewer) => {
      const token = viewer.kind === 'token' ? viewer.token : ''
      throw new Error(`SELECT failed for ${token}`, { cause: new Error(`again ${token}`) })
    },
  })
  const failing = await startHttp({ desk })
  for (const headers of [{ 'X-ORDER-TOKEN': ORDER_TOKEN }, undefined]) {
    const target = `/v1/order/77160542${headers === undefined ? `?token=${ORDER_TOKEN}` : ''}`
    const {
      status,
      json,
      headers: answered,
    } = await failing.request('GET', target, { ...(headers && { headers }) })
    expect(status).toBe(500)
    expect(json).toEqual({
      error: true,
      error_code: 'INTERNAL_ERROR',
      message: 'something went wrong on our side',
      request_id: answered.get('x-request-id'),
    })
  }
  await soon(() => expect(linesOf(failing.logText())).toHaveLength(4))
  const failures = linesOf(failing.logText()).filter(({ level }) => level === 50)
  expect(failures).toHaveLength(2)
  expect(failures[0]?.error).toContain('SELECT failed for [redacted]')
  expect(failures[0]?.error).toContain('caused by Error: again [redacted]')
  expect(failing.logText()).not.toContain(ORDER_TOKEN)
  await failing.close()
})

test('no secret that a request brings stands in the log of its failure, however often the error says it', async () => {
  const secrets = ['session', 'browser', 'retry'].map((name) => name.padEnd(43, 'x'))
  const [session, browser, retry = ''] = secrets
  const said = [...secrets, ORDER_TOKEN].map((secret) => `${secret} ${secret}`).join(' ')
  const findOrder = () => Promise.reject(new Error(said, { cause: new Error(said) }))
  const failing = await startHttp({ desk: fakeDesk({ findOrder }) })
  const { status } = await failing.request('GET', `/order/${ORDER_ID}?token=${ORDER_TOKEN}`, {
    headers: {
      Cookie: `cambist_session=${session}; cambist_browser=${browser}`,
      'Idempotency-Key': retry,
    },
  })
  expect(status).toBe(500)
  await soon(() => expect(linesOf(failing.logText())).toHaveLength(2))
  for (const secret of [...secrets, ORDER_TOKEN]) expect(failing.logText(), secret).not.toContain(secret)
  await failing.close()
})

test('what a caller calls a token cannot make the log of a failure longer', async () => {
  const find = () => Promise.reject(new Error('the database does not answer'))
  const failing = await startHttp({ parts: { apiKeys: { find, noteUse: () => {} } } })
  const { status } = await failing.signed('GET', `/v1/orders?${'token=e&'.repeat(10)}`)
  expect(status).toBe(500)
  await soon(() => expect(linesOf(failing.logText())).toHaveLength(2))
  const failure = linesOf(failing.logText()).find(({ level }) => level === 50)
  expect(failure?.error).toContain('the database does not answer')
  await failing.close()
})

test('a line of ours that breaks is our failure, not a body that did not arrive', async () => {
  const broken = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' })
  const failing = await startHttp({
    desk: fakeDesk({ createOrder: () => Promise.reject(broken) }),
  })
  const body = JSON.stringify({
    from: 'BTC',
    from_network: 'BTC',
    to: 'USDT',
    to_network: 'ERC20',
    amount: 0.1,
    rate_type: 'float',
    destination: '0x52908400098527886E0F7030069857D2E4169EE7',
  })
  const { status, json } = await failing.signed('POST', '/v1/order/create', body)
  // A client that is told 4xx does not ask again, though its order may be there.
  expect([status, json.error_code]).toEqual([500, 'INTERNAL_ERROR'])
  await failing.close()
})

test('a body that is cut off is told to nobody, and is no failure of ours', async () => {
  const cut = await startHttp()
  const target = '/v1/order/create'
  const headers = { Host: 'a', 'Content-Length': '10', ...signedHeaders('POST', target, '{"a":true}') }
  const socket = connect(Number.parseInt(new URL(cut.base).port, 10), '127.0.0.1')
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  socket.end([`POST ${target} HTTP/1.1`, ...lines, '', '{'].join('\r\n'))
  socket.resume()
  await soon(() => expect(linesOf(cut.logText())).not.toEqual([]))
  expect(linesOf(cut.logText()).map(({ level, status }) => [level, status])).toEqual([[30, 400]])
  await cut.close()
})

test('a view that cannot be written exactly is a 500, never a wrong number', async () => {
  const broken = fakeDesk({ rate: async () => ({ ok: true, value: { rate: 'NaN' } as never }) })
  const failing = await startHttp({ desk: broken })
  expect((await failing.request('GET', rate)).status).toBe(500)
  await failing.close()
})

test('units and bursts are told and enforced; a key and an address have their own', async () => {
  const limits = { unitsPerMinute: 60, burstPerSecond: 1000, createUnits: 50 }
  const limited = await startHttp({ limits })
  const create = '/v1/order/create'
  const first = await limited.signed('POST', create, '{}')
  expect([first.status, first.headers.get('ratelimit')]).toEqual([400, '"minute";r=10;t=60'])
  const second = await limited.signed('POST', create, '{}')
  expect([second.status, second.json.error_code]).toEqual([429, 'RATE_LIMITED'])
  expect(second.headers.get('retry-after')).toBe(String(second.json.retry_after))
  expect((await limited.signed('GET', `/v1/order/${ORDER_ID}`)).headers.get('ratelimit')).toMatch(
    /^"minute";r=9;/,
  )
  expect((await limited.request('GET', rate)).headers.get('ratelimit')).toMatch(/^"minute";r=59;/)
  const forged = await limited.signed('GET', `/v1/order/${ORDER_ID}`, undefined, { secret: 'wrong' })
  expect([forged.status, forged.headers.get('ratelimit')]).toEqual([
    401,
    expect.stringMatching(/^"minute";r=58;/),
  ])
  for (const [at, path] of [create, `/v1/order/${ORDER_ID}/emergency`].entries()) {
    const unsigned = await limited.request('POST', path, { body: '{}' })
    expect([unsigned.status, unsigned.headers.get('ratelimit')]).toEqual([
      401,
      expect.stringMatching(`^"minute";r=${57 - at};`),
    ])
  }
  await limited.close()

  const hasty = await startHttp({ limits: { burstPerSecond: 2 }, parts: { clock: stoppedClock } })
  const answers = [
    await hasty.request('GET', rate),
    await hasty.request('GET', rate),
    await hasty.request('GET', rate),
  ]
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 429])
  expect(answers[2]?.headers.get('ratelimit')).toBe('"burst";r=0;t=1')
  expect((await hasty.request('POST', create, { body: '{}' })).status).toBe(429)
  await hasty.close()
})

test('whatever is asked without a key is spent by the address, and nothing is answered once it has spent all', async () => {
  const token = { 'X-ORDER-TOKEN': ORDER_TOKEN }
  const asked = [
    ['GET', rate, {}],
    ['GET', '/v1/currencies', {}],
    ['GET', `/v1/order/${ORDER_ID}`, token],
    ['GET', `/v1/order/${ORDER_ID}/events`, { ...token, 'Last-Event-ID': 'none' }],
    ['GET', `/v1/order/${ORDER_ID}/qr`, {}],
    ['GET', `/order/${ORDER_ID}?token=${ORDER_TOKEN}`, {}],
    ['GET', '/unsubscribe?token=cut', {}],
    ['POST', '/unsubscribe?token=cut', {}],
    ['GET', '/account/sign-in', {}],
    ['GET', '/account/confirm-email', {}],
    ['GET', '/account', {}],
    ...['sign-in-links', 'session', 'email/agree', 'email/stop'].map(
      (path) => ['POST', `/account/${path}`, null] as const,
    ),
  ] as const
  const limited = await startHttp({
    limits: { unitsPerMinute: asked.length },
    parts: { clock: stoppedClock },
  })
  const answer = ([method, target, headers]: (typeof asked)[number]) =>
    limited.request(method, target, { headers: headers ?? { Origin: limited.base } })
  for (const [index, each] of asked.entries()) {
    const { status, headers } = await answer(each)
    expect(status, each[1]).not.toBe(429)
    expect(headers.get('ratelimit'), each[1]).toBe(`"minute";r=${asked.length - 1 - index};t=60`)
  }
  const before = limited.desk.asked.length
  for (const each of asked) expect((await answer(each)).status, each[1]).toBe(429)
  expect(limited.desk.asked).toHaveLength(before)
  await limited.close()
})

test('a hundred keys of one account have no more than four together, and others have their own', async () => {
  const keys = Array.from({ length: 100 }, (_, n): ApiKey => ({ ...fullKey, keyId: `ck_key_no_${n}` }))
  const other: ApiKey = { ...fullKey, keyId: 'ck_of_another', accountId: 'account-2' }
  const limited = await startHttp({ keys: [...keys, other], limits: { unitsPerMinute: 10 } })
  const ask = (key: string) => limited.signed('GET', `/v1/order/${ORDER_ID}`, undefined, { key })
  const answers = await Promise.all(keys.map(({ keyId }) => ask(keyId)))
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(40)
  const refused = answers.find(({ status }) => status === 429)
  expect(refused?.json).toMatchObject({ error_code: 'RATE_LIMITED', retry_after: expect.any(Number) })
  expect(refused?.headers.get('retry-after')).toBe(String(refused?.json.retry_after))
  expect(refused?.headers.get('ratelimit')).toMatch(/^"account-minute";r=0;t=/)
  expect((await ask(other.keyId)).status).toBe(200)
  await limited.close()
})

const stoppedClock = {
  nowMs: () => 1_790_000_000_000,
  wallMs: () => 1_790_000_000_000,
  fromWallMs: (wallMs: number) => wallMs,
  sleep: async () => undefined,
  endOfTurn: async () => undefined,
}

test('clients behind a trusted proxy are told apart', async () => {
  const proxied = await startHttp({ limits: { unitsPerMinute: 1, trustedProxies: ['127.0.0.1'] } })
  const from = (address: string) => proxied.request('GET', rate, { headers: { 'X-Forwarded-For': address } })
  expect((await from('198.51.100.1')).status).toBe(200)
  expect((await from('198.51.100.1')).status).toBe(429)
  expect((await from('198.51.100.2')).status).toBe(200)
  await proxied.close()
})

test('health, readiness and metrics are for the operator', async () => {
  expect((await http.request('GET', '/healthz')).json).toEqual({ success: true, data: { status: 'ok' } })
  expect((await http.request('GET', '/readyz')).json).toEqual({
    ready: true,
    checks: { database: { ok: true } },
  })
  const readiness = async () => ({ ready: false, checks: { database: { ok: false, detail: 'away' } } })
  const unready = await startHttp({ parts: { readiness }, limits: { metricsAllow: ['192.0.2.1'] } })
  const told = await unready.request('GET', '/readyz')
  expect([told.status, told.json]).toEqual([503, { ready: false, checks: { database: { ok: false } } }])
  expect((await unready.request('GET', '/metrics')).status).toBe(403)
  await unready.close()

  const local = await startHttp({ parts: { readiness }, limits: { metricsAllow: ['127.0.0.1'] } })
  const { status, json } = await local.request('GET', '/readyz')
  expect([status, json.checks]).toEqual([503, { database: { ok: false, detail: 'away' } }])
  await local.close()
})

test('whom a proxy asks for is not the operator, though the proxy is on this machine', async () => {
  const readiness = async () => ({ ready: false, checks: { database: { ok: false, detail: 'away' } } })
  const limits = { metricsAllow: ['127.0.0.1'] }
  const untold = await startHttp({ parts: { readiness }, limits })
  for (const header of ['X-Forwarded-For', 'X-Real-IP', 'Forwarded']) {
    const headers = { [header]: '198.51.100.1' }
    expect((await untold.request('GET', '/metrics', { headers })).status, header).toBe(403)
    const { json } = await untold.request('GET', '/readyz', { headers })
    expect(json.checks, header).toEqual({ database: { ok: false } })
  }
  expect((await untold.request('GET', '/metrics')).status).toBe(200)
  await untold.close()

  const told = await startHttp({ limits: { ...limits, trustedProxies: ['127.0.0.1'] } })
  const from = (address: string) =>
    told.request('GET', '/metrics', { headers: { 'X-Forwarded-For': address } })
  expect([(await from('198.51.100.1')).status, (await from('127.0.0.1')).status]).toEqual([403, 200])
  const unnamed = { headers: { 'X-Real-IP': '198.51.100.1', 'X-Forwarded-Proto': 'https' } }
  expect((await told.request('GET', '/metrics', unnamed)).status).toBe(403)
  expect((await told.request('GET', '/metrics')).status).toBe(200)
  await told.close()
})

test('the request histogram counts every request once, in cumulative buckets', async () => {
  const metrics = new Registry()
  const measured = await startHttp({ parts: { metrics } })
  await measured.request('GET', rate)
  await measured.request('GET', rate)
  await measured.request('GET', '/v1/rate')
  const { text } = await measured.request('GET', '/metrics')
  const name = 'cambist_http_request_duration_seconds'
  expect(text).toContain(`# TYPE ${name} histogram`)
  expect(text).toContain(`${name}_count{method="GET",route="/v1/rate",status="200"} 2`)
  expect(text).toContain(`${name}_bucket{le="+Inf",method="GET",route="/v1/rate",status="200"} 2`)
  expect(text).toContain(`${name}_count{method="GET",route="/v1/rate",status="400"} 1`)
  const buckets = [
    ...text.matchAll(/_bucket\{le="[^"]+",method="GET",route="\/v1\/rate",status="200"\} (\d+)/g),
  ]
  const counts = buckets.map(([, count]) => Number.parseInt(count ?? '', 10))
  expect(counts).toHaveLength(14)
  expect(counts).toEqual([...counts].sort((a, b) => a - b))
  await measured.close()
})

test('closing lets a request under way finish', async () => {
  let finish = () => {}
  const asked = new Promise<void>((resolve) => {
    const desk = fakeDesk({
      findPayment: () => {
        resolve()
        return new Promise((answer) => {
          finish = () => answer(null)
        })
      },
    })
    startHttp({ desk }).then((closing) => {
      closingServer = closing
      underWay = closing.request('GET', `/v1/order/${ORDER_ID}/qr`)
    })
  })
  let closingServer: Harness | undefined
  let underWay: Promise<{ readonly status: number }> | undefined
  await asked
  const closed = closingServer?.close()
  finish()
  expect((await underWay)?.status).toBe(404)
  await closed
})
