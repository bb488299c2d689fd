import { once } from 'node:events'
import { connect } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { fakeDesk, ORDER_ID, paymentView } from './testing/fake_desk.ts'
import { type Harness, signedHeaders, startHttp } from './testing/harness.ts'

/**
 * What: whatever arrives, the answer is a clear 4xx in the interface's envelope, never a 5xx and never silence.
 * How: bytes on a socket, because an HTTP client would tidy them up.
 */
let http: Harness
beforeAll(async () => {
  http = await startHttp()
})
afterAll(() => http.close())

type Spoken = { readonly status: number; readonly head: string; readonly json: Record<string, unknown> }

async function say(bytes: string | Buffer): Promise<Spoken> {
  const text = await http.talk(bytes)
  const [head = '', body = ''] = text.split('\r\n\r\n')
  return { status: Number.parseInt(head.split(' ')[1] ?? '', 10), head, json: JSON.parse(body) }
}

const close = 'Host: x\r\nConnection: close\r\n'

function expectRefusal({ status, json }: Spoken, wantedStatus: number, code: string): void {
  expect([status, json.error, json.error_code]).toEqual([wantedStatus, true, code])
  expect(typeof json.message).toBe('string')
  expect(JSON.stringify(json)).not.toMatch(/node_modules|\.ts:|Error:|FST_|HPE_/)
}

test.each([
  ['GET /v1/../v1/rate', 404, 'NOT_FOUND'],
  ['GET /v1/./rate', 404, 'NOT_FOUND'],
  ['GET //v1/rate', 404, 'NOT_FOUND'],
  ['GET /v1/rate/', 404, 'NOT_FOUND'],
  ['GET /V1/RATE', 404, 'NOT_FOUND'],
  ['GET /v1%2frate', 404, 'NOT_FOUND'],
  ['GET /v1/order/%zz', 400, 'INVALID_PARAMETER'],
  ['GET /v1/order/%ff/qr', 400, 'INVALID_PARAMETER'],
  ['GET /%c0%ae', 400, 'INVALID_PARAMETER'],
  ['GET /v1/order/%2e%2e/qr', 404, 'ORDER_NOT_FOUND'],
  ['GET /v1/order/..%2f..%2fetc/qr', 404, 'ORDER_NOT_FOUND'],
  [`GET /v1/order/${'x'.repeat(300)}/qr`, 400, 'INVALID_PARAMETER'],
  [`GET /${'x'.repeat(9000)}`, 404, 'NOT_FOUND'],
  [`GET /${'x'.repeat(20_000)}`, 400, 'INVALID_PARAMETER'],
  ['GET http://elsewhere.example/v1/nothing', 404, 'NOT_FOUND'],
  ['GET /v1/rate;from=BTC', 404, 'NOT_FOUND'],
  ['GET /v1/rate#?from=BTC', 400, 'INVALID_PARAMETER'],
  ['GET /v1/currencies#', 400, 'INVALID_PARAMETER'],
  ['GET /v1/nothing#', 400, 'INVALID_PARAMETER'],
  ['POST /v1/order/CB725413534777658#8/emergency', 400, 'INVALID_PARAMETER'],
  ['OPTIONS *', 404, 'NOT_FOUND'],
  ['OPTIONS /v1/rate', 405, 'METHOD_NOT_ALLOWED'],
  ['POST /v1/rate', 405, 'METHOD_NOT_ALLOWED'],
  ['DELETE /v1/order/create', 405, 'METHOD_NOT_ALLOWED'],
  ['TRACE /v1/currencies', 405, 'METHOD_NOT_ALLOWED'],
  ['PROPFIND /v1/rate', 404, 'NOT_FOUND'],
  ['QUERY /v1/rate', 405, 'METHOD_NOT_ALLOWED'],
  ['QUERY /v1/nothing', 404, 'NOT_FOUND'],
  ['FOO /v1/rate', 400, 'INVALID_PARAMETER'],
  ['CONNECT elsewhere.example:443', 405, 'METHOD_NOT_ALLOWED'],
])('%s is refused with %i', async (line, status, code) => {
  expectRefusal(await say(`${line} HTTP/1.1\r\n${close}\r\n`), status, code)
})

const file = 'GET /docs/static/swagger-ui.css'
test.each([
  ['GET /docs/static/nothing.css', '', 404, 'NOT_FOUND'],
  ['GET /docs/static//swagger-ui.css', '', 404, 'NOT_FOUND'],
  ['GET /docs/static/./swagger-ui.css', '', 404, 'NOT_FOUND'],
  ['GET /docs/static/../package.json', '', 404, 'NOT_FOUND'],
  ['GET /docs/static/%2e%2e/package.json', '', 404, 'NOT_FOUND'],
  ['GET /docs/static/%00', '', 404, 'NOT_FOUND'],
  ['GET /docs/static/swagger-ui.css/a', '', 404, 'NOT_FOUND'],
  [file, 'Range: bytes=99999999-\r\n', 400, 'INVALID_PARAMETER'],
  [file, 'If-Match: "another"\r\n', 400, 'INVALID_PARAMETER'],
  [file, 'If-Unmodified-Since: Thu, 01 Jan 1970 00:00:00 GMT\r\n', 400, 'INVALID_PARAMETER'],
])(
  '%s of the reference, with %j, is refused and is no failure of ours',
  async (line, header, status, code) => {
    expectRefusal(await say(`${line} HTTP/1.1\r\n${close}${header}\r\n`), status, code)
    expect(http.logText()).not.toContain('request failed')
  },
)

test('405 names the methods that would do', async () => {
  expect((await say(`PUT /v1/order/create HTTP/1.1\r\n${close}\r\n`)).head).toMatch(/^Allow: POST\r?$/m)
  expect((await say(`PUT /v1/rate HTTP/1.1\r\n${close}\r\n`)).head).toMatch(/^Allow: GET, HEAD\r?$/m)
})

test.each([
  ['nonsense', 'hello\r\n\r\n'],
  ['a wrong version', 'GET / HTTP/9.9\r\n\r\n'],
  ['a header without a name', `GET /v1/rate HTTP/1.1\r\n${close}: x\r\n\r\n`],
  ['a header with a space in its name', `GET /v1/rate HTTP/1.1\r\n${close}a b: x\r\n\r\n`],
  ['20 kB of headers', `GET /v1/rate HTTP/1.1\r\n${close}a: ${'x'.repeat(20_000)}\r\n\r\n`],
  ['two lengths', `POST /v1/order/create HTTP/1.1\r\n${close}Content-Length: 1\r\nContent-Length: 2\r\n\r\n`],
  [
    'a length and chunks',
    `POST /v1/order/create HTTP/1.1\r\n${close}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n`,
  ],
  ['a length that is no number', `POST /v1/order/create HTTP/1.1\r\n${close}Content-Length: x\r\n\r\n`],
  ['TLS', Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00])],
])('%s is refused in our envelope', async (_, bytes) => {
  expectRefusal(await say(bytes), 400, 'INVALID_PARAMETER')
})

test('a request without Host, with an odd Expect or of HTTP/1.0 is answered as ever', async () => {
  for (const text of [
    'GET /v1/rate HTTP/1.1\r\nConnection: close\r\n\r\n',
    `GET /v1/rate HTTP/1.1\r\n${close}Expect: wonders\r\n\r\n`,
    'GET /v1/rate HTTP/1.0\r\n\r\n',
  ]) {
    expectRefusal(await say(text), 400, 'INVALID_PARAMETER')
  }
})

test('who asks for a tunnel and cuts the line ends nothing else', async () => {
  const uncaught: unknown[] = []
  const note = (error: unknown) => uncaught.push(error)
  process.on('uncaughtException', note)
  const cut = new Promise((resolve) => {
    http.app.server.once('connect', (_request, socket) => socket.once('close', resolve))
  })
  const client = connect(Number.parseInt(new URL(http.base).port, 10), '127.0.0.1')
  client.write('CONNECT elsewhere.example:443 HTTP/1.1\r\n\r\n')
  await once(client, 'data')
  client.resetAndDestroy()
  await cut
  await setImmediate()
  process.off('uncaughtException', note)
  expect(uncaught).toEqual([])
})

test.each(['CONNECT elsewhere.example:443 HTTP/1.1\r\n\r\n', 'hello\r\n\r\n'])(
  'who is refused for %j and keeps the line loses it',
  async (bytes) => {
    const cut = once(http.app.server, 'connection').then(([socket]) => once(socket, 'close'))
    const port = Number.parseInt(new URL(http.base).port, 10)
    const client = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    client.write(bytes)
    expect(String(await once(client, 'data'))).toMatch(/^HTTP\/1\.1 40[05] /)
    client.on('error', () => {})
    const more = setInterval(() => client.write('x'), 500)
    await cut
    clearInterval(more)
    client.destroy()
  },
)

test('who asks for a tunnel behind a stream and hangs up leaves its seat', async () => {
  const narrow = await startHttp({ limits: { streamsPerCaller: 1 } })
  const target = `/v1/order/${ORDER_ID}/events`
  const headers = Object.entries(signedHeaders('GET', target, '')).map((each) => `${each.join(': ')}\r\n`)
  const stream = `GET ${target} HTTP/1.1\r\n${headers.join('')}\r\n`
  const left = once(narrow.app.server, 'connection').then(([socket]) => once(socket, 'close'))
  const client = connect(Number.parseInt(new URL(narrow.base).port, 10), '127.0.0.1')
  client.write(`${stream}CONNECT elsewhere.example:443 HTTP/1.1\r\n\r\n`)
  expect(String(await once(client, 'data'))).toMatch(/^HTTP\/1\.1 200 /)
  client.end()
  await left
  const again = connect(Number.parseInt(new URL(narrow.base).port, 10), '127.0.0.1')
  again.write(stream)
  expect(String(await once(again, 'data'))).toMatch(/^HTTP\/1\.1 200 /)
  again.destroy()
  await narrow.close()
})

test('a request that asks for another protocol is answered as ever, and ends the connection', async () => {
  const asks = 'Host: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n'
  const text = await http.talk(`GET /v1/currencies HTTP/1.1\r\n${asks}\r\n`)
  expect(text).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
  expect(text).toMatch(/^Connection: close\r?$/m)
})

test.each(['{', '', '{"__proto__":1}', '\xff'])(
  'the body %j is not read where there is nothing',
  async (body) => {
    const head = `POST /v1/nothing HTTP/1.1\r\n${close}Content-Type: application/json\r\n`
    const spoken = await say(`${head}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`)
    expectRefusal(spoken, 404, 'NOT_FOUND')
  },
)

test.each([
  ['POST', '/v1/order/create', 401],
  ['POST', '/v1/nothing', 404],
  ['DELETE', '/v1/account/webhooks/endpoints/whe_0', 401],
  ['DELETE', '/v1/nothing', 404],
  ['GET', '/v1/currencies', 200],
])('a %s to %s that tells of a type and of no body is answered', async (method, target, expected) => {
  const headers = { ...signedHeaders(method, target, '{}'), 'Content-Type': 'application/json' }
  const lines = Object.entries(headers).map((each) => `${each.join(': ')}\r\n`)
  const { status } = await say(`${method} ${target} HTTP/1.1\r\n${close}${lines.join('')}\r\n`)
  expect(status).toBe(expected)
})

test.each([
  ['what cannot be read', 'FOO / HTTP/1.1\r\n\r\n', '400'],
  ['who asks for a tunnel', 'CONNECT elsewhere.example:443 HTTP/1.1\r\n\r\n', '405'],
])('%s is answered after what came before it', async (_, bytes, refusal) => {
  const slow = await startHttp({
    desk: fakeDesk({ findPayment: () => setImmediate(paymentView) }),
  })
  const good = `GET /v1/order/${ORDER_ID}/qr HTTP/1.1\r\nHost: x\r\n\r\n`
  const text = await slow.talk(`${good}${good}${bytes}`)
  await slow.close()
  expect([...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)).toEqual(['200', '200', refusal])
})

function post(
  headers: Record<string, string>,
  body: Buffer | string,
  length = Buffer.byteLength(body),
): Buffer {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  const head = `POST /v1/order/create HTTP/1.1\r\n${close}${lines.join('')}Content-Length: ${length}\r\n\r\n`
  return Buffer.concat([Buffer.from(head), Buffer.from(body)])
}

test('a signed body that is not UTF-8 is a 400', async () => {
  const latin1 = Buffer.from('{"from":"\xff"}', 'latin1')
  const { createSecretKey } = await import('node:crypto')
  const { sign } = await import('./auth/signature.ts')
  const { API_SECRET } = await import('./testing/harness.ts')
  const headers = signedHeaders('POST', '/v1/order/create', '{}')
  const signature = sign(createSecretKey(Buffer.from(API_SECRET)), {
    timestamp: headers['X-API-TIMESTAMP'] ?? '',
    method: 'POST',
    target: '/v1/order/create',
    body: latin1,
  })
  const spoken = await say(post({ ...headers, 'X-API-SIGN': signature }, latin1))
  expectRefusal(spoken, 400, 'INVALID_PARAMETER')
  expect(spoken.json.message).toBe('body is not valid UTF-8')
})

test('a signed GET has no body, because its signature covers none', async () => {
  const target = `/v1/order/${ORDER_ID}`
  const headers = Object.entries(signedHeaders('GET', target, ''))
  const head = `GET ${target} HTTP/1.1\r\n${close}${headers.map((each) => `${each.join(': ')}\r\n`).join('')}`
  expect((await say(`${head}Content-Length: 0\r\n\r\n`)).status).toBe(200)
  expectRefusal(await say(`${head}Content-Length: 2\r\n\r\n{}`), 401, 'INVALID_SIGNATURE')
  const chunked = `${head}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`
  expectRefusal(await say(chunked), 401, 'INVALID_SIGNATURE')
})

test('credentials sent twice are malformed', async () => {
  const headers = signedHeaders('POST', '/v1/order/create', '{}')
  for (const name of ['X-API-KEY', 'X-API-SIGN', 'X-API-TIMESTAMP']) {
    const twice = post({ ...headers, [name.toLowerCase()]: headers[name] ?? '' }, '{}')
    expectRefusal(await say(twice), 401, 'UNAUTHORIZED')
  }
})

test('without credentials the answer does not wait for the body', async () => {
  expectRefusal(await say(post({ 'Content-Type': 'application/json' }, '', 10_000_000)), 401, 'UNAUTHORIZED')
})

test.each([
  ['a head', 'POST /v1/order/create HTTP/1.1\r\nX: '],
  ['a body', `POST /v1/nothing HTTP/1.1\r\n${close}Content-Length: 1000\r\n\r\n`],
])('%s that drips is not waited for', async (_, begun) => {
  const brief = await startHttp({ limits: { requestMsMax: 100 } })
  const client = connect(Number.parseInt(new URL(brief.base).port, 10), '127.0.0.1')
  client.on('error', () => {})
  client.write(begun)
  const drip = setInterval(() => client.write('x'), 50)
  const cut = once(client, 'close')
  expect(String(await once(client, 'data'))).toMatch(
    /^HTTP\/1\.1 408 Request Timeout\r\n[\s\S]*REQUEST_TIMEOUT/,
  )
  clearInterval(drip)
  await cut
  await brief.close()
})

test.each([
  ['answers', '/openapi.json', ''],
  ['answers before a tunnel', '/openapi.json', 'CONNECT elsewhere.example:443 HTTP/1.1\r\n\r\n'],
  ['files', '/docs/static/swagger-ui-bundle.js', ''],
])('whoever takes nothing of the %s they ask for loses the connection', async (_, target, last) => {
  const brief = await startHttp({ limits: { unreadMsMax: 100 } })
  const cut = once(brief.app.server, 'connection').then(([socket]) => once(socket, 'close'))
  const client = connect(Number.parseInt(new URL(brief.base).port, 10), '127.0.0.1')
  client.on('error', () => {})
  // More than what lies between the two takes by itself.
  client.write(`${`GET ${target} HTTP/1.1\r\nHost: x\r\n\r\n`.repeat(200)}${last}`)
  await cut
  client.destroy()
  await brief.close()
})

test.each(['Transfer-Encoding: chunked', 'Content-Length: 10000000'])(
  'whoever is refused and may go on sending for ever is hung up on: %s',
  async (framing) => {
    const answer = await http.talk(
      `POST /v1/order/create HTTP/1.1\r\nHost: x\r\n${framing}\r\n\r\n2\r\n{}\r\n`,
    )
    expect(answer).toMatch(/^HTTP\/1\.1 401 /)
    expect(answer).toMatch(/^Connection: close\r?$/m)
  },
)

test('a body that says it is too long is refused before it is read, a chunked one when it is', async () => {
  const headers = signedHeaders('POST', '/v1/order/create', '{}')
  expectRefusal(await say(post(headers, '', 10_000_000)), 413, 'PAYLOAD_TOO_LARGE')
  const { 'Content-Type': type = '', ...rest } = headers
  const lines = Object.entries({ ...rest, 'Content-Type': type }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  )
  const chunk = 'x'.repeat(30_000)
  const chunked = `POST /v1/order/create HTTP/1.1\r\n${close}${lines.join('')}Transfer-Encoding: chunked\r\n\r\n${chunk.length.toString(16)}\r\n${chunk}\r\n0\r\n\r\n`
  expectRefusal(await say(chunked), 413, 'PAYLOAD_TOO_LARGE')
})

test('HEAD works wherever GET does, and has no body', async () => {
  const text = await http.talk(`HEAD /v1/order/${ORDER_ID}/qr HTTP/1.1\r\n${close}\r\n`)
  expect(text).toMatch(/^HTTP\/1.1 200 OK\r\n/)
  expect(text.endsWith('\r\n\r\n')).toBe(true)
  const refused = await http.talk(`HEAD /v1/order/create HTTP/1.1\r\n${close}\r\n`)
  expect(refused).toMatch(/^HTTP\/1.1 40[15] /)
})
