import { connect } from 'node:net'
import { beforeAll, expect, test } from 'vitest'
import { createOrder, quickPair } from '../harness/orders.ts'
import { useTestSandbox } from '../harness/test_sandbox.ts'
import { openWire, type Wire } from '../harness/wire.ts'

/**
 * What: whatever is sent, the answer is a clear 4xx in the interface's envelope, never a 5xx, nothing happens, and the
 * service goes on.
 * How: bytes on a raw socket, signed where the interface wants a signature, so that the body is really looked at.
 */
const given = useTestSandbox()
let wire: Wire
let destination: string

beforeAll(async () => {
  wire = await openWire(given())
  destination = await given().remote.freshAddress('BEP20')
})

type Told = { readonly status: number; readonly headers: string; readonly body: Record<string, unknown> }

/** The first answer on the socket, whose body must be JSON in our envelope. */
function parse(text: string): Told {
  const end = text.indexOf('\r\n\r\n')
  const headers = text.slice(0, end)
  const [, status = ''] = /^HTTP\/1\.1 (\d{3}) /.exec(headers) ?? []
  const length = Number(/^content-length: (\d+)$/im.exec(headers)?.[1] ?? '0')
  const body = Buffer.from(text.slice(end + 4))
    .subarray(0, length)
    .toString()
  expect(headers, text).toMatch(/^content-type: application\/json/im)
  return { status: Number(status), headers, body: JSON.parse(body) as Told['body'] }
}

function expectRefused(text: string, status: number | readonly number[], code: string | RegExp): Told {
  const told = parse(text)
  expect([status].flat(), text).toContain(told.status)
  expect(told.body).toMatchObject({ error: true, message: expect.any(String) })
  expect(told.body.error_code).toMatch(code)
  expect(JSON.stringify(told.body)).not.toMatch(/node_modules|at \w+ \(|\.ts:|SELECT|\\d|\[A-Z/)
  return told
}

function signedBytes(target: string, body: Buffer | string, more: readonly string[] = []): Buffer {
  const bytes = Buffer.from(body)
  const headers = Object.entries(wire.headersFor('POST', target, bytes)).map(
    ([name, value]) => `${name}: ${value}`,
  )
  const lines = [
    `POST ${target} HTTP/1.1`,
    'Host: x',
    'Connection: close',
    `Content-Length: ${bytes.length}`,
    ...headers.filter((line) => !more.some((each) => each.split(':')[0] === line.split(':')[0])),
    ...more,
  ]
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`), bytes])
}

function post(body: Buffer | string, more: readonly string[] = []): Promise<string> {
  return wire.talk(signedBytes('/v1/order/create', body, more))
}

function get(target: string, more: readonly string[] = []): Promise<string> {
  return wire.talk(
    Buffer.from(
      [`GET ${target} HTTP/1.1`, 'Host: x', 'Connection: close', ...more, '', ''].join('\r\n'),
      'latin1',
    ),
  )
}

/** A create that is right but for `more`, which goes in as it is. */
function body(more: string, amount = '100'): string {
  const fields = { ...quickPair, rate_type: 'float', destination }
  return `${JSON.stringify(fields).slice(0, -1)},"amount":${amount}${more}}`
}

test('the body these tests start from is a good one', async () => {
  const told = parse(await post(body('')))
  expect([told.status, told.body.success]).toEqual([200, true])
  given().addSecret((told.body.data as { token: string }).token)
})

const bodies: readonly (readonly [string, () => Buffer | string])[] = [
  ['a name twice', () => body(',"amount":5')],
  ['a name twice, once escaped', () => body(',"\\u0061mount":5')],
  ['__proto__', () => body(',"__proto__":{"admin":true}')],
  ['__proto__, escaped', () => body(',"\\u005f_proto__":{}')],
  ['constructor', () => body(',"constructor":{"prototype":{}}')],
  ['an unknown field', () => body(',"fee":0')],
  ['2^53 + 1', () => body('', '9007199254740993')],
  ['1e400', () => body('', '1e400')],
  ['1e-400', () => body('', '1e-400')],
  ['minus zero', () => body('', '-0')],
  ['a number of ten thousand digits', () => body('', '9'.repeat(10_000))],
  ['a fraction of ten thousand digits', () => body('', `0.${'0'.repeat(10_000)}1`)],
  ['NaN', () => body('', 'NaN')],
  ['Infinity', () => body('', 'Infinity')],
  ['a hexadecimal number', () => body('', '0x10')],
  ['a leading zero', () => body('', '010')],
  ['a leading plus', () => body('', '+10')],
  ['a bare point', () => body('', '10.')],
  ['an amount in an array', () => body('', '[100]')],
  ['an amount in an object', () => body('', '{"valueOf":100}')],
  ['nesting of five thousand arrays', () => body(`,"callback_url":${'['.repeat(5_000)}${']'.repeat(5_000)}`)],
  ['nesting of two thousand objects', () => `${'{"a":'.repeat(2_000)}1${'}'.repeat(2_000)}`],
  [
    'bad UTF-8',
    () =>
      Buffer.concat([
        Buffer.from(body('').slice(0, -1)),
        Buffer.from(',"destination_tag":"'),
        Buffer.from([0xc3, 0x28, 0xff]),
        Buffer.from('"}'),
      ]),
  ],
  [
    'overlong UTF-8',
    () => Buffer.concat([Buffer.from('{"from":"'), Buffer.from([0xc0, 0xaf]), Buffer.from('"}')]),
  ],
  ['a byte order mark', () => Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from(body(''))])],
  ['UTF-16', () => Buffer.from(body(''), 'utf16le')],
  ['a lone surrogate', () => body(',"destination_tag":"\\ud800"')],
  ['a NUL in a text', () => body(',"destination_tag":"a\\u0000b"')],
  ['a line break in a text', () => body(',"destination_tag":"a\nb"')],
  ['a trailing comma', () => body(',')],
  ['a comment', () => body('/* more */')],
  ['single quotes', () => body('').replaceAll('"', "'")],
  ['half a body', () => body('').slice(0, -20)],
  ['two values', () => `${body('')}{}`],
  ['nothing', () => ''],
  ['white space', () => '  \n'],
  ['null', () => 'null'],
  ['an array', () => `[${body('')}]`],
  ['a text', () => '"order"'],
  ['a number', () => '42'],
  ['a NUL byte', () => '\0'],
  ['XML', () => '<order/>'],
  ['a form', () => 'from=BTC&to=USDT'],
]

test.each(bodies)('INVALID_PARAMETER: a body with %s', async (_what, make) => {
  const before = await countOrders()
  expectRefused(await post(make()), 400, 'INVALID_PARAMETER')
  expect(await countOrders()).toBe(before)
})

async function countOrders(): Promise<number> {
  return (await given().rows<{ count: number }>('SELECT count(*) AS count FROM orders'))[0]?.count ?? -1
}

test('nothing of a request gets into the prototype of objects', () => {
  expect(({} as Record<string, unknown>).admin).toBeUndefined()
})

const types: readonly (readonly [string, readonly string[], number, string])[] = [
  ['text/plain', ['Content-Type: text/plain'], 415, 'UNSUPPORTED_MEDIA_TYPE'],
  ['no type', ['Content-Type:'], 415, 'UNSUPPORTED_MEDIA_TYPE'],
  ['nonsense for a type', ['Content-Type: ;;;'], 415, 'UNSUPPORTED_MEDIA_TYPE'],
  ['another charset', ['Content-Type: application/json; charset=utf-16'], 415, 'UNSUPPORTED_MEDIA_TYPE'],
  ['compression', ['Content-Encoding: gzip'], 415, 'UNSUPPORTED_MEDIA_TYPE'],
  ['two timestamps', ['X-API-TIMESTAMP: 1700000000', 'X-API-TIMESTAMP: 1700000001'], 401, 'UNAUTHORIZED'],
  ['two signatures', [`X-API-SIGN: ${'0'.repeat(64)}`, `X-API-SIGN: ${'1'.repeat(64)}`], 401, 'UNAUTHORIZED'],
  ['two API keys', ['X-API-KEY: ck_a', 'X-API-KEY: ck_b'], 401, 'UNAUTHORIZED'],
  ['two Idempotency-Keys', ['Idempotency-Key: a', 'Idempotency-Key: b'], 400, 'INVALID_PARAMETER'],
  ['an Idempotency-Key with a quote', ["Idempotency-Key: a'b"], 400, 'INVALID_PARAMETER'],
]

test.each(types)('headers: %s', async (_what, more, status, code) => {
  expectRefused(await post(body(''), more), status, code)
})

test('PAYLOAD_TOO_LARGE, whether the length is told or not', async () => {
  expectRefused(await post('x'.repeat(16_385)), 413, 'PAYLOAD_TOO_LARGE')
  const head = signedBytes('/v1/order/create', '')
    .toString()
    .replace('Content-Length: 0', 'Transfer-Encoding: chunked')
  const chunk = `4000\r\n${'x'.repeat(0x4000)}\r\n`
  expectRefused(await wire.talk(`${head}${chunk.repeat(4)}0\r\n\r\n`), 413, 'PAYLOAD_TOO_LARGE')
  const claims = signedBytes('/v1/order/create', '')
    .toString()
    .replace('Content-Length: 0', 'Content-Length: 999999999999')
  expectRefused(await wire.talk(claims), 413, 'PAYLOAD_TOO_LARGE')
})

const RATE = '/v1/rate?from=BTC&to=USDT&to_network=ERC20'
const targets: readonly (readonly [string, string, number | readonly number[], string | RegExp])[] = [
  ['a parameter twice', `${RATE}&amount=1&amount=2`, 400, 'INVALID_PARAMETER'],
  ['a parameter twice, once escaped', `${RATE}&amount=1&%61mount=2`, 400, 'INVALID_PARAMETER'],
  ['a parameter as an array', `${RATE}&amount[]=1`, 400, 'INVALID_PARAMETER'],
  ['__proto__ as a parameter', `${RATE}&amount=1&__proto__=1`, 400, 'INVALID_PARAMETER'],
  ['constructor as a parameter', `${RATE}&amount=1&constructor=1`, 400, 'INVALID_PARAMETER'],
  ['an unknown parameter', `${RATE}&amount=1&utm_source=x`, 400, 'INVALID_PARAMETER'],
  ['bad percent-encoding', `${RATE}&amount=%zz`, 400, 'INVALID_PARAMETER'],
  ['bad UTF-8 in the query', `${RATE}&amount=%ff`, 400, 'INVALID_PARAMETER'],
  ['a NUL in the query', `${RATE}&amount=1%00`, 400, 'INVALID_PARAMETER'],
  ['a line break in the query', `${RATE}&amount=1%0d%0aX-Evil:%201`, 400, 'INVALID_PARAMETER'],
  ['an exponent', `${RATE}&amount=1e3`, 400, 'INVALID_PARAMETER'],
  ['full-width digits', `${RATE}&amount=%EF%BC%91`, 400, 'INVALID_PARAMETER'],
  ['a sign', `${RATE}&amount=%2B1`, 400, 'INVALID_PARAMETER'],
  ['2^53 + 1', `${RATE}&amount=9007199254740993`, 400, 'INVALID_PARAMETER'],
  ['an amount of eight thousand digits', `${RATE}&amount=${'1'.repeat(8_000)}`, 400, 'INVALID_PARAMETER'],
  ['a parameter on a path without any', '/v1/currencies?x=1', 400, 'INVALID_PARAMETER'],
  [
    'a URL of sixty thousand characters',
    `${RATE}&amount=${'1'.repeat(60_000)}`,
    [400, 414, 431],
    /^INVALID_PARAMETER$/,
  ],
  ['dot segments', '/v1/../v1/rate', 404, 'NOT_FOUND'],
  ['dot segments, escaped', '/v1/%2e%2e/v1/rate', 404, 'NOT_FOUND'],
  ['a path out of the logos', '/logos/..%2f..%2fpackage.json', 404, 'NOT_FOUND'],
  ['a path out of the logos, plain', '/logos/../../package.json', 404, 'NOT_FOUND'],
  ['a path out of the reference', '/docs/static/..%2f..%2f..%2fpackage.json', 404, 'NOT_FOUND'],
  [
    'an escaped slash in an order id',
    '/v1/order/CB0000000000000000%2fqr',
    [401, 404],
    /^(UNAUTHORIZED|ORDER_NOT_FOUND)$/,
  ],
  ['a doubled slash', '//v1/rate', 404, 'NOT_FOUND'],
  ['a slash at the end', '/v1/currencies/', 404, 'NOT_FOUND'],
  ['other letters', '/V1/rate', 404, 'NOT_FOUND'],
  ['a NUL in the path', '/v1/order/%00/qr', 404, 'ORDER_NOT_FOUND'],
  ['bad percent-encoding in the path', '/v1/order/%zz/qr', 400, 'INVALID_PARAMETER'],
  ['bad UTF-8 in the path', '/v1/order/%ff/qr', 400, 'INVALID_PARAMETER'],
  [
    'an order id of a thousand characters',
    `/v1/order/${'9'.repeat(1_000)}/qr`,
    [400, 404],
    /^(INVALID_PARAMETER|ORDER_NOT_FOUND)$/,
  ],
  ['SQL in an order id', "/v1/order/CB0'%20OR%20'1'='1/qr", 404, 'ORDER_NOT_FOUND'],
  ['a token with SQL', "/v1/order/12345678?token='%20OR%201=1--", 400, 'INVALID_PARAMETER'],
  ['a whole URL', 'http://elsewhere.example/v1/nothing', [400, 404], /^(INVALID_PARAMETER|NOT_FOUND)$/],
  ['raw bytes above ASCII', '/v1/\xff\xfe', [400, 404], /^(INVALID_PARAMETER|NOT_FOUND)$/],
]

test.each(targets)('a request target with %s', async (_what, target, status, code) => {
  expectRefused(await get(target), status, code)
})

const requests: readonly (readonly [string, string, number | readonly number[], RegExp])[] = [
  ['no HTTP', 'hello\r\n\r\n', 400, /^INVALID_PARAMETER$/],
  ['TLS', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n', 400, /^INVALID_PARAMETER$/],
  ['a space in the target', 'GET /v1/ rate HTTP/1.1\r\nHost: x\r\n\r\n', 400, /^INVALID_PARAMETER$/],
  ['an unknown method', 'BREW /v1/rate HTTP/1.1\r\nHost: x\r\n\r\n', 400, /^INVALID_PARAMETER$/],
  ['a method in small letters', 'get /v1/rate HTTP/1.1\r\nHost: x\r\n\r\n', 400, /^INVALID_PARAMETER$/],
  [
    'TRACE',
    'TRACE /v1/rate HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
    [404, 405],
    /^(NOT_FOUND|METHOD_NOT_ALLOWED)$/,
  ],
  ['CONNECT', 'CONNECT elsewhere.example:443 HTTP/1.1\r\nHost: x\r\n\r\n', 405, /^METHOD_NOT_ALLOWED$/],
  [
    'two lengths',
    'POST /v1/order/create HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab',
    400,
    /^INVALID_PARAMETER$/,
  ],
  [
    'length and chunks',
    'POST /v1/order/create HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    400,
    /^INVALID_PARAMETER$/,
  ],
  [
    'a negative length',
    'POST /v1/order/create HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n',
    400,
    /^INVALID_PARAMETER$/,
  ],
  [
    'a header of a hundred thousand bytes',
    `GET /v1/rate HTTP/1.1\r\nHost: x\r\nX-Long: ${'a'.repeat(100_000)}\r\n\r\n`,
    [400, 431],
    /^INVALID_PARAMETER$/,
  ],
  [
    'a NUL in a header',
    'GET /v1/rate HTTP/1.1\r\nHost: x\r\nX-Nul: a\0b\r\n\r\n',
    400,
    /^INVALID_PARAMETER$/,
  ],
  [
    'a folded header',
    'GET /v1/rate HTTP/1.1\r\nHost: x\r\nX-Fold: a\r\n b\r\n\r\n',
    400,
    /^INVALID_PARAMETER$/,
  ],
]

test.each(requests)('a request that is %s', async (_what, bytes, status, code) => {
  expectRefused(await wire.talk(Buffer.from(bytes, 'latin1')), status, code)
})

test('a second request behind the first on one connection is judged by itself', async () => {
  const text = await wire.talk(
    Buffer.from(
      'GET /v1/nothing HTTP/1.1\r\nHost: x\r\n\r\nGET /v1/currencies HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
    ),
  )
  expect([...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)).toEqual(['404', '200'])
})

test('what a client writes does not come back unescaped, and an answer is never a page', async () => {
  const told = expectRefused(
    await get(`${RATE}&amount=1&%3Cscript%3Ealert(1)%3C/script%3E=1`),
    400,
    'INVALID_PARAMETER',
  )
  expect(told.headers).toMatch(/^x-content-type-options: nosniff$/im)
})

test('clients that hang up in the middle of things harm nobody', async () => {
  const { port } = new URL(given().baseUrl)
  const half = signedBytes('/v1/order/create', body('')).subarray(0, 300)
  await Promise.all(
    Array.from(
      { length: 30 },
      (_, index) =>
        new Promise<void>((resolve, reject) => {
          const socket = connect(Number(port), '127.0.0.1', () => {
            socket.write(index % 2 === 0 ? half : 'GET /v1/currencies HTTP/1.1\r\n')
            socket.resetAndDestroy()
          })
          socket.on('close', () => resolve())
          socket.on('error', reject)
        }),
    ),
  )
  expect((await wire.request('GET', '/healthz')).status).toBe(200)
})

test('after all of this nothing was a 5xx, nothing was logged as an error, and the service does its work', async () => {
  const metrics = (await wire.request('GET', '/metrics')).text
  const counts = [
    ...metrics.matchAll(/cambist_http_request_duration_seconds_count\{[^}]*status="(\d)\d\d"[^}]*\} (\d+)/g),
  ]
  expect(counts.length).toBeGreaterThan(3)
  expect(counts.filter(([, family]) => family === '5')).toEqual([])
  expect(given().logLines(50)).toEqual([])
  const order = await createOrder(given(), quickPair)
  expect((await wire.client.getOrder(order.order_id)).status).toBe('NEW')
})
