import jsqr from 'jsqr'
import { PNG } from 'pngjs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { DeskRejection } from '../../engine/desks/desk.ts'
import { openApiDocument } from '../document.ts'
import { problems } from '../errors.ts'
import { ADDRESS, fakeDesk, ORDER_ID, rateView, usdtView } from '../testing/fake_desk.ts'
import { type Harness, startHttp } from '../testing/harness.ts'

let http: Harness
beforeAll(async () => {
  http = await startHttp()
})
afterAll(() => http.close())

const rate = '/v1/rate?from=BTC&to=USDT&to_network=ERC20'

test('a rate goes out digit for digit and the defaults are float and from', async () => {
  const answer = await http.request('GET', `${rate}&amount=0.1`)
  expect(answer.status).toBe(200)
  expect(answer.text).toContain('"from_amount":0.1,')
  expect(answer.json).toMatchObject({ success: true, data: { rate: 64500.25, rate_type: 'float' } })
  expect(answer.json.data).not.toHaveProperty('expires_at')
  expect(http.desk.asked.at(-1)?.args).toEqual([
    {
      from: 'BTC',
      to: 'USDT',
      fromNetwork: null,
      toNetwork: 'ERC20',
      amount: '0.1',
      rateType: 'float',
      direction: 'from',
    },
  ])
  expect(answer.headers.get('access-control-allow-origin')).toBe('*')
  expect(answer.headers.get('ratelimit-policy')).toBe('"minute";q=1000000;w=60, "burst";q=1000000;w=1')
  expect(answer.headers.get('ratelimit')).toMatch(/^"minute";r=\d+;t=\d+$/)
})

test('a fixed rate tells when it lapses and its id', async () => {
  const market = { ...rateView.market, rate_type: 'fixed' as const }
  const value = { ...rateView, market, expires_at: 1_790_000_900_000, rate_id: 'rl_1' }
  const fixed = await startHttp({ desk: fakeDesk({ rate: async () => ({ ok: true, value }) }) })
  const { json } = await fixed.request('GET', `${rate}&amount=0.1&rate_type=fixed&direction=to`)
  expect(json.data).toMatchObject({ expires_at: '2026-09-21T14:28:20.000Z', rate_id: 'rl_1' })
  await fixed.close()
})

test('a float rate asked again and again is answered from memory as long as its market stands, a fixed one never', async () => {
  const ASKED = 40
  let isCurrent = true
  const ofType = (rate_type: 'fixed' | 'float') => ({
    ...rateView,
    market: { ...rateView.market, rate_type },
  })
  const desk = fakeDesk({
    rate: ({ rateType }) => ({ ok: true, value: ofType(rateType) }),
    isCurrent: () => isCurrent,
  })
  const own = await startHttp({ desk })
  const askAll = async (target: string) => {
    const before = desk.asked.filter(({ call }) => call === 'rate').length
    const answers = []
    for (let count = 0; count < ASKED; count += 1) answers.push(await own.request('GET', target))
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1)
    const ids = new Set(answers.map(({ headers }) => headers.get('x-request-id')))
    const left = new Set(answers.map(({ headers }) => headers.get('ratelimit')))
    expect([ids.size, left.size], 'each has its id, and spends').toEqual([ASKED, ASKED])
    return desk.asked.filter(({ call }) => call === 'rate').length - before
  }
  expect(await askAll(`${rate}&amount=0.1`)).toBeLessThan(ASKED / 2)
  expect(await askAll(`${rate}&amount=0.1`)).toBe(0)
  expect(await askAll(`${rate}&amount=0.1&rate_type=fixed`)).toBe(ASKED)
  expect(await askAll(`${rate}&amount=0.1&from_network=${'B'.repeat(20)}&x=${'y'.repeat(200)}`)).toBe(0)
  isCurrent = false
  expect(await askAll(`${rate}&amount=0.1`)).toBe(ASKED)
  await expect.poll(() => own.logText().match(/"msg":"request"/g)?.length).toBe(5 * ASKED)
  await own.close()
})

test.each(['a&', '%ff&'])('of thousands of unknown parameters (%s) fifty are told', async (unknown) => {
  const many = await http.request('GET', `/v1/rate?${unknown.repeat(3_000)}`)
  expect([many.status, many.json.details.length]).toEqual([400, 50])
  expect(many.bytes.length).toBeLessThan(10_000)
})

test('every problem of a query is told at once, by name', async () => {
  const { status, json } = await http.request(
    'GET',
    '/v1/rate?from=&amount=1e5&rate_type=x&color=red&amount=2',
  )
  expect(status).toBe(400)
  expect(json.error_code).toBe('INVALID_PARAMETER')
  expect(json.details.map(({ field }: { field: string }) => field)).toEqual([
    'from',
    'amount',
    'rate_type',
    'color',
    'amount',
    'to',
  ])
  expect(json.message).toContain('rate_type must be fixed or float')
  expect(json.message).toContain('amount is given more than once')
  expect(json.message).not.toMatch(/[\\^$]/)
})

test.each([
  ['amount=0', 'must be greater than zero'],
  ['amount=-1', 'must be a plain decimal number'],
  ['amount=%2B1', 'must be a plain decimal number'],
  ['amount=9007199254740993', 'must have at most 15 significant digits'],
  ['amount=1%00', 'must be a plain decimal number'],
  ['amount=%ff', 'is not valid percent-encoded UTF-8'],
  ['amount=%zz', 'is not valid percent-encoded UTF-8'],
  ['amount', 'must be a plain decimal number'],
  ['amount=1&__proto__=1', 'is not a known parameter'],
  ['amount=1&constructor=1', 'is not a known parameter'],
  ['amount=1&amount[]=1', 'is not a known parameter'],
  ['amount=1&from=ETH', 'is given more than once'],
  [`amount=1&${'x'.repeat(3000)}=1`, 'is not a known parameter'],
])('%s is a 400', async (query, message) => {
  const { status, json } = await http.request('GET', `${rate}&${query}`)
  expect([status, json.error_code]).toEqual([400, 'INVALID_PARAMETER'])
  expect(json.message).toContain(message)
  expect(json.message.length).toBeLessThan(300)
})

const rateCodes = ['INVALID_PAIR', 'NETWORK_MISMATCH', 'RATE_UNAVAILABLE', 'MAINTENANCE'] as const
test.each(rateCodes)('the desk refuses a rate with %s', async (code: DeskRejection['code']) => {
  const desk = fakeDesk({ rate: async () => ({ ok: false, rejection: { code, message: 'no' } }) })
  const refusing = await startHttp({ desk })
  const answer = await refusing.request('GET', `${rate}&amount=1`)
  expect(answer.status).toBe(problems[code].status)
  expect(answer.json).toEqual({ error: true, error_code: code, message: 'no' })
  expect(answer.headers.has('retry-after')).toBe(answer.status === 503)
  const exposed = answer.headers.get('access-control-expose-headers')?.split(', ')
  expect(exposed, 'a page of another origin reads them').toEqual(['Retry-After', 'X-Request-Id'])
  await refusing.close()
})

test('AMOUNT_OUT_OF_RANGE tells the limits, exactly', async () => {
  const rejection = {
    code: 'AMOUNT_OUT_OF_RANGE',
    message: 'too little',
    min_amount: '0.00020000',
    max_amount: '10',
    currency: 'BTC',
  } as const
  const refusing = await startHttp({ desk: fakeDesk({ rate: async () => ({ ok: false, rejection }) }) })
  const { status, text } = await refusing.request('GET', `${rate}&amount=0.0001`)
  expect(status).toBe(400)
  expect(text).toContain('"min_amount":0.00020000,"max_amount":10,"currency":"BTC"')
  await refusing.close()
})

test('currencies may be cached for 5 minutes, have absolute logos and an ETag that gives 304', async () => {
  const answer = await http.request('GET', '/v1/currencies')
  expect(answer.headers.get('cache-control')).toBe('public, max-age=300')
  expect(answer.json.data.USDT).toEqual({
    ...usdtView,
    logo: `${http.base}/logos/USDT.svg`,
    min_amount: 10,
    max_amount: 500000,
  })
  const etag = answer.headers.get('etag') ?? ''
  for (const match of [etag, `W/${etag}`, `"x", ${etag}`, '*']) {
    const again = await http.request('GET', '/v1/currencies', { headers: { 'If-None-Match': match } })
    expect([again.status, again.text, again.headers.get('etag')]).toEqual([304, '', etag])
  }
  const any = await http.request('GET', '/v1/currencies', { headers: { 'If-None-Match': '*' } })
  expect(any.status).toBe(304)
  const other = await http.request('GET', '/v1/currencies', { headers: { 'If-None-Match': '"other"' } })
  expect(other.status).toBe(200)
  expect((await http.request('GET', '/v1/currencies?a=1')).status).toBe(400)
})

test('logos are served and nothing else from that folder', async () => {
  const logo = await http.request('GET', '/logos/BTC.svg')
  expect([logo.status, logo.headers.get('content-type')]).toEqual([200, 'image/svg+xml; charset=utf-8'])
  expect(logo.text).toMatch(/^<svg/)
  for (const name of ['NOPE.svg', 'btc.svg', '..%2f..%2fpackage.json', '%2e%2e', 'BTC.png', '$PAC.svg']) {
    const { status, json } = await http.request('GET', `/logos/${name}`)
    expect([name, status, json.error_code]).toEqual([name, 404, 'NOT_FOUND'])
  }
})

function decoded(png: Buffer): string | undefined {
  const { data, width, height } = PNG.sync.read(png)
  return jsqr.default(new Uint8ClampedArray(data), width, height)?.data
}

test('a QR is a PNG of 256 pixels with the amount unless told otherwise', async () => {
  const png = await http.request('GET', `/v1/order/${ORDER_ID}/qr`)
  expect(png.headers.get('content-type')).toBe('image/png')
  expect(png.headers.get('cache-control'), 'a browser may keep it, whoever is between may not').toBe(
    'private, max-age=300',
  )
  expect(PNG.sync.read(png.bytes)).toMatchObject({ width: 256, height: 256 })
  expect(decoded(png.bytes)).toBe(`bitcoin:${ADDRESS}?amount=0.1`)
  const bare = await http.request('GET', `/v1/order/${ORDER_ID}/qr?size=64&include_amount=false`)
  expect(PNG.sync.read(bare.bytes).width).toBe(64)
  expect(decoded((await http.request('GET', `/v1/order/${ORDER_ID}/qr?include_amount=false`)).bytes)).toBe(
    ADDRESS,
  )
  const standard = await http.request('GET', `/v1/order/${ORDER_ID}/qr?style=standard&size=1024`)
  expect(decoded(standard.bytes)).toBe(`bitcoin:${ADDRESS}?amount=0.1&message=standard`)
  const svg = await http.request('GET', `/v1/order/${ORDER_ID}/qr?format=svg`)
  expect(svg.headers.get('content-type')).toBe('image/svg+xml')
  const base64 = await http.request('GET', `/v1/order/${ORDER_ID}/qr?format=base64`)
  expect(base64.json.data.format).toBe('png')
  const [, image = ''] = /^data:image\/png;base64,(.+)$/.exec(base64.json.data.qr_code) ?? []
  expect(decoded(Buffer.from(image, 'base64'))).toBe(`bitcoin:${ADDRESS}?amount=0.1`)
})

test.each([
  'size=63',
  'size=1025',
  'size=256.5',
  'size=-1',
  'size=1e2',
  'size=',
  'format=gif',
  'format=PNG',
  'include_amount=yes',
  'style=fancy',
])('a QR with %s is a 400', async (query) => {
  const { status, json } = await http.request('GET', `/v1/order/${ORDER_ID}/qr?${query}`)
  expect([status, json.error_code, json.details[0].field]).toEqual([
    400,
    'INVALID_PARAMETER',
    query.split('=')[0],
  ])
})

test('a QR of no order is a 404, and impossible ids are not even looked for', async () => {
  const none = await startHttp({ desk: fakeDesk({ findPayment: async () => null }) })
  for (const id of [ORDER_ID, '77160542', 'CB48210933771605421', '..%2f..', 'x'.repeat(150)]) {
    const { status, json } = await none.request('GET', `/v1/order/${id}/qr`)
    expect([id, status, json.error_code]).toEqual([id, 404, 'ORDER_NOT_FOUND'])
  }
  expect(none.desk.asked.map(({ args }) => args)).toEqual([[ORDER_ID]])
  await none.close()
})

test('the reference is a page of our own files, and the document is OpenAPI 3.1', async () => {
  const page = await http.request('GET', '/docs')
  expect(page.status).toBe(200)
  expect(page.text.match(/(?:src|href)="[^"]+"/g)?.every((link) => /="\/docs\//.test(link))).toBe(true)
  expect(page.headers.get('content-security-policy')).toContain("default-src 'none'")
  const script = await http.request('GET', '/docs/static/swagger-initializer.js')
  expect([script.status, script.text.includes('"validatorUrl":null')]).toEqual([200, true])
  const { json } = await http.request('GET', '/openapi.json')
  expect(json.openapi).toBe('3.1.0')
  const paths = Object.keys(json.paths).sort()
  // What is the owner's, in a browser, and what clients sign.
  expect(paths.filter((path) => !path.startsWith('/account'))).toEqual([
    '/v1/account/webhooks/deliveries',
    '/v1/account/webhooks/deliveries/{delivery_id}/redeliver',
    '/v1/account/webhooks/endpoints',
    '/v1/account/webhooks/endpoints/{endpoint_id}',
    '/v1/account/webhooks/redeliver',
    '/v1/currencies',
    '/v1/order/create',
    '/v1/order/{order_id}',
    '/v1/order/{order_id}/emergency',
    '/v1/order/{order_id}/events',
    '/v1/order/{order_id}/qr',
    '/v1/orders',
    '/v1/rate',
  ])
  expect(Object.keys(json.components.securitySchemes)).toEqual([
    'apiKey',
    'apiSign',
    'apiTimestamp',
    'session',
    'orderToken',
    'orderTokenQuery',
  ])
})

test('the document made without a server is the one that is served', async () => {
  const { text } = await http.request('GET', '/openapi.json')
  expect(JSON.stringify(await openApiDocument({ withSandbox: false }))).toBe(text)
  const withSandbox = JSON.stringify(await openApiDocument({ withSandbox: true }))
  expect(withSandbox).toContain('"/sandbox/orders/{order_id}/pay"')
})

test('a list in a query stands between commas, and the document says so where generators of clients look', async () => {
  const { paths } = (await openApiDocument({ withSandbox: false })) as {
    readonly paths: Readonly<Record<string, { get?: { parameters?: readonly Described[] } }>>
  }
  const lists = Object.entries(paths).flatMap(([path, { get }]) =>
    (get?.parameters ?? []).flatMap(({ name, style, explode, schema }) =>
      schema.type === 'array' ? [[path, name, style, explode, 'explode' in schema]] : [],
    ),
  )
  expect(lists).toEqual(
    ['/v1/orders', '/account/orders', '/account/orders.csv'].map((path) => [
      path,
      'status',
      'form',
      false,
      false,
    ]),
  )
})

type Described = { name: string; style?: string; explode?: boolean; schema: { type: string } }
