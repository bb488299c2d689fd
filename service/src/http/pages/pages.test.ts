import { createSecretKey } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { systemClock } from '../../clock.ts'
import type { Database } from '../../db/database.ts'
import { type EmergencyReason, emergencyReasons, orderStatuses } from '../../domain/orders/order.ts'
import { reasonWords } from '../../domain/orders/order_words.ts'
import type { OrderView } from '../../engine/desks/desk.ts'
import { type Unsubscription, unsubscribing } from '../../engine/notify/unsubscribe.ts'
import { fakeDesk, ORDER_ID, ORDER_TOKEN, orderView } from '../testing/fake_desk.ts'
import { type Harness, startHttp } from '../testing/harness.ts'
import { html } from './html.ts'

/**
 * What: the pages that mails lead to show and ask, act on a POST only, and say nothing to whoever has no link.
 * How: the real server over a fake desk; the tokens are real, what they switch off is noted.
 */
const done: Unsubscription[] = []
const doneBy: unknown[] = []
const noDatabase = {} as Database
const { tokenOf, read } = unsubscribing(noDatabase, createSecretKey(Buffer.alloc(32, 7)))

const emergency = {
  ...orderView,
  status: 'EMERGENCY',
  destination: '<img src=x onerror=alert(1)>',
  emergency: {
    reasons: ['UNDERPAID'],
    are_options_known: true,
    options: {
      continue: { receive_amount: '400.25', rate: '65000' },
      recalculate: null,
      refund: {
        refund_amount: '0.006',
        network_fee: '0.0001',
        currency: 'BTC',
        network: 'BTC',
        has_refund_address: false,
      },
    },
  },
} satisfies OrderView

/** More than one order has at once, and each of it another value. */
const settled: OrderView = {
  ...orderView,
  status: 'DONE',
  deposit_tag: 'deposit-tag',
  deposit_received: '0.09',
  deposit_confirmations: 2,
  deposit_tx_hash: 'deposit-hash',
  receive_final_amount: '5800.5',
  destination_tag: 'destination-tag',
  withdraw_tx_hash: 'payout-hash',
  updated_at: 1_790_000_950_000,
  completed_at: 1_790_001_000_000,
}

const refunded: OrderView = {
  ...settled,
  status: 'REFUNDED',
  withdraw_tx_hash: null,
  refund: {
    address: 'refund-address',
    amount: '0.08',
    currency: 'BTC',
    network: 'BTC',
    network_fee: '0.01',
    tx_hash: 'refund-hash',
  },
}

let shown: OrderView = emergency
/** Before the orders above expire, unless a test says so. */
const IN_TIME = orderView.expires_at - 1
let shownAtMs = IN_TIME
let http: Harness
beforeAll(async () => {
  const unsubscribe = async (each: Unsubscription, by: unknown) => {
    done.push(each)
    doneBy.push(by)
  }
  http = await startHttp({
    desk: fakeDesk({
      findOrder: async (_, viewer) =>
        viewer.kind === 'token' && viewer.token === ORDER_TOKEN ? shown : null,
    }),
    parts: {
      clock: { ...systemClock(), nowMs: () => shownAtMs },
      unsubscribing: { tokenOf, read, unsubscribe },
    },
  })
})
afterAll(() => http.close())

function expectSafe({ headers, text }: Awaited<ReturnType<Harness['request']>>): void {
  expect(headers.get('content-security-policy')).toMatch(
    /^default-src 'none'; style-src 'sha256-[\w+/=]+'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'$/,
  )
  expect(headers.get('referrer-policy')).toBe('no-referrer')
  expect(headers.get('x-content-type-options')).toBe('nosniff')
  expect(headers.get('x-frame-options')).toBe('DENY')
  expect(headers.get('x-robots-tag')).toBe('noindex')
  expect(headers.get('cache-control')).toBe('no-store')
  expect(text).not.toMatch(/<script|<img|<link|style="/)
}

describe('unsubscribing', () => {
  const link = (mailClass: 'all' | 'order_expired') =>
    `/unsubscribe?token=${tokenOf({ accountId: 'acc_00000001', mailClass })}`

  test('looking changes nothing, however often', async () => {
    for (const method of ['GET', 'GET']) {
      const page = await http.request(method, link('order_expired'))
      expect(page.status).toBe(200)
      expectSafe(page)
      expect(page.text).toContain('“Order expired”')
      expect(page.text).toContain(link('all').slice('/unsubscribe?token='.length))
    }
    expect(done).toEqual([])
  })

  test('the button acts, and so does one click as RFC 8058 has it', async () => {
    const form = { 'Content-Type': 'application/x-www-form-urlencoded' }
    const button = await http.request('POST', link('all'), { headers: form, body: '' })
    expect(button.status).toBe(200)
    expectSafe(button)
    const click = { headers: form, body: 'List-Unsubscribe=One-Click' }
    expect((await http.request('POST', link('order_expired'), click)).status).toBe(200)
    expect(done.splice(0)).toEqual([
      { accountId: 'acc_00000001', mailClass: 'all' },
      { accountId: 'acc_00000001', mailClass: 'order_expired' },
    ])
    const by = { address: '127.0.0.1', atMs: expect.any(Number) }
    expect(doneBy.splice(0)).toEqual([by, by])
  })

  test('a token that was not given opens nothing: cut, bent, of another account or class', async () => {
    const token = tokenOf({ accountId: 'acc_00000001', mailClass: 'order_expired' })
    const mac = token.slice(-43)
    const wrong = [
      '',
      token.slice(0, -1),
      `${token}x`,
      token.replace('00000001', '00000002'),
      token.replace('order_expired', 'all'),
      `acc_00000001.sign_in_link.${mac}`,
      `acc_00000001.order_expired.${mac.startsWith('A') ? 'B' : 'A'}${mac.slice(1)}`,
    ]
    for (const each of wrong) {
      for (const method of ['GET', 'POST']) {
        const page = await http.request(method, `/unsubscribe?token=${encodeURIComponent(each)}`)
        expect([page.status, each]).toEqual([404, each])
        expectSafe(page)
      }
    }
    expect((await http.request('GET', '/unsubscribe')).status).toBe(404)
    expect((await http.request('PUT', link('all'))).status).toBe(405)
    expect(done).toEqual([])
  })

  test('another key makes other tokens', () => {
    const other = unsubscribing(noDatabase, createSecretKey(Buffer.alloc(32, 8)))
    expect(other.read(tokenOf({ accountId: 'acc_00000001', mailClass: 'all' }))).toBeNull()
  })
})

type Visit = { readonly id?: string; readonly nowMs?: number }

async function pageOf(order: OrderView, { id = ORDER_ID, nowMs = IN_TIME }: Visit = {}) {
  shown = order
  shownAtMs = nowMs
  const page = await http.request('GET', `/order/${id}?token=${ORDER_TOKEN}`)
  shown = emergency
  shownAtMs = IN_TIME
  return page
}

async function rowsOf(order: OrderView, visit: Visit = {}) {
  const { text } = await pageOf(order, visit)
  const rows = text.matchAll(/<dt>(.*?)<\/dt><dd>(.*?)<\/dd>/g)
  return Array.from(rows, ([, name, value]) => [name, value])
}

describe('the page of an order', () => {
  /** What was asked for and what came of it, where nothing is asked for any more. */
  const deposited = [
    ['It asked for', '0.1 BTC on Bitcoin'],
    ['Deposit address', orderView.deposit_address],
    ['Its tag or memo', 'deposit-tag'],
    ['Received', '0.09 BTC'],
    ['Confirmations', '2 of 3'],
    ['Deposit', 'deposit-hash'],
  ]

  /** Where it would have been paid to, where no amount is promised. */
  const destination = [
    ['Destination', `${orderView.destination} for USDT on ERC20 (Ethereum)`],
    ['Its tag or memo', 'destination-tag'],
  ]

  test('shows what each choice pays and how to choose it, and nothing of it is markup', async () => {
    const page = await http.request('GET', `/order/${ORDER_ID}?token=${ORDER_TOKEN}`)
    expect(page.status).toBe(200)
    expectSafe(page)
    expect(page.text).toContain('&lt;img src=x')
    expect(page.text).toContain('id="continue"')
    expect(page.text).toContain('and pays 400.25 USDT on ERC20 (Ethereum).')
    expect(page.text).toContain(
      'Sends 0.006 BTC back on Bitcoin, to an address that you name as refund_address.',
    )
    expect(page.text).toContain('id="refund"')
    expect(page.text).toContain('{&quot;action&quot;:&quot;refund&quot;,&quot;refund_address&quot;')
    expect(page.text).not.toContain('id="recalculate"')
    expect(page.text).not.toContain('<form')
    expect(page.text).not.toContain('not known')
  })

  test('says of an order what the names of its rows say, by its full id and by its last 8 digits', async () => {
    for (const id of [ORDER_ID, orderView.short_id]) {
      expect(await rowsOf(settled, { id })).toEqual([
        ['Status', 'DONE: completed'],
        ...deposited,
        ['You receive', '5800.5 USDT on ERC20 (Ethereum)'],
        ['At', orderView.destination],
        ['Its tag or memo', 'destination-tag'],
        ['Payout', 'payout-hash'],
        ['Created', '2026-09-21 14:13:20 UTC'],
        ['Completed', '2026-09-21 14:30:00 UTC'],
      ])
    }
  })

  test('says of a refunded order what was sent back, and not what would have been received', async () => {
    expect(await rowsOf(refunded)).toEqual([
      ['Status', 'REFUNDED: refunded'],
      ...deposited,
      ...destination,
      ['Created', '2026-09-21 14:13:20 UTC'],
      ['Completed', '2026-09-21 14:30:00 UTC'],
      ['Refund', '0.08 BTC on Bitcoin to refund-address'],
      ['Refund sent', 'refund-hash'],
    ])
  })

  const stoppedBy = (...reasons: readonly EmergencyReason[]): OrderView => ({
    ...settled,
    status: 'EMERGENCY',
    withdraw_tx_hash: null,
    completed_at: null,
    emergency: { ...emergency.emergency, reasons },
  })

  const TIME_UP = orderView.expires_at
  const paid = (deposit_received: string): OrderView => ({ ...settled, status: 'PENDING', deposit_received })
  const asking = ['You send', 'Still to send', 'To', 'Pay before']
  const asked = (rows: readonly (readonly (string | undefined)[])[]) =>
    rows.filter(([name]) => asking.includes(name ?? ''))

  test('says what to send where and until when as long as that lets an order go on: all of it, or what is still missing', async () => {
    const place = [
      ['To', orderView.deposit_address],
      ['Pay before', '2026-09-21 14:28:20 UTC'],
    ]
    const unpaid: OrderView = { ...settled, status: 'NEW', deposit_received: '0' }
    expect(asked(await rowsOf(unpaid))).toEqual([['You send', '0.1 BTC on Bitcoin'], ...place])
    for (const order of [paid('0.09'), stoppedBy('UNDERPAID')]) {
      const rows = await rowsOf(order)
      expect(rows).toContainEqual(['It asked for', '0.1 BTC on Bitcoin'])
      expect(asked(rows), order.status).toEqual([['Still to send', '0.01 BTC on Bitcoin'], ...place])
      expect((await pageOf(order)).text).toContain('If you have sent the rest already, do not send it again')
    }
    const goesOn = `If the remaining 0.01 BTC on Bitcoin comes to ${orderView.deposit_address} with the tag or memo deposit-tag before 2026-09-21 14:28:20 UTC, the order goes on by itself.`
    expect((await pageOf(stoppedBy('UNDERPAID'))).text).toContain(`<p>${goesOn}</p>`)
    for (const order of [stoppedBy('UNDERPAID', 'NETWORK_PROBLEM'), stoppedBy('OVERPAID'), paid('0.09')]) {
      expect((await pageOf(order)).text, order.status).not.toContain('goes on by itself')
    }
  })

  test('asks for nothing where nothing more lets an order go on', async () => {
    const statuses = ['EXCHANGE', 'WITHDRAW', 'DONE', 'EXPIRED', 'REFUND', 'REFUNDED'] as const
    const over = [
      ...statuses.map((status) => ({ ...settled, status })),
      ...emergencyReasons.filter((reason) => reason !== 'UNDERPAID').map((reason) => stoppedBy(reason)),
      stoppedBy('UNDERPAID', 'LATE_DEPOSIT'),
      stoppedBy('UNDERPAID', 'NETWORK_PROBLEM'),
      { ...stoppedBy('UNDERPAID'), deposit_received: '0.1' },
      paid('0.1'),
      paid('0.11'),
      { ...paid('0.0999'), deposit_tolerance: '0.0001' },
    ] satisfies OrderView[]
    for (const order of over) {
      const rows = await rowsOf(order)
      expect(
        rows.map(([name]) => name),
        order.status,
      ).toContain('It asked for')
      expect(asked(rows), order.status).toEqual([])
    }
    for (const order of [paid('0.1'), stoppedBy('OVERPAID')]) {
      expect((await pageOf(order)).text).toContain('<p>Send nothing more to its deposit address.</p>')
    }
    expect((await pageOf(paid('0.11'))).text).toContain('More was seen than the order asks for')
    const notInTime = 'not all of it came in time: when the network has confirmed it, the order stops'
    expect((await pageOf({ ...paid('0.1'), is_deposit_late: true })).text).toContain(notInTime)
    expect((await pageOf(paid('0.1'))).text).not.toContain(notInTime)
  })

  test('asks for nothing once the time is up, although the order may still have been paid', async () => {
    const open = [orderView, paid('0.09'), stoppedBy('UNDERPAID')]
    for (const order of open) {
      const page = await pageOf(order, { nowMs: TIME_UP })
      expectSafe(page)
      expect(page.text, order.status).toContain(
        'The time to pay it ended at 2026-09-21 14:28:20 UTC: send nothing any more. What you have sent already is not lost.',
      )
      expect(page.text, order.status).not.toContain('goes on by itself')
      expect(asked(await rowsOf(order, { nowMs: TIME_UP })), order.status).toEqual([])
      expect((await pageOf(order)).text, order.status).not.toContain('The time to pay it ended')
    }
    expect(await rowsOf(orderView, { nowMs: TIME_UP })).toContainEqual([
      'Status',
      'NEW: looking whether it was paid in time',
    ])
  })

  test('says who has what came besides once deposits count no more', async () => {
    const besides =
      'Send nothing more to its deposit address. What came there besides is kept for its sender: ask the operator of this service, and name the order and the transaction.'
    const saying = []
    for (const status of orderStatuses) {
      if ((await pageOf({ ...settled, status })).text.includes(besides)) saying.push(status)
    }
    expect(saying).toEqual(['EXCHANGE', 'WITHDRAW', 'DONE', 'REFUND', 'REFUNDED'])
  })

  test('says of an order that is waited for what is received only when just what was asked has come', async () => {
    const receives = async (order: OrderView, nowMs = IN_TIME) =>
      (await rowsOf(order, { nowMs })).some(([name]) => name === 'You receive')
    expect(await receives(orderView)).toBe(true)
    expect(await receives(orderView, TIME_UP)).toBe(false)
    expect(await receives(paid('0.1'), TIME_UP)).toBe(true)
    expect(await receives({ ...paid('0.0999'), deposit_tolerance: '0.0001' })).toBe(true)
    expect(await receives(paid('0.0999'))).toBe(false)
    expect(await receives(paid('0.11'))).toBe(false)
    expect(await receives({ ...paid('0.1'), is_deposit_late: true }, TIME_UP)).toBe(false)
  })

  test('asks for no money once the order has expired, and says not to send any', async () => {
    const expired: OrderView = { ...orderView, status: 'EXPIRED', deposit_tag: 'deposit-tag' }
    const page = await pageOf(expired)
    expectSafe(page)
    expect(page.text).not.toContain(expired.deposit_address)
    expect(page.text).not.toContain('deposit-tag')
    expect(page.text).toContain(
      'The order has expired: the network has no payment to it from before 2026-09-21 14:28:20 UTC.',
    )
    expect(page.text).toContain('EXPIRED: expired without a payment in time')
    expect(page.text).toContain(
      'when it arrives, the order goes on or you are asked. For another currency or network ask the operator of this service.',
    )
    expect(page.text).toContain('Do not send anything to its deposit address any more; make a new order.')
    expect((await rowsOf(expired)).map(([name]) => name)).toEqual([
      'Status',
      'It asked for',
      'Received',
      'Confirmations',
      'Destination',
      'Created',
    ])
    expect((await pageOf(orderView)).text).not.toContain('Do not send anything')
  })

  test('says of an order that has stopped where it would be paid to, and the amount only with each action', async () => {
    const { text } = await pageOf(stoppedBy('UNDERPAID'))
    expect(text).not.toContain('You receive')
    expect(text).not.toContain(settled.receive_final_amount)
    expect(text).toContain('and pays 400.25 USDT on ERC20 (Ethereum).')
    expect(await rowsOf(stoppedBy('OVERPAID'))).toEqual([
      ['Status', 'EMERGENCY: stopped until somebody decides'],
      ...deposited,
      ...destination,
      ['Created', '2026-09-21 14:13:20 UTC'],
    ])
  })

  test('names the refund address that an order has, and that another may be named', async () => {
    const { options } = emergency.emergency
    const refund = { ...options.refund, has_refund_address: true }
    const { text } = await pageOf({
      ...emergency,
      refund_address: '<b>own</b>',
      emergency: { ...emergency.emergency, options: { ...options, refund } },
    })
    expect(text).toContain(
      'back on Bitcoin, to &lt;b&gt;own&lt;/b&gt;, or another that you name as refund_address.',
    )
    expect(text).toContain('{&quot;action&quot;:&quot;refund&quot;}')
  })

  test('names the network of the payout in every state', async () => {
    for (const status of orderStatuses) {
      const { text } = await pageOf({ ...settled, status })
      expect(text, status).toContain('USDT on ERC20 (Ethereum)')
    }
  })

  test('says why an order has stopped in words, and not in codes', async () => {
    for (const reason of emergencyReasons) {
      const { text } = await pageOf({
        ...emergency,
        emergency: { ...emergency.emergency, reasons: [reason] },
      })
      expect(text).toContain(`<p>The order has stopped. ${reasonWords[reason]}</p>`)
      expect(text).not.toContain(reason)
    }
  })

  test('shows account and tag beside an address that carries the tag, and beside no other', async () => {
    const says = async (account: string) => {
      shown = { ...settled, status: 'NEW', deposit_received: '0', deposit_account: account }
      const { text } = await http.request('GET', `/order/${ORDER_ID}?token=${ORDER_TOKEN}`)
      const rows = text.matchAll(/<dt>(.*?)<\/dt><dd>(.*?)<\/dd>/g)
      return Array.from(rows, ([, name, value]) => [name, value]).slice(2, -10)
    }
    expect(await says('rAccount')).toEqual([
      ['To', orderView.deposit_address],
      ['Or, where your wallet asks for account and tag, to', 'rAccount'],
      ['With the tag or memo', 'deposit-tag'],
    ])
    expect(await says(orderView.deposit_address)).toEqual([
      ['To', orderView.deposit_address],
      ['Tag or memo', 'deposit-tag'],
    ])
    shown = emergency
  })

  test('tells what is too little from what nobody knows at the moment', async () => {
    const { options } = emergency.emergency
    const nothing = { continue: null, recalculate: null, refund: null }
    const says = async (more: Partial<NonNullable<OrderView['emergency']>>) => {
      shown = { ...emergency, emergency: { ...emergency.emergency, ...more } }
      const { text } = await http.request('GET', `/order/${ORDER_ID}?token=${ORDER_TOKEN}`)
      return ['too little', 'not known', 'id="refund"'].filter((words) => text.includes(words))
    }
    expect(await says({ options: nothing })).toEqual(['too little'])
    expect(await says({ options: nothing, are_options_known: false })).toEqual(['not known'])
    expect(await says({ options, are_options_known: false })).toEqual(['not known', 'id="refund"'])
    shown = emergency
  })

  test('is there whatever a mail relay or an app has appended to its link', async () => {
    for (const appended of ['&utm_source=mail&utm_campaign=a%20b', '&fbclid=IwAR0_x-1', '&']) {
      const page = await http.request('GET', `/order/${ORDER_ID}?token=${ORDER_TOKEN}${appended}`)
      expect(page.status, appended).toBe(200)
    }
    const before = await http.request('GET', `/order/${ORDER_ID}?mc_eid=7&token=${ORDER_TOKEN}`)
    expect(before.status).toBe(200)
    const twice = await http.request('GET', `/order/${ORDER_ID}?token=${ORDER_TOKEN}&token=${ORDER_TOKEN}`)
    expect(twice.status).toBe(404)
  })

  test('is not there without its token, or with another', async () => {
    for (const query of ['', '?token=wrong', '?token=', '?token=a%20b']) {
      const page = await http.request('GET', `/order/${ORDER_ID}${query}`)
      expect(page.status).toBe(404)
      expectSafe(page)
      expect(page.text).not.toContain(emergency.deposit_address)
    }
    expect((await http.request('POST', `/order/${ORDER_ID}?token=${ORDER_TOKEN}`)).status).toBe(405)
  })
})

test('what is put into markup is text', () => {
  expect(html`<b title="${'"\'<&>'}">${[html`<i></i>`, html`x`]}</b>`.markup).toBe(
    '<b title="&quot;&#39;&lt;&amp;&gt;"><i></i>x</b>',
  )
})
