import { readdirSync } from 'node:fs'
import PostalMime from 'postal-mime'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { type Clock, systemClock } from '../../clock.ts'
import { defaultExplorers } from '../../domain/catalog/explorers.ts'
import { type NetworkId, networkChains } from '../../domain/catalog/networks.ts'
import {
  type MailContent,
  type OrderInMail,
  type OrderMailKind,
  orderMailKinds,
} from '../../domain/notifications/mail_content.ts'
import { emergencyReasons } from '../../domain/orders/order.ts'
import { SECOND_MS } from '../../domain/time.ts'
import type { Mail } from '../channel.ts'
import { type MailSettings, mailRenderer } from './render.ts'
import { smtpChannel } from './smtp.ts'
import { fillTemplate, parseTemplate } from './template.ts'
import { type MailServer, startMailServer } from './testing/mail_server.ts'

/**
 * What: every mail says what it has to, exactly and harmlessly, and a mail server's every mood becomes the right answer.
 * How: templates with plain and with hostile values; a real SMTP server on loopback that refuses, delays and hangs up.
 */
const settings: MailSettings = {
  sender: 'Cambist',
  fromAddress: 'orders@exchange.example.org',
  orderUrl: (orderId) => `https://x.example.org/order/${orderId}?token=tok-${orderId}`,
  unsubscribeUrl: (accountId, mailClass) =>
    `https://x.example.org/unsubscribe?token=${accountId}.${mailClass}.mac`,
  explorers: defaultExplorers,
  note: null,
}

const HASH = 'a'.repeat(64)

const order: OrderInMail = {
  order_id: 'CB4821093377160542',
  status: 'NEW',
  deposit_address: 'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4',
  deposit_tag: null,
  deposit_currency: 'BTC',
  deposit_network: 'BTC',
  deposit_amount: '0.01234567',
  deposit_received: '0',
  deposit_tx_hash: null,
  receive_currency: 'USDT',
  receive_network: 'TRC20',
  receive_amount: '812.5',
  receive_final_amount: '812.5',
  rate: '65812.25',
  rate_type: 'fixed',
  destination: 'TJRabPrwbZy45sbavfcjinPJC18kjpRTv8',
  destination_tag: null,
  refund_address: null,
  withdraw_tx_hash: null,
  created_at: Date.UTC(2026, 0, 2, 3, 4, 5),
  expires_at: Date.UTC(2026, 0, 2, 3, 19, 5),
  completed_at: null,
}

const emergency: NonNullable<OrderInMail['emergency']> = {
  reasons: ['UNDERPAID'],
  are_options_known: true,
  options: {
    continue: { receive_amount: '400.25' },
    recalculate: null,
    refund: { refund_amount: '0.006', currency: 'BTC', network: 'BTC', has_refund_address: false },
  },
}

const refund = { address: 'bc1qback', amount: '0.006', currency: 'BTC', network: 'BTC', tx_hash: HASH }

const mailsOfTheEnd = [
  ['order_completed', { status: 'DONE' }],
  ['order_expired', { status: 'EXPIRED' }],
  ['order_failed', { status: 'REFUNDED', refund }],
  ['order_failed', { status: 'EMERGENCY', emergency }],
  ['emergency_action_required', { status: 'EMERGENCY', emergency }],
] as const

const render = mailRenderer(settings)

/** Before the order above expires, unless a test says so. */
const IN_TIME = order.expires_at - 1

function mailOf(content: MailContent, nowMs = IN_TIME): Mail {
  const mail = { content, to: 'ada@example.org', accountId: 'acc_00000001', messageId: 'm'.repeat(32) }
  return render(mail, nowMs)
}

const orderMail = (kind: OrderMailKind, more: Partial<OrderInMail> = {}, nowMs = IN_TIME) =>
  mailOf({ kind, data: { order: { ...order, ...more } } }, nowMs)

const EVERY_MAIL: readonly MailContent[] = [
  ...orderMailKinds.map((kind) => ({ kind, data: { order } }) as const),
  {
    kind: 'webhook_exhausted',
    data: { order_id: order.order_id, url: 'https://a.example/hook', endpoint: null },
  },
  {
    kind: 'endpoint_disabled',
    data: { order_id: order.order_id, url: 'https://a.example/hook', endpoint: 'we_0123456789abcdef' },
  },
  { kind: 'sign_in_link', data: { link: 'https://x.example.org/in#abc', expires_at_ms: 0 } },
  { kind: 'email_change_old', data: { new_email: 'new@example.org' } },
  { kind: 'email_change_new', data: { link: 'https://x.example.org/c#abc', expires_at_ms: 0, ip: '::1' } },
  { kind: 'key_created', data: { key_id: 'ck_00000001', label: 'my bot', scopes: ['read'] } },
  {
    kind: 'security_notice',
    data: { what: 'A key was revoked.', details: [{ label: 'Key', value: 'ck_1' }] },
  },
]

describe('what mails say', () => {
  test('every kind of mail has both templates and nothing unfilled, and there is no other template', () => {
    for (const content of EVERY_MAIL) {
      const { subject, text, html } = mailOf(content)
      for (const part of [subject, text, html]) {
        expect(part).not.toMatch(/\{\{|\}\}|undefined|\[object|NaN/)
        expect(part.trim()).not.toBe('')
      }
      expect(text).not.toMatch(/<[a-z]/)
    }
    const files = readdirSync(new URL('./templates', import.meta.url)).sort()
    const expected = [...EVERY_MAIL.map(({ kind }) => kind), 'layout', 'order']
    expect(files).toEqual(expected.flatMap((name) => [`${name}.html`, `${name}.txt`]).sort())
  })

  test('nothing is loaded from anywhere and nothing runs', () => {
    for (const content of EVERY_MAIL) {
      expect(mailOf(content).html).not.toMatch(
        /<(img|script|link|iframe|form|object|video)|url\(|@import| on[a-z]+=/i,
      )
    }
  })

  test('order created tells where to pay how much until when', () => {
    const { subject, text, html } = orderMail('order_created', { deposit_tag: '4711' })
    expect(subject).toBe('Order CB4821093377160542: waiting for your deposit')
    for (const part of [text, html]) {
      expect(part).toContain('0.01234567 BTC')
      expect(part).toContain('bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4')
      expect(part).toContain('4711')
      expect(part).toContain('2026-01-02 03:19 UTC')
      expect(part).toContain('812.5 USDT (Tether USD) on TRC20 (TRON)')
      expect(part).toContain('https://mempool.space/address/bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4')
      expect(part).toContain('https://x.example.org/order/CB4821093377160542?token=tok-CB4821093377160542')
      expect(part).toContain('NEW')
    }
    expect(orderMail('order_created').text).not.toContain('tag')
  })

  test('order created says that who has paid already is not to pay again', () => {
    const { text, html } = orderMail('order_created')
    for (const part of [text, html]) {
      expect(part).toContain('If you have paid it already, do not pay again: its page shows what has come.')
    }
  })

  test('a mail asks for money by the name of its rows only where it is still to be sent', () => {
    const names = (kind: OrderMailKind, more: Partial<OrderInMail>) => {
      const { text, html } = orderMail(kind, more)
      return [text, html].map((part) => part.match(/You send|It asked for/g))
    }
    expect(names('order_created', {})).toEqual([['You send'], ['You send']])
    const later = [
      ['payment_received', { status: 'PENDING', deposit_received: order.deposit_amount }],
      ...mailsOfTheEnd,
    ] as const
    for (const [kind, more] of later) {
      expect(names(kind, more), kind).toEqual([['It asked for'], ['It asked for']])
    }
  })

  test('order created names the account for the tag where the address carries it, and asks for the tag only there', () => {
    const apart = orderMail('order_created', { deposit_tag: '4711', deposit_account: 'rAccount' })
    const plain = (part: string) => part.replaceAll(/<[^>]+>/g, '').replaceAll(/\s+/g, ' ')
    for (const part of [apart.text, apart.html].map(plain)) {
      expect(part).toContain(
        `${order.deposit_address} or, where your wallet asks for account and tag (or memo), to rAccount with the tag or memo ` +
          '(without it, what comes to this account cannot be told apart from other deposits) 4711 ',
      )
      expect(part.split('4711')).toHaveLength(2)
    }
    const beside = orderMail('order_created', { deposit_tag: '4711', deposit_account: order.deposit_address })
    expect(beside.text).toBe(orderMail('order_created', { deposit_tag: '4711' }).text)
    expect(beside.text).toContain('(without it the deposit cannot be told apart from others)')
  })

  test('each network has its explorer', () => {
    const link = (network: NetworkId) =>
      /https:\/\/\S+a{64}/.exec(
        orderMail('order_completed', { receive_network: network, withdraw_tx_hash: HASH }).text,
      )?.[0]
    const links = Object.keys(networkChains).map((network) => [network, link(network as NetworkId)])
    expect(Object.fromEntries(links)).toEqual({
      BTC: `https://mempool.space/tx/${HASH}`,
      ETH: `https://etherscan.io/tx/${HASH}`,
      BNB: `https://bscscan.com/tx/${HASH}`,
      XRP: `https://livenet.xrpl.org/transactions/${HASH}`,
      XLM: `https://stellar.expert/explorer/public/tx/${HASH}`,
      TRX: `https://tronscan.org/#/transaction/${HASH}`,
      EOS: `https://eosauthority.com/transaction/${HASH}`,
      SOL: `https://solscan.io/tx/${HASH}`,
      ERC20: `https://etherscan.io/tx/${HASH}`,
      BEP20: `https://bscscan.com/tx/${HASH}`,
      TRC20: `https://tronscan.org/#/transaction/${HASH}`,
    })
  })

  test('a network without an explorer shows the hash alone', () => {
    const plain = mailRenderer({ ...settings, explorers: { ...defaultExplorers, BTC: null } })
    const content = {
      kind: 'payment_received',
      data: { order: { ...order, deposit_tx_hash: HASH } },
    } as const
    const mail = { content, to: 'a@b.example', accountId: null, messageId: 'm'.repeat(32) }
    const { text, html } = plain(mail, IN_TIME)
    expect(text).toContain(HASH)
    expect(html).toContain(HASH)
    expect(text + html).not.toContain('mempool.space')
  })

  test('an emergency names its reasons and what each action pays, and its buttons only open the page', () => {
    const received = { status: 'EMERGENCY', deposit_received: '0.0061', emergency } as const
    const { text, html } = orderMail('emergency_action_required', received)
    for (const part of [text, html]) {
      expect(part).toContain('Less was received than the order asks for.')
      // `deposit_received` may hold what only lies in a mempool, which no action exchanges.
      expect(part).toContain(
        'Exchange what was received and confirmed, and receive 400.25 USDT on TRC20 (TRON).',
      )
      expect(part).toContain('0.006 BTC back on Bitcoin, at an address that you name as refund_address.')
      expect(part).toContain('token=tok-CB4821093377160542#continue')
      expect(part).toContain('token=tok-CB4821093377160542#refund')
      expect(part).not.toContain('#recalculate')
      expect(part).not.toContain('not known')
    }
    for (const reason of emergencyReasons) {
      const mail = orderMail('emergency_action_required', { emergency: { ...emergency, reasons: [reason] } })
      expect(mail.text).not.toContain(reason)
    }
  })

  test('an emergency names the refund address that its order has, and that another may be named', () => {
    const refunding = { ...refund, refund_amount: '0.006', has_refund_address: true }
    const { text, html } = orderMail('emergency_action_required', {
      status: 'EMERGENCY',
      refund_address: 'bc1qback',
      emergency: { ...emergency, options: { ...emergency.options, refund: refunding } },
    })
    for (const part of [text, html]) {
      expect(part).toContain('back on Bitcoin, at bc1qback, or another that you name as refund_address.')
    }
  })

  test('every mail of an order names both its networks, and where it would have been paid to', () => {
    const mails = [
      ['order_created', {}],
      ['payment_received', { status: 'PENDING', deposit_received: '0.01' }],
      ...mailsOfTheEnd,
    ] as const
    for (const [kind, more] of mails) {
      const { text, html } = orderMail(kind, { ...more, deposit_network: 'BEP20' })
      for (const part of [text, html]) {
        expect(part, kind).toContain('BEP20 (BNB Smart Chain)')
        expect(part, kind).toContain('USDT')
        expect(part, kind).toContain('TRC20 (TRON)')
        const isNamed = part.includes(`${order.destination} for USDT on TRC20 (TRON)`)
        expect(isNamed, kind).toBe(!part.includes('You receive'))
      }
    }
  })

  test('an emergency in which nobody knows what an action would pay says so, and where that will stand', () => {
    const nothing = { continue: null, recalculate: null, refund: null }
    const mailWith = (options: typeof emergency.options) =>
      orderMail('emergency_action_required', {
        emergency: { reasons: ['NETWORK_PROBLEM'], options, are_options_known: false },
      })
    const [none, some] = [mailWith(nothing), mailWith(emergency.options)]
    for (const part of [none.text, none.html, some.text, some.html]) {
      expect(part).toContain('It is not known at the moment what every action would pay')
      expect(part).toContain('https://x.example.org/order/CB4821093377160542?token=')
      expect(part).not.toContain('too little')
    }
    for (const part of [none.text, none.html]) expect(part).not.toContain('mounts were worked out')
    expect(some.text).toContain('and receive 400.25 USDT')
  })

  describe('a payment that was seen', () => {
    const says = (deposit_received: string, more: Partial<OrderInMail> = {}, nowMs = IN_TIME) => {
      const seen = { status: 'PENDING', deposit_received, ...more } as const
      const { text, html } = orderMail('payment_received', seen, nowMs)
      return [text, html]
    }
    const nothingToDo = 'It is exchanged when the network has confirmed it; you need not do anything.'

    test('of just what was asked needs nothing to be done', () => {
      for (const part of says(order.deposit_amount)) {
        expect(part).toContain(nothingToDo)
        expect(part).toContain('You receive')
      }
      for (const part of says('0.01234566', { deposit_tolerance: '0.00000001' })) {
        expect(part).toContain(nothingToDo)
      }
    })

    test('of just what was asked, but not in time, says that the order stops, and promises nothing', () => {
      for (const part of says(order.deposit_amount, { is_deposit_late: true })) {
        expect(part).toContain(
          'not all of it came in time: when the network has confirmed it, the order stops',
        )
        expect(part).not.toMatch(/need not do anything|You receive|You send/)
      }
    })

    test('of less says what is missing, where it goes and until when, and promises nothing', () => {
      for (const part of says('0.01')) {
        expect(part).toContain('So far 0.01 of 0.01234567 BTC was seen.')
        expect(part).toContain(
          `Send the remaining 0.00234567 BTC on Bitcoin before 2026-01-02 03:19 UTC to ${order.deposit_address}, or the order stops and you are asked.`,
        )
        expect(part).toContain('If you have sent it already, do not send it again')
        expect(part).not.toMatch(/need not do anything|You receive|You send/)
      }
    })

    test('of less names the tag, and the account that it goes with where they are apart', () => {
      for (const part of says('0.01', { deposit_tag: '4711' })) {
        expect(part).toContain(`to ${order.deposit_address} with the tag or memo 4711, or the order stops`)
      }
      for (const part of says('0.01', { deposit_tag: '4711', deposit_account: 'rAccount' })) {
        expect(part).toContain(
          `to ${order.deposit_address} (or, where your wallet asks for account and tag or memo, to rAccount with 4711), or`,
        )
      }
    })

    test('of less asks for nothing when the time is up', () => {
      for (const part of says('0.01', {}, order.expires_at)) {
        expect(part).toContain('So far 0.01 of 0.01234567 BTC was seen.')
        expect(part).toContain('The time to pay it ended at 2026-01-02 03:19 UTC: send nothing any more.')
        expect(part).not.toMatch(/Send the remaining|need not do anything|You receive/)
      }
    })

    test('of more says that the order stops, and promises nothing', () => {
      for (const part of says('0.02')) {
        expect(part).toContain('More was seen than the order asks for')
        expect(part).not.toMatch(/need not do anything|You receive|emaining/)
      }
    })
  })

  test('an emergency for want of the rest says until when and where that lets the order go on, and no other does', () => {
    const says = (kind: OrderMailKind, more: Partial<OrderInMail> = {}, nowMs = IN_TIME) => {
      const stopped = { status: 'EMERGENCY', deposit_received: '0.01', emergency, ...more } as const
      const { text, html } = orderMail(kind, { deposit_tag: '4711', ...stopped }, nowMs)
      return [text, html]
    }
    const goesOn = `If the remaining 0.00234567 BTC on Bitcoin comes to ${order.deposit_address} with the tag or memo 4711 before 2026-01-02 03:19 UTC, the order goes on by itself.`
    for (const kind of ['order_failed', 'emergency_action_required'] as const) {
      for (const part of says(kind)) {
        expect(part, kind).toContain(goesOn)
        expect(part, kind).not.toMatch(/cannot go on|order failed/)
      }
      const others = [
        ...says(kind, {}, order.expires_at),
        ...says(kind, { emergency: { ...emergency, reasons: ['UNDERPAID', 'LATE_DEPOSIT'] } }),
        ...says(kind, { emergency: { ...emergency, reasons: ['NETWORK_PROBLEM'] } }),
        ...says(kind, { deposit_received: order.deposit_amount }),
      ]
      for (const part of others) {
        expect(part, kind).not.toContain('goes on by itself')
        if (kind === 'order_failed') expect(part).toContain('The order cannot go on')
      }
    }
    const { subject } = orderMail('order_failed', {
      status: 'EMERGENCY',
      deposit_received: '0.01',
      emergency,
    })
    expect(subject).toBe('Order CB4821093377160542: failed')
  })

  test('expired says what the network has, and that what was sent is not lost', () => {
    const { text, html } = orderMail('order_expired', { status: 'EXPIRED' })
    for (const part of [text, html.replaceAll(/<.?strong>/g, '')]) {
      expect(part).toContain(
        'The order has expired: the network has no payment to it from before 2026-01-02 03:19 UTC.',
      )
      expect(part).toContain('when it arrives, the order goes on or you are asked.')
      expect(part).toContain('expired without a payment in time')
    }
  })

  test('failed: refunded, or nothing to choose', () => {
    const refunded = orderMail('order_failed', { status: 'REFUNDED', refund })
    for (const part of [refunded.text, refunded.html]) {
      expect(part).toContain("What was received, less the network's cost, was sent back")
    }
    expect(refunded.text).toContain('0.006 BTC on Bitcoin to bc1qback')
    expect(refunded.text).toContain(`https://mempool.space/tx/${HASH}`)
    const stuck = orderMail('order_failed', { status: 'EMERGENCY', emergency })
    expect(stuck.text).toContain('nothing to choose')
  })

  test('what is received is said where that is known: neither beside a refund, nor without a payment, nor in an emergency', () => {
    const says = (kind: OrderMailKind, more: Partial<OrderInMail>) => {
      const { text, html } = orderMail(kind, more)
      return [text, html].map((part) => {
        // At which rate, of nothing, would be a riddle.
        expect(part.includes(`1 BTC = ${order.rate} USDT`)).toBe(part.includes('You receive'))
        return part.includes('You receive')
      })
    }
    expect(says('order_created', {})).toEqual([true, true])
    expect(says('order_completed', { status: 'DONE' })).toEqual([true, true])
    expect(says('order_failed', { status: 'REFUNDED', refund })).toEqual([false, false])
    expect(says('order_expired', { status: 'EXPIRED' })).toEqual([false, false])
    const stopped = { status: 'EMERGENCY', emergency } as const
    expect(says('emergency_action_required', stopped)).toEqual([false, false])
    expect(says('order_failed', stopped)).toEqual([false, false])
    const { text, html } = orderMail('emergency_action_required', stopped)
    for (const part of [text, html]) {
      expect(part).toContain('receive 400.25 USDT')
      expect(part).not.toContain(order.receive_final_amount)
    }
  })

  test('a sign-in mail says in which browser alone its link works', () => {
    const { text, html } = mailOf({
      kind: 'sign_in_link',
      data: { link: 'https://x.example.org/in#abc', expires_at_ms: order.expires_at },
    })
    for (const part of [text, html]) {
      expect(part).toContain('in the browser in which you asked for it')
      expect(part).toContain('2026-01-02 03:19 UTC')
    }
  })

  test('who has lost the address of an account is not sent to sign in with it', () => {
    const noticeOf = (more: object) =>
      mailOf({ kind: 'security_notice', data: { what: 'The address was changed.', ...more } })
    const [former, present] = [noticeOf({ is_former: true }), noticeOf({})]
    for (const part of [former.text, former.html]) {
      expect(part).toContain('tell the operator')
      expect(part).not.toContain('sign in now')
    }
    for (const part of [present.text, present.html]) {
      expect(part).toContain('sign in now')
      expect(part).not.toContain('tell the operator')
    }
  })

  test('a mail about webhooks is not one about the safety of an account', () => {
    const isSafety = (content: MailContent) => mailOf(content).text.includes('safety of your account')
    const plain = EVERY_MAIL.filter((content) => !isSafety(content)).map(({ kind }) => kind)
    expect(plain).toEqual([...orderMailKinds, 'webhook_exhausted', 'endpoint_disabled'])
    const gone = mailOf(EVERY_MAIL.find(({ kind }) => kind === 'endpoint_disabled') as MailContent)
    for (const part of [gone.text, gone.html]) {
      expect(part).toContain('410')
      expect(part).toContain('we_0123456789abcdef')
      expect(part).toContain('https://a.example/hook')
    }
  })

  test('mails about orders and webhooks can be unsubscribed from, each from its own class', () => {
    const classes = EVERY_MAIL.map((content) => [
      content.kind,
      /acc_00000001\.([a-z_]+)\.mac/.exec(mailOf(content).unsubscribeUrl ?? '')?.[1] ?? null,
    ])
    expect(Object.fromEntries(classes)).toEqual({
      order_created: 'all',
      payment_received: 'payment_received',
      order_completed: 'order_completed',
      order_failed: 'order_failed',
      order_expired: 'order_expired',
      emergency_action_required: 'all',
      webhook_exhausted: 'all',
      endpoint_disabled: 'all',
      sign_in_link: null,
      email_change_old: null,
      email_change_new: null,
      key_created: null,
      security_notice: null,
    })
  })

  test('hostile words stay words', () => {
    const hostile = '"><script>alert(1)</script>\r\nBcc: victim@example.org\u202e'
    const mail = orderMail('order_created', {
      destination: hostile,
      destination_tag: hostile,
      deposit_tag: hostile,
      deposit_tx_hash: hostile,
    })
    const key = mailOf({ kind: 'key_created', data: { key_id: hostile, label: hostile, ip: hostile } })
    for (const { html, text, subject } of [mail, key]) {
      expect(html).not.toContain('<script')
      expect(html).toContain('&lt;script&gt;')
      expect(text).not.toMatch(/^Bcc:/m)
      expect(text + html).not.toContain('\u202e')
      expect(subject).not.toContain('alert')
    }
  })
})

describe('templates', () => {
  const fill = (source: string, view: object, kind: 'html' | 'text' = 'html') =>
    fillTemplate(parseTemplate(source), kind, view as Record<string, string>, {})

  test('sections repeat, nest, and are left out', () => {
    expect(
      fill('{{#list}}<{{name}}{{outer}}>{{/list}}', { list: [{ name: 'a' }, { name: 'b' }], outer: '!' }),
    ).toBe('<a!><b!>')
    expect(fill('{{#gone}}x{{/gone}}{{^gone}}y{{/gone}}', { gone: null })).toBe('y')
    expect(fill('a\n{{#is_on}}\nb\n{{/is_on}}\nc', { is_on: true })).toBe('a\nb\nc')
  })

  test('a mistake is told, not swallowed', () => {
    expect(() => parseTemplate('{{#open}}')).toThrow('does not end')
    expect(() => parseTemplate('{{/open}}')).toThrow()
    expect(() => parseTemplate('{{{raw}}}')).toThrow('not understood')
    expect(() => parseTemplate('{{A.b}}')).toThrow('not understood')
    expect(() => fill('{{misspelt}}', {})).toThrow('there is no misspelt')
    expect(() => fill('{{toString}}', {})).toThrow()
  })
})

const QMAIL_NOBODY = 'sorry, no mailbox here by that name. (#5.1.1)'
const QMAIL_NO_RELAY = "sorry, that domain isn't in my list of allowed rcpthosts (#5.7.1)"
const UNAVAILABLE_FOR_NOW =
  'Requested action not taken: mailbox unavailable\nFailure sending mail. Try again later'

describe('SMTP', () => {
  let server: MailServer | null = null
  afterEach(async () => {
    await server?.close()
    server = null
  })
  const mail = orderMail('payment_received')
  /** Longer than any machine takes for what does come; the clock of one test tells `untilTakenMs` from the others. */
  const times = {
    connectMs: 60_000,
    greetingMs: 60_000,
    untilTakenMs: 50_000,
    answerMs: 60_000,
    lastAnswersMs: 200,
  }
  const channelTo = (port: number, more: object = {}, patience: Partial<typeof times> = {}) =>
    smtpChannel(
      {
        host: '127.0.0.1',
        port,
        security: 'none',
        auth: null,
        fromAddress: settings.fromAddress,
        fromName: 'Cambist "Orders"',
        ...more,
      },
      systemClock(),
      { ...times, ...patience },
    )
  const sendTo = async (
    options: Parameters<typeof startMailServer>[0],
    more: object = {},
    patience: Partial<typeof times> = {},
  ) => {
    server = await startMailServer(options)
    return channelTo(server.port, more, patience).send(mail)
  }

  test('a mail arrives as it was written, with the headers of one click', async () => {
    expect(await sendTo({})).toMatchObject({ kind: 'accepted', said: expect.stringMatching(/^250/) })
    expect(server?.received).toHaveLength(1)
    const { envelope, raw } = server?.received[0] ?? { envelope: null, raw: '' }
    expect(envelope).toEqual({ from: settings.fromAddress, to: ['ada@example.org'] })
    const parsed = await PostalMime.parse(raw)
    expect(parsed).toMatchObject({
      subject: mail.subject,
      from: { name: 'Cambist "Orders"', address: settings.fromAddress },
      to: [{ address: 'ada@example.org' }],
      messageId: `<${mail.messageId}>`,
    })
    expect(parsed.text?.trim()).toBe(mail.text.trim())
    expect(parsed.html?.trim()).toBe(mail.html.trim())
    const headers = Object.fromEntries(parsed.headers.map(({ key, value }) => [key, value]))
    expect(headers).toMatchObject({
      'list-unsubscribe': `<${mail.unsubscribeUrl}>`,
      'list-unsubscribe-post': 'List-Unsubscribe=One-Click',
      'auto-submitted': 'auto-generated',
    })
  })

  test('who greets a mail server has a whole name, on a machine that has none too', async () => {
    await sendTo({})
    expect(server?.received.map(({ clientName }) => clientName)).toEqual([
      expect.stringMatching(/^[^[\].]+(\.[^[\].]+)+$/),
    ])
  })

  test('an address that looks like two, or like a command, reaches at most one', async () => {
    server = await startMailServer({})
    const kinds = []
    for (const to of ['a,b@example.org', 'a@example.org,b@example.org', 'a@e.org>\r\nRCPT TO:<b@e.org']) {
      kinds.push((await channelTo(server.port).send({ ...mail, to })).kind)
    }
    expect(kinds).toEqual(['accepted', 'refused', 'refused'])
    expect(server.received.map(({ envelope }) => envelope.to)).toEqual([['a,b@example.org']])
  })

  test.each([
    ['a recipient that is not there', { onRcpt: 550, words: 'No such user here' }, 'refused'],
    ['a recipient that is not there, in full', { onRcpt: 550, words: '5.1.1 No such user' }, 'refused'],
    ['a recipient that is not there, with the code behind', { onRcpt: 550, words: QMAIL_NOBODY }, 'refused'],
    ['a recipient that wants none', { onRcpt: 556, words: '5.1.10 Null MX' }, 'refused'],
    ['a recipient that is looked for late', { onData: 550, words: '5.1.1 No such user' }, 'refused'],
    ['a mailbox that is full for good', { onData: 552, words: '5.2.2 Mailbox full' }, 'refused'],
    ['a full mailbox', { onRcpt: 452 }, 'failed'],
    ['greylisting', { onRcpt: 451 }, 'failed'],
    ['trouble at its end', { onData: 421 }, 'failed'],
    ['a sender that is not ours', { onMail: 550 }, 'failed'],
    ['a sender that is not there', { onMail: 550, words: '5.1.1 No such user' }, 'failed'],
    ['a sender that is looked at late', { onRcpt: 550, words: '5.1.0 Sender rejected: unknown' }, 'failed'],
    ['a sender without a domain', { onRcpt: 553, words: '5.1.8 Domain not found' }, 'failed'],
    ['a sender that cannot be verified', { onRcpt: 550, words: 'Sender verify failed' }, 'failed'],
    ['a sender that was not verified', { onData: 554, words: 'Address is not verified' }, 'failed'],
    ['a sender that is another’s', { onData: 554, words: '5.2.0 SendAsDenied' }, 'failed'],
    ['who may not send at all', { onData: 550, words: '5.7.1 Not allowed' }, 'failed'],
    ['who has sent too much today', { onData: 550, words: '5.4.5 Daily limit exceeded' }, 'failed'],
    ['who has sent too much today, told early', { onRcpt: 550, words: '5.4.5 Daily limit' }, 'failed'],
    ['a mail that is not wanted, for whatever reason', { onData: 554 }, 'failed'],
    ['who wants a password', { onRcpt: 530 }, 'failed'],
    ['who lets none of ours through', { onRcpt: 554, words: '5.7.1 Relay access denied' }, 'failed'],
    ['who says so without a code', { onRcpt: 550, words: 'relay not permitted' }, 'failed'],
    ['who forbids it and says no more', { onRcpt: 550, words: 'Administrative prohibition' }, 'failed'],
    [
      'who wants a password, and says so in words',
      { onRcpt: 550, words: 'Authentication required' },
      'failed',
    ],
    ['a limit that is told without a code', { onRcpt: 550, words: 'Sending limit exceeded' }, 'failed'],
    ['who relays nothing, with the code behind', { onRcpt: 553, words: QMAIL_NO_RELAY }, 'failed'],
    ['who may not deliver', { onRcpt: 550, words: 'Delivery is not allowed to this address.' }, 'failed'],
    ['who shall try again, in two lines', { onRcpt: 550, words: UNAVAILABLE_FOR_NOW }, 'failed'],
    ['who says no and nothing else', { onRcpt: 550, words: 'No' }, 'failed'],
  ] as const)('%s', async (_, options, kind) => {
    const answer = await sendTo(options)
    expect(answer.kind, JSON.stringify(answer)).toBe(kind)
    expect(server?.received).toEqual([])
  })

  test('only what is refused when it was heard may be refused for what it says', async () => {
    const answers = []
    for (const options of [
      { onData: 554 },
      { onData: 554, words: '5.7.1 Spam\n5.4.5 and too much of it' },
      { onData: 451 },
      { onData: 550, words: '5.4.5 Daily limit' },
      { onData: 554, words: '4.7.1 Not now' },
      { onMail: 554 },
      { onRcpt: 554, words: '5.7.1' },
      { mood: 'hears none', words: '5.4.5 Daily limit' },
      { mood: 'hears none', words: 'No' },
    ] as const) {
      answers.push(await sendTo(options))
      await server?.close()
    }
    expect(answers.map(({ kind }) => kind)).toEqual(new Array(9).fill('failed'))
    expect(answers.map((answer) => 'mayBeContent' in answer)).toEqual([
      ...[true, true],
      ...new Array(7).fill(false),
    ])
  })

  test('a wrong password is the operator’s trouble, not the mail’s', async () => {
    const answer = await sendTo({ user: 'me', pass: 'right' }, { auth: { user: 'me', pass: 'wrong' } })
    expect(answer).toMatchObject({ kind: 'failed', why: expect.stringContaining('535') })
    await server?.close()
    expect(
      await sendTo({ user: 'me', pass: 'right' }, { auth: { user: 'me', pass: 'right' } }),
    ).toMatchObject({
      kind: 'accepted',
    })
  })

  test('what a mail server says when it goes away is told', async () => {
    const answer = await sendTo({ mood: 'goes away' })
    expect(answer).toMatchObject({ kind: 'failed', why: expect.stringContaining('421 4.7.0 too many') })
  })

  test('a mail server may think for half a minute before it greets', async () => {
    server = await startMailServer({
      onConnect: async () => {
        vi.advanceTimersByTime(30 * SECOND_MS)
      },
    })
    const own = { ...settings, host: '127.0.0.1', port: server.port, security: 'none', auth: null } as const
    const channel = smtpChannel({ ...own, fromName: 'Cambist' }, systemClock())
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'], shouldAdvanceTime: true })
    try {
      expect(await channel.send(mail)).toMatchObject({ kind: 'accepted' })
    } finally {
      vi.useRealTimers()
    }
  })

  test('silence anywhere ends: before the greeting, within DATA, and dripping for ever', async () => {
    const hasty = { greetingMs: 300, untilTakenMs: 1_500, answerMs: 300 }
    for (const mood of ['no greeting', 'silent after data', 'drips'] as const) {
      expect(await sendTo({ mood }, {}, hasty), mood).toMatchObject({ kind: 'failed' })
      await server?.close()
    }
  })

  test('a line that is cut in the middle of a mail, and nobody there at all', async () => {
    expect(await sendTo({ mood: 'hangs up in data' })).toMatchObject({ kind: 'failed' })
    await server?.close()
    const { port } = server ?? { port: 1 }
    server = null
    expect(await channelTo(port).send(mail)).toMatchObject({ kind: 'failed' })
  })

  test('TLS is asked for before anything is said, and its certificate is checked', async () => {
    expect(await sendTo({ mood: 'no tls' }, { security: 'starttls' })).toMatchObject({ kind: 'failed' })
    expect(server?.received).toEqual([])
    await server?.close()
    const answer = await sendTo({}, { security: 'starttls' })
    expect(answer).toMatchObject({ kind: 'failed', why: expect.stringMatching(/certificate/i) })
    await server?.close()
    const direct = await sendTo({ secure: true }, { security: 'tls' })
    expect(direct).toMatchObject({ kind: 'failed', why: expect.stringMatching(/certificate/i) })
    expect(server?.received).toEqual([])
  })

  test('who closes waits for nobody who has not begun to take the mail, and sends nothing more', async () => {
    server = await startMailServer({ mood: 'no greeting' })
    // Whoever waited for this one would not end within the test.
    const channel = channelTo(server.port, {}, { lastAnswersMs: 600_000 })
    const sending = channel.send(mail)
    await channel.close()
    expect(await sending).toEqual({ kind: 'cut_off', mayHaveIt: false })
    expect(await channel.send(mail)).toEqual({ kind: 'cut_off', mayHaveIt: false })
  })

  test('a server that has the mail is waited for longer: it may only be slow to say so', async () => {
    const come = Promise.withResolvers<void>()
    const waits = Promise.withResolvers<void>()
    server = await startMailServer({
      onMailCome: () => {
        come.resolve()
        return waits.promise
      },
    })
    const clock: Pick<Clock, 'sleep' | 'endOfTurn'> = {
      ...systemClock(),
      sleep: (ms, signal) => {
        if (ms === times.untilTakenMs) return come.promise
        waits.resolve()
        return systemClock().sleep(ms, signal)
      },
    }
    const own = { ...settings, host: '127.0.0.1', port: server.port, security: 'none', auth: null } as const
    const channel = smtpChannel({ ...own, fromName: 'Cambist' }, clock, times)
    expect(await channel.send(mail)).toMatchObject({ kind: 'accepted' })
  })

  test('who closes hears the last answer of a server that takes the mail, and not for ever', async () => {
    const come = Promise.withResolvers<void>()
    server = await startMailServer({
      onMailCome: async () => {
        come.resolve()
        await systemClock().sleep(50)
      },
    })
    const heard = channelTo(server.port, {}, { lastAnswersMs: 60_000 })
    const taken = heard.send(mail)
    await come.promise
    await heard.close()
    expect(await taken).toMatchObject({ kind: 'accepted' })
    await server.close()

    const asked = Promise.withResolvers<void>()
    server = await startMailServer({
      onMailCome: () => {
        asked.resolve()
        return new Promise(() => {})
      },
    })
    const unheard = channelTo(server.port)
    const sending = unheard.send(mail)
    await asked.promise
    await unheard.close()
    expect(await sending).toEqual({ kind: 'cut_off', mayHaveIt: true })
  })
})
