import { createSecretKey, hash } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ApiKey } from '../../accounts/api_key.ts'
import { systemClock } from '../../clock.ts'
import type { DeskRejection, OrderView } from '../../engine/desks/desk.ts'
import { problems } from '../errors.ts'
import { fakeDesk, ORDER_ID, ORDER_TOKEN, orderView } from '../testing/fake_desk.ts'
import { fullKey, type Harness, signedHeaders, startHttp } from '../testing/harness.ts'

const readOnly: ApiKey = { ...fullKey, keyId: 'ck_read', scopes: ['read'] }
const elsewhere: ApiKey = { ...fullKey, keyId: 'ck_away', ipAllow: ['192.0.2.0/24'] }
const here: ApiKey = { ...fullKey, keyId: 'ck_here', ipAllow: ['127.0.0.0/8'] }
const rotating: ApiKey = {
  ...fullKey,
  keyId: 'ck_two',
  secrets: ['old', 'new'].map((text) => createSecretKey(Buffer.from(text))),
}
const unopened: ApiKey = { ...fullKey, keyId: 'ck_lost', unopened: new Error('the key is lost') }

let http: Harness
beforeAll(async () => {
  http = await startHttp({ keys: [fullKey, readOnly, elsewhere, here, rotating, unopened] })
})
afterAll(() => http.close())

const wanted = {
  from: 'BTC',
  from_network: 'BTC',
  to: 'USDT',
  to_network: 'ERC20',
  amount: 0.1,
  rate_type: 'float',
  destination: '0x52908400098527886E0F7030069857D2E4169EE7',
}
const body = JSON.stringify(wanted)
const create = '/v1/order/create'
const order = `/v1/order/${ORDER_ID}`
const emergency = `${order}/emergency`

test('create answers with the create fields and the url of the QR', async () => {
  const { status, json, headers } = await http.signed('POST', create, body)
  expect(status).toBe(200)
  expect(json.data).toMatchObject({
    token: ORDER_TOKEN,
    short_id: '77160542',
    qr_code_url: `${http.base}${order}/qr`,
    created_at: '2026-09-21T14:13:20.000Z',
    deposit_amount: 0.1,
  })
  for (const field of ['updated_at', 'deposit_received', 'deposit_tx_hash', 'completed_at']) {
    expect(json.data).not.toHaveProperty(field)
  }
  expect(headers.get('cache-control')).toBe('no-store')
  expect(headers.has('access-control-allow-origin')).toBe(false)
  expect(headers.has('idempotent-replayed')).toBe(false)
})

test('a number reaches the desk as it was written', async () => {
  await http.signed('POST', create, body.replace('0.1', '0.10000'))
  expect(http.desk.asked.at(-1)?.args[1]).toMatchObject({ amount: '0.10000' })
})

test.each([
  ['9007199254740993', 'must have at most 15 significant digits'],
  ['1e400', 'must be a plain decimal number'],
  ['1e1', 'must be a plain decimal number'],
  ['-1', 'must be a plain decimal number'],
  ['0', 'must be greater than zero'],
  ['"0.1"', 'must be a JSON number, not a string'],
  ['null', 'must be a JSON number, not null'],
  ['[1]', 'must be a JSON number, not an array'],
  ['{}', 'must be a JSON number, not an object'],
  ['true', 'must be a JSON number, not a boolean'],
])('the amount %s is refused', async (amount, message) => {
  const { status, json } = await http.signed('POST', create, body.replace('0.1', amount))
  expect([status, json.error_code]).toEqual([400, 'INVALID_PARAMETER'])
  expect(json.details).toEqual([{ field: 'amount', message: expect.stringContaining(message) }])
})

test('optional fields may be null, and everything wrong is told at once', async () => {
  const given = { ...wanted, destination_tag: null, refund_address: null, callback_url: null, rate_id: null }
  expect((await http.signed('POST', create, JSON.stringify(given))).status).toBe(200)
  const wrong = {
    ...given,
    to: 5,
    destination: '',
    callback_url: 'http://x.example/',
    color: 'red',
    rate_id: '',
  }
  const { json } = await http.signed('POST', `${create}?x=1`, JSON.stringify(wrong), {
    headers: { 'Idempotency-Key': 'not ok' },
  })
  const fields = json.details.map(({ field }: { field: string }) => field)
  expect(fields).toEqual(['Idempotency-Key', 'x', 'to', 'destination', 'callback_url', 'rate_id', 'color'])
})

test('an empty tag is none', async () => {
  const given = { ...wanted, destination_tag: '' }
  expect((await http.signed('POST', create, JSON.stringify(given))).status).toBe(200)
  expect(http.desk.asked.at(-1)?.args[1]).toMatchObject({ destinationTag: null })
})

test('a tag of whatever text goes to the judgement of its network', async () => {
  for (const destination_tag of ['a\tb', 'note\r\n', '\u007f']) {
    const given = { ...wanted, destination_tag }
    expect((await http.signed('POST', create, JSON.stringify(given))).status).toBe(200)
    expect(http.desk.asked.at(-1)?.args[1]).toMatchObject({ destinationTag: destination_tag })
  }
})

test.each([
  'ftp://x.example',
  'javascript:alert(1)',
  'https://user:pw@x.example/',
  '//x.example',
  'https://',
  'x',
  '',
  'http://localhost/',
  'https://x.example/#a',
  'https://x.example/\u0000',
  'https:x.example',
  'https:/x.example',
  'https:\\\\x.example\\a',
  'https://x.example/a|b',
  'https://x.example/?a=[1]',
  'https://x.example/%zz',
  `https://x.example/${'a'.repeat(2048)}`,
])('callback_url %j is refused', async (callback_url) => {
  const { status, json } = await http.signed('POST', create, JSON.stringify({ ...wanted, callback_url }))
  expect([status, json.details[0].field]).toEqual([400, 'callback_url'])
})

test('lengths are bounded: address 200, tag 256', async () => {
  const long = {
    destination: 'a'.repeat(201),
    refund_address: 'a'.repeat(201),
    destination_tag: '🦊'.repeat(257),
  }
  const { json } = await http.signed('POST', create, JSON.stringify({ ...wanted, ...long }))
  expect(json.details).toHaveLength(3)
  const fits = {
    destination: 'a'.repeat(200),
    refund_address: 'a'.repeat(200),
    destination_tag: '🦊'.repeat(256),
  }
  expect((await http.signed('POST', create, JSON.stringify({ ...wanted, ...fits }))).status).toBe(200)
  const unkept = { ...wanted, destination_tag: 'a\u0000b' }
  expect((await http.signed('POST', create, JSON.stringify(unkept))).status).toBe(400)
})

test('whatever stands in place of an address is judged as one, by its network', async () => {
  const odd = { destination: ' 0xz\u00fcrich', refund_address: '\u{1f98a}'.repeat(200) }
  const { status } = await http.signed('POST', create, JSON.stringify({ ...wanted, ...odd }))
  expect(status).toBe(200)
  const [, request] = http.desk.asked.at(-1)?.args ?? []
  expect(request).toMatchObject({ destination: odd.destination, refundAddress: odd.refund_address })
})

test.each(['[]', '1', '"x"', 'null', '{"from":"BTC","from":"BTC"}', '{"__proto__":{}}', '{', '', '{}x'])(
  'the body %s is a 400 that says what is wrong with it',
  async (text) => {
    const headers = { 'Content-Type': 'application/json' }
    const { status, json } = await http.signed('POST', create, text, { headers })
    expect([status, json.error_code, json.details[0].field]).toEqual([400, 'INVALID_PARAMETER', 'body'])
  },
)

test.each([
  ['text/plain', {}],
  ['application/x-www-form-urlencoded', {}],
  ['application/json; charset=latin1', {}],
  ['application/jsonx', {}],
  ['nonsense', {}],
  ['application/json', { 'Content-Encoding': 'gzip' }],
])('a body of type %s %j is a 415', async (type, more) => {
  const headers = { 'Content-Type': type, ...more }
  const { status, json } = await http.signed('POST', create, body, { headers })
  expect([status, json.error_code]).toEqual([415, 'UNSUPPORTED_MEDIA_TYPE'])
})

test('a body over the limit is a 413', async () => {
  const { status, json } = await http.signed('POST', create, `${body}${' '.repeat(20_000)}`)
  expect([status, json.error_code]).toEqual([413, 'PAYLOAD_TOO_LARGE'])
})

test('a retry is told by its key or its signature, and a replay says so', async () => {
  const headers = { 'Idempotency-Key': 'abc_DEF-1' }
  await http.signed('POST', create, body, { headers })
  const keyed = http.desk.asked.at(-1)?.args[2] as { slot: string; bodyHash: string }
  expect(keyed.slot).toBe('key:abc_DEF-1')
  expect(keyed.bodyHash).toMatch(/^[0-9a-f]{64}$/)
  await http.signed('POST', create, `${body} `, { headers })
  expect(http.desk.asked.at(-1)?.args[2]).not.toEqual(keyed)
  const signed = signedHeaders('POST', create, body)
  await http.request('POST', create, { headers: signed, body })
  // Not the signature itself: what is stored is also shown to the operator.
  const slot = `sign:${hash('sha256', signed['X-API-SIGN'] ?? '')}`
  expect(http.desk.asked.at(-1)?.args[2]).toMatchObject({ slot })

  const value = { order: orderView, token: ORDER_TOKEN, isReplay: true }
  const replaying = await startHttp({ desk: fakeDesk({ createOrder: async () => ({ ok: true, value }) }) })
  const again = await replaying.signed('POST', create, body)
  expect([again.status, again.headers.get('idempotent-replayed')]).toEqual([200, 'true'])
  expect(again.json.data).not.toHaveProperty('isReplay')
  await replaying.close()
})

test('get shows the get fields, with every block an order may have', async () => {
  const busy: OrderView = {
    ...orderView,
    status: 'EMERGENCY',
    deposit_tag: 'the-tag',
    deposit_account: 'the-account',
    deposit_tolerance: '0.0005',
    is_deposit_late: true,
    emergency: {
      reasons: ['UNDERPAID'],
      are_options_known: true,
      options: {
        continue: { receive_amount: '3000.5', rate: '64500.25' },
        recalculate: null,
        refund: {
          refund_amount: '0.049',
          network_fee: '0.001',
          currency: 'BTC',
          network: 'BTC',
          has_refund_address: false,
        },
      },
    },
    refund: {
      address: 'a',
      amount: '0.049',
      currency: 'BTC',
      network: 'BTC',
      network_fee: '0.001',
      tx_hash: null,
    },
    completed_at: 1_790_000_000_000,
  }
  const full = await startHttp({ desk: fakeDesk({ findOrder: async () => busy }) })
  const { json } = await full.signed('GET', order)
  expect(json.data).toEqual({
    ...JSON.parse(JSON.stringify(busy), (key, value) =>
      // For mails and pages: a client is told by the action.
      ['are_options_known', 'deposit_tolerance', 'is_deposit_late'].includes(key)
        ? undefined
        : /^\d+(\.\d+)?$/.test(value)
          ? JSON.parse(value)
          : value,
    ),
    short_id: '77160542',
    created_at: '2026-09-21T14:13:20.000Z',
    updated_at: '2026-09-21T14:13:20.000Z',
    expires_at: '2026-09-21T14:28:20.000Z',
    completed_at: '2026-09-21T14:13:20.000Z',
  })
  await full.close()
})

test('text of every script arrives as it is, and whole', async () => {
  const destination_tag = 'Zürich “7” \u{1f98a} 東京'
  const odd = await startHttp({
    desk: fakeDesk({ findOrder: async () => ({ ...orderView, destination_tag }) }),
  })
  const { json, bytes, headers } = await odd.signed('GET', order)
  expect(json.data.destination_tag).toBe(destination_tag)
  expect(Number(headers.get('content-length'))).toBe(bytes.length)
  await odd.close()
})

test('orders are listed as asked, and the cursor leads to where the page ended', async () => {
  const next = { createdAtMs: 1_790_000_000_000, orderId: ORDER_ID }
  const listing = await startHttp({
    desk: fakeDesk({ listOrders: async () => ({ orders: [orderView], next }) }),
  })
  const { json, headers } = await listing.signed('GET', '/v1/orders')
  expect(headers.get('cache-control')).toBe('no-store')
  expect(json.data.orders).toEqual([(await listing.signed('GET', order)).json.data])
  expect(listing.desk.asked[0]?.args).toEqual([
    'account-1',
    { statuses: null, createdFromMs: null, createdBeforeMs: null, updatedFromMs: null },
    { after: null, limit: 50 },
  ])
  const query =
    'status=NEW,DONE&created_after=2026-01-31T12:00:00Z&updated_after=2026-01-31T13:00:00.5%2B01:00&limit=7'
  await listing.signed('GET', `/v1/orders?${query}&cursor=${json.data.next_cursor}`)
  expect(listing.desk.asked.at(-1)?.args.slice(1)).toEqual([
    {
      statuses: ['NEW', 'DONE'],
      createdFromMs: Date.UTC(2026, 0, 31, 12),
      createdBeforeMs: null,
      updatedFromMs: Date.UTC(2026, 0, 31, 12) + 500,
    },
    { after: next, limit: 7 },
  ])
  await listing.close()
})

test.each([
  ['status=new', 'status'],
  ['status=', 'status'],
  ['status=NEW,NEW', 'status'],
  ['status=NEW,', 'status'],
  ['limit=0', 'limit'],
  ['limit=101', 'limit'],
  ['created_after=2026-02-30T12:00:00Z', 'created_after'],
  ['created_after=2026-01-31T24:00:00Z', 'created_after'],
  ['created_before=2026-01-31', 'created_before'],
  ['updated_after=2026-01-31T12:00:00+01:00', 'updated_after'],
  ['cursor=', 'cursor'],
  ['cursor=MTc5MDAwMDAwMDAwMC5DQjE', 'cursor'],
  ['cursor=MTc5MDAwMDAwMDAwMC5DQjQ4MjEwOTMzNzcxNjA1NDI=', 'cursor'],
  ['account_id=acc_other', 'account_id'],
])('a list with %s is refused', async (query, field) => {
  const { status, json } = await http.signed('GET', `/v1/orders?${query}`)
  expect([status, json.error_code, json.details?.[0].field]).toEqual([400, 'INVALID_PARAMETER', field])
})

test('a + that a query left as it was is told of as such', async () => {
  const ask = async (text: string) => {
    const { json } = await http.signed('GET', `/v1/orders?created_after=${text}`)
    return json.details[0].message
  }
  expect(await ask('2026-01-31T12:00:00+01:00')).toBe(
    'has a space where its offset has a +, which a query spells %2B',
  )
  const form = 'must be a time such as 2026-01-31T12:00:00Z or 2026-01-31T13:00:00+01:00'
  expect(await ask('2026-01-31+12:00:00Z')).toBe(form)
  expect(await ask('2026-02-30T12:00:00+01:00')).toBe(form)
})

test('whoever has the token reads the order without a key, by short or full id', async () => {
  const short = '/v1/order/77160542'
  const byHeader = await http.request('GET', short, { headers: { 'X-ORDER-TOKEN': ORDER_TOKEN } })
  expect(byHeader.status).toBe(200)
  expect(http.desk.asked.at(-1)?.args).toEqual(['77160542', { kind: 'token', token: ORDER_TOKEN }])
  expect(byHeader.json.data.callback_url, 'which may hold a secret of the shop').toBeNull()
  expect(byHeader.headers.get('access-control-allow-origin')).toBe('*')
  const byKey = await http.signed('GET', order)
  expect(byKey.json.data.callback_url).toBe(orderView.callback_url)
  expect(byKey.headers.has('access-control-allow-origin'), 'what a key reads is for no page').toBe(false)
  expect((await http.request('GET', `${order}?token=${ORDER_TOKEN}`)).status).toBe(200)
  const both = await http.request('GET', `${short}?token=a`, { headers: { 'X-ORDER-TOKEN': 'b' } })
  expect([both.status, both.json.error_code]).toEqual([401, 'UNAUTHORIZED'])
  const mixed = await http.signed('GET', `${order}?token=a`)
  expect([mixed.status, mixed.json.error_code]).toEqual([401, 'UNAUTHORIZED'])
  for (const header of ['X-API-KEY', 'X-API-SIGN', 'X-API-TIMESTAMP']) {
    const headers = { 'X-ORDER-TOKEN': ORDER_TOKEN, [header]: '1' }
    expect((await http.request('GET', order, { headers })).status, header).toBe(401)
  }
  const twice = await http.request('GET', `${short}?token=a&token=b`)
  expect([twice.status, twice.json.error_code]).toEqual([400, 'INVALID_PARAMETER'])
  const withoutToken = await http.signed('GET', short)
  expect([withoutToken.status, withoutToken.json.error_code]).toEqual([404, 'ORDER_NOT_FOUND'])
})

test('no order, impossible ids and odd paths are a 404', async () => {
  const none = await startHttp({ desk: fakeDesk({ findOrder: async () => null }) })
  for (const id of [
    ORDER_ID,
    'CB1',
    'x',
    '..%2fcreate',
    '%2e%2e%2f',
    "'%20OR%201=1",
    encodeURIComponent('CB４８２１０９３３７７１６０５４２'),
  ]) {
    const { status, json } = await none.signed('GET', `/v1/order/${id}`)
    expect([id, status, json.error_code]).toEqual([id, 404, 'ORDER_NOT_FOUND'])
  }
  await none.close()
})

test('an action is taken and told', async () => {
  const { json } = await http.signed('POST', emergency, '{"action":"refund","refund_address":"bc1q"}')
  expect(json.data).toEqual({
    order_id: ORDER_ID,
    status: 'REFUND',
    message: 'the deposit is being returned',
    updated_at: '2026-09-21T14:15:00.000Z',
  })
  expect(http.desk.asked.at(-1)?.args.slice(0, 4)).toEqual([
    expect.objectContaining({
      accountId: 'account-1',
      by: { actor: 'key', address: '127.0.0.1', sessionId: null, keyId: fullKey.keyId },
    }),
    ORDER_ID,
    'refund',
    'bc1q',
  ])
  const unknown = await http.signed('POST', emergency, '{"action":"Refund"}')
  expect([unknown.status, unknown.json.error_code]).toEqual([400, 'INVALID_ACTION'])
  const missing = await http.signed('POST', emergency, '{}')
  expect([missing.status, missing.json.error_code]).toEqual([400, 'INVALID_PARAMETER'])
  const impossible = await http.signed('POST', '/v1/order/CB1/emergency', '{"action":"refund"}')
  expect([impossible.status, impossible.json.error_code]).toEqual([404, 'ORDER_NOT_FOUND'])
})

test('the same key and body for another order is another request', async () => {
  const retries: unknown[] = []
  for (const target of [emergency, emergency.replace(ORDER_ID, 'CB4821093377160543'), emergency]) {
    const headers = { 'Idempotency-Key': 'same' }
    await http.signed('POST', target, '{"action":"refund"}', { headers })
    retries.push(http.desk.asked.at(-1)?.args[4])
  }
  expect(retries[0]).toMatchObject({ slot: 'key:same' })
  expect(retries[1]).not.toEqual(retries[0])
  expect(retries[2]).toEqual(retries[0])
})

test('an action that was taken before says so', async () => {
  const message = 'the deposit is being returned'
  const taken = { order_id: ORDER_ID, status: 'REFUND', message, updated_at: 1_790_000_100_000 } as const
  const again = await startHttp({
    desk: fakeDesk({ chooseAction: async () => ({ ok: true, value: { ...taken, isReplay: true } }) }),
  })
  const answers = [http, again].map((each) => each.signed('POST', emergency, '{"action":"refund"}'))
  const told = (await Promise.all(answers)).map(({ headers }) => [
    headers.get('idempotent-replayed'),
    headers.get('cache-control'),
  ])
  expect(told).toEqual([
    [null, 'no-store'],
    ['true', 'no-store'],
  ])
  await again.close()
})

const createCodes: readonly DeskRejection['code'][] = [
  'INVALID_PAIR',
  'NETWORK_MISMATCH',
  'INVALID_ADDRESS',
  'DESTINATION_TAG_REQUIRED',
  'RATE_EXPIRED',
  'RATE_UNAVAILABLE',
  'MAINTENANCE',
  'IDEMPOTENCY_CONFLICT',
  'INVALID_PARAMETER',
]
const actionCodes: readonly DeskRejection['code'][] = [
  'REFUND_ADDRESS_REQUIRED',
  'ORDER_NOT_FOUND',
  'NOT_EMERGENCY',
  'INVALID_ACTION',
  'IDEMPOTENCY_CONFLICT',
]
test.each([
  ...createCodes.map((code) => [create, body, code] as const),
  ...actionCodes.map((code) => [emergency, '{"action":"refund"}', code] as const),
])('%s with %s is refused by the desk with %s', async (target, text, code) => {
  const refusal = async () => ({ ok: false as const, rejection: { code, message: 'no' } })
  const refusing = await startHttp({ desk: fakeDesk({ createOrder: refusal, chooseAction: refusal }) })
  const { status, json } = await refusing.signed('POST', target, text)
  expect([status, json.error_code]).toEqual([problems[code].status, code])
  await refusing.close()
})

test.each([
  [undefined, '60'],
  [3, '3'],
])(
  'MAINTENANCE asks to wait a minute, unless the desk knows better: %s s',
  async (retryAfterSeconds, told) => {
    const rejection = {
      code: 'MAINTENANCE',
      message: 'no',
      ...(retryAfterSeconds && { retryAfterSeconds }),
    } as const
    const refusing = await startHttp({
      desk: fakeDesk({ createOrder: async () => ({ ok: false, rejection }) }),
    })
    const { headers, json } = await refusing.signed('POST', create, body)
    await refusing.close()
    expect(headers.get('retry-after')).toBe(told)
    expect(json).toMatchObject({ error_code: 'MAINTENANCE', message: 'no' })
    expect(json).not.toHaveProperty('retryAfterSeconds')
  },
)

test.each(['X-API-KEY', 'X-API-SIGN', 'X-API-TIMESTAMP'])(
  'without %s a request is UNAUTHORIZED',
  async (header) => {
    for (const [method, target, text] of [
      ['GET', order, ''],
      ['GET', '/v1/orders', ''],
      ['POST', create, body],
    ] as const) {
      for (const value of [undefined, '', 'a b', 'x'.repeat(65), 'A'.repeat(64), '1e9']) {
        if (value === 'A'.repeat(64) && header === 'X-API-KEY') continue // a possible key
        if (value === '1e9' && header === 'X-API-KEY') continue
        const { [header]: _, ...others } = signedHeaders(method, target, text)
        const headers = { ...others, ...(value !== undefined && { [header]: value }) } as Record<
          string,
          string
        >
        const answer = await http.request(method, target, { headers, ...(text !== '' && { body: text }) })
        expect([answer.status, answer.json.error_code, answer.json.details[0].field]).toEqual([
          401,
          'UNAUTHORIZED',
          header,
        ])
      }
    }
  },
)

test('an unknown key and a wrong signature get the same words', async () => {
  const unknown = await http.signed('GET', order, undefined, { key: 'ck_nobody' })
  const wrong = await http.signed('GET', order, undefined, { secret: 'wrong' })
  expect([unknown.status, unknown.json.error_code]).toEqual([401, 'INVALID_SIGNATURE'])
  expect(wrong.text).toBe(unknown.text)
})

test('the signature covers method, target, timestamp and body, as sent', async () => {
  const headers = signedHeaders('GET', order, '')
  const cases = [
    http.request('GET', `${order}?`, { headers }),
    http.request('GET', order.replace('CB', '%43B'), { headers }),
    http.request('GET', order, { headers: { ...headers, 'X-API-TIMESTAMP': '1790000000' } }),
    http.request('POST', create, { headers: signedHeaders('POST', create, body), body: `${body} ` }),
  ]
  for (const { status, json } of await Promise.all(cases)) {
    expect([status, json.error_code]).toEqual([401, 'INVALID_SIGNATURE'])
  }
})

test('a timestamp off by more than 300 s gets our time', async () => {
  const nowSeconds = 1_790_000_000
  const still = await startHttp({
    parts: { clock: { ...systemClock(), wallMs: () => nowSeconds * 1000 + 999 } },
  })
  const ask = (offset: number) =>
    still.signed('GET', order, undefined, { timestamp: String(nowSeconds + offset) })
  for (const offset of [-301, 301]) {
    const { status, json } = await ask(offset)
    expect([status, json.error_code, json.server_time]).toEqual([401, 'TIMESTAMP_EXPIRED', nowSeconds])
  }
  for (const offset of [-300, 300]) expect((await ask(offset)).status).toBe(200)
  await still.close()
})

test('scope and address list are FORBIDDEN, and both secrets of a rotating key work', async () => {
  expect((await http.signed('GET', order, undefined, { key: 'ck_read' })).status).toBe(200)
  const scope = await http.signed('POST', create, body, { key: 'ck_read' })
  const away = await http.signed('GET', order, undefined, { key: 'ck_away' })
  expect([scope, away].map(({ status, json }) => [status, json.error_code])).toEqual([
    [403, 'FORBIDDEN'],
    [403, 'FORBIDDEN'],
  ])
  expect((await http.signed('GET', order, undefined, { key: 'ck_here' })).status).toBe(200)
  for (const secret of ['old', 'new']) {
    expect((await http.signed('GET', order, undefined, { key: 'ck_two', secret })).status).toBe(200)
  }
})

test('authentication comes before the body: nonsense with a wrong signature is a 401', async () => {
  const { status } = await http.signed('POST', create, '{"a":', { secret: 'wrong' })
  expect(status).toBe(401)
})

test('a key is used by who can sign with it, and not by who knows its id', async () => {
  const used: string[] = []
  const apiKeys = { find: async () => fullKey, noteUse: ({ keyId }: ApiKey) => used.push(keyId) }
  const noting = await startHttp({ parts: { apiKeys } })
  expect((await noting.signed('GET', order, undefined, { secret: 'wrong' })).status).toBe(401)
  const old = await noting.signed('GET', order, undefined, {
    timestamp: String(Math.floor(Date.now() / 1000) - 400),
  })
  expect(old.status).toBe(401)
  expect(used).toEqual([])
  expect((await noting.signed('GET', order)).status).toBe(200)
  expect(used).toEqual([fullKey.keyId])
  await noting.close()
})

test('an address that makes up key ids is refused before they are looked up, and a known key goes on', async () => {
  const found: string[] = []
  const find = async (keyId: string) => {
    found.push(keyId)
    return keyId === fullKey.keyId ? fullKey : null
  }
  const nowMs = systemClock().wallMs()
  const clock = { ...systemClock(), wallMs: () => nowMs }
  const guessed = await startHttp({
    parts: { apiKeys: { find, noteUse: () => {} }, clock },
    limits: { unitsPerMinute: 100 },
  })
  const statusOf = async (key: string) => (await guessed.signed('GET', order, undefined, { key })).status
  expect(await statusOf(fullKey.keyId)).toBe(200)
  const statuses = await Promise.all(Array.from({ length: 300 }, (_, index) => statusOf(`ck_made${index}`)))
  expect(new Set(statuses)).toEqual(new Set([401, 429]))
  expect(statuses.filter((status) => status === 401)).toHaveLength(100)
  expect(found).toHaveLength(1 + 100)
  expect(await statusOf(fullKey.keyId)).toBe(200)
  const forged = await guessed.signed('GET', order, undefined, { secret: 'wrong' })
  const unknown = await guessed.signed('GET', order, undefined, { key: 'ck_made' })
  expect(forged.json.message).toContain('too many unknown credentials')
  expect([forged.status, forged.json], 'which keys there are shows to nobody').toEqual([429, unknown.json])
  await guessed.close()
})

test('whoever signs with a secret that we cannot open is not told that the signature is wrong', async () => {
  const other = await http.signed('GET', order, undefined, { key: 'ck_lost' })
  expect(other.status).toBe(200)
  const { status, json } = await http.signed('GET', order, undefined, { key: 'ck_lost', secret: 'sealed' })
  expect([status, json.error_code]).toEqual([500, 'INTERNAL_ERROR'])
  expect(http.logText()).toContain('the key is lost')
})

test('of hundreds of unknown fields fifty are told', async () => {
  const fields = Array.from({ length: 1_000 }, (_, index) => [`x${index}`, 1])
  const { status, json } = await http.signed('POST', create, JSON.stringify(Object.fromEntries(fields)))
  expect([status, json.details.length]).toEqual([400, 50])
})
