import { afterAll, beforeAll, expect, test } from 'vitest'
import { ORDER_ID } from '../testing/fake_desk.ts'
import { type Harness, startHttp } from '../testing/harness.ts'
import type { SandboxRoutes } from './sandbox_port.ts'

const asked: unknown[] = []
function remember<Value>(value: Value) {
  return async (...args: readonly unknown[]) => {
    asked.push(args)
    return { ok: true as const, value }
  }
}

const sandbox: SandboxRoutes = {
  pay: remember({ tx_hash: 'ab' }),
  mine: remember({}),
  reorg: remember({}),
  replace: remember({ tx_hash: 'cd' }),
  prices: remember({}),
  clock: remember({ now: 1_790_000_000_000 }),
  address: remember({ address: 'bc1q' }),
  balance: remember({ balance: '0.10' }),
  mail: remember({
    mails: [
      {
        id: 2,
        message_id: '<m@x>',
        to: 'a@b.c',
        from: 'd@e.f',
        subject: '<b>s</b>',
        text: 't',
        html: '<p>h</p>',
        sent_at: 1_790_000_000_000,
      },
      {
        id: 1,
        message_id: '<l@x>',
        to: 'a@b.c',
        from: 'd@e.f',
        subject: 's',
        text: 'u',
        html: null,
        sent_at: 1_780_000_000_000,
      },
    ],
  }),
}

let http: Harness
beforeAll(async () => {
  http = await startHttp({ parts: { sandbox } })
})
afterAll(() => http.close())

function post(target: string, body: string) {
  return http.request('POST', target, { body, headers: { 'Content-Type': 'application/json' } })
}

test.each([
  [`/sandbox/orders/${ORDER_ID}/pay`, '{"amount":0.05}', [ORDER_ID, '0.05'], { tx_hash: 'ab' }],
  [`/sandbox/orders/${ORDER_ID}/pay`, '{}', [ORDER_ID, null], { tx_hash: 'ab' }],
  [`/sandbox/orders/${ORDER_ID}/pay`, '', [ORDER_ID, null], { tx_hash: 'ab' }],
  ['/sandbox/mine', '{"network":"BTC","blocks":3}', ['BTC', 3], {}],
  ['/sandbox/reorg', '{"network":"BTC","depth":2}', ['BTC', 2], {}],
  ['/sandbox/replace', '{"tx_hash":"ab"}', ['ab', null], { tx_hash: 'cd' }],
  ['/sandbox/prices', '{"code":"BTC","usd":65000.5}', [{ code: 'BTC', usd: '65000.5' }], {}],
  ['/sandbox/prices', '{"code":"BTC","change_percent":-5}', [{ code: 'BTC', changePercent: '-5' }], {}],
  ['/sandbox/clock', '{"advance_seconds":900}', [900], { now: '2026-09-21T14:13:20.000Z' }],
])('POST %s %s', async (target, body, args, data) => {
  const { status, json } = await post(target, body)
  expect([status, json]).toEqual([200, { success: true, data }])
  expect(asked.at(-1)).toEqual(args)
})

test('GET address, balance and mail', async () => {
  expect((await http.request('GET', '/sandbox/address/ERC20')).json.data).toEqual({ address: 'bc1q' })
  const balance = await http.request('GET', '/sandbox/balance/ERC20/0xabc?currency=USDT')
  expect(balance.text).toBe('{"success":true,"data":{"balance":0.10}}')
  expect(asked.at(-1)).toEqual(['ERC20', '0xabc', 'USDT'])
  expect((await http.request('GET', '/sandbox/mail')).json.data.mails).toHaveLength(2)
})

test.each([
  ['/sandbox/mine', '{"network":"BTC"}'],
  ['/sandbox/mine', '{"network":"BTC","blocks":0}'],
  ['/sandbox/mine', '{"network":"BTC","blocks":1.5}'],
  ['/sandbox/prices', '{"code":"BTC"}'],
  ['/sandbox/prices', '{"code":"BTC","usd":1,"change_percent":1}'],
  ['/sandbox/clock', '{"advance_seconds":-1}'],
  ['/sandbox/clock', '{"advance_seconds":1,"x":1}'],
])('POST %s %s is a 400', async (target, body) => {
  const { status, json } = await post(target, body)
  expect([status, json.error_code]).toEqual([400, 'INVALID_PARAMETER'])
})

test('a form cannot be posted from a page', async () => {
  const answer = await http.request('POST', '/sandbox/mine', {
    body: '{}',
    headers: { 'Content-Type': 'text/plain' },
  })
  expect(answer.status).toBe(415)
})

test('without a sandbox there are no such paths, and the document does not name them', async () => {
  const production = await startHttp()
  expect((await production.request('GET', '/sandbox/mail')).json.error_code).toBe('NOT_FOUND')
  expect(Object.keys((await production.request('GET', '/openapi.json')).json.paths).join()).not.toContain(
    'sandbox',
  )
  await production.close()
})

test('the mailbox is a page, and each mail one that can do nothing', async () => {
  const get = (path: string) => http.request('GET', `/sandbox/mailbox${path}`)
  const list = await get('')
  expect(list.text).toContain('&lt;b&gt;s&lt;/b&gt;')
  expect(list.text).toContain('href="/sandbox/mailbox/2"')
  expect(list.headers.get('content-security-policy')).toContain("default-src 'none'")
  const mail = await get('/2')
  expect([mail.text, mail.headers.get('content-type')]).toEqual(['<p>h</p>', 'text/html; charset=utf-8'])
  expect(mail.headers.get('content-security-policy')).toMatch(/default-src 'none'.*sandbox/)
  // It holds the link that signs in.
  expect(mail.headers.get('cache-control')).toBe('no-store')
  expect(mail.headers.get('referrer-policy')).toBe('no-referrer')
  for (const path of ['/2/text', '/1']) {
    expect((await get(path)).headers.get('content-type')).toBe('text/plain; charset=utf-8')
  }
  expect((await get('/3')).json.error_code).toBe('NOT_FOUND')
})
