import PostalMime from 'postal-mime'
import { beforeAll, describe, expect, test } from 'vitest'
import { createOrder, createUnderpaid, expectRefunded, payAndBury, quickPair } from '../harness/orders.ts'
import { useTestSandbox } from '../harness/test_sandbox.ts'
import { openWire, type Wire } from '../harness/wire.ts'

/**
 * What: an order sends exactly the mails that its account wants, once each and in order, over real SMTP; their links
 * lead where they say, and unsubscribing takes one click.
 * How: the sandbox with its mailbox; mails are read as they came over the wire.
 */
const given = useTestSandbox()
let wire: Wire

beforeAll(async () => {
  wire = await openWire(given())
})

type SandboxMail = {
  id: number
  message_id: string
  to: string
  subject: string
  text: string
  html: string
  sent_at: string
}

async function mailbox(): Promise<SandboxMail[]> {
  const answer = await wire.request('GET', '/sandbox/mail')
  expect(answer.status, answer.text).toBe(200)
  return answer.json.data.mails as SandboxMail[]
}

/** Of this order, oldest first. */
async function mailsOf(orderId: string): Promise<SandboxMail[]> {
  return (await mailbox()).filter(({ subject }) => subject.includes(orderId)).toReversed()
}

const titles = (mails: readonly SandboxMail[]) =>
  mails.map(({ subject }) => subject.replace(/^Order CB\d+: /, ''))

/** As soon as the mailbox has what is expected of this order; and what is there when nothing of it waits any more. */
async function waitForMails(orderId: string, ...expected: string[]): Promise<SandboxMail[]> {
  return given().eventually(`the mails of ${orderId} are ${expected.join(', ')}`, async () => {
    const [open] = await given().rows<{ events: number; mails: number }>(
      `SELECT (SELECT count(*)::int FROM orders WHERE order_id = $1 AND sequence > relayed_sequence) AS events,
         (SELECT count(*)::int FROM mails WHERE event_key LIKE $1 || ':%' AND state = 'waiting') AS mails`,
      [orderId],
    )
    expect(open).toEqual({ events: 0, mails: 0 })
    const mails = await mailsOf(orderId)
    expect(titles(mails)).toEqual(expected)
    return mails
  })
}

/** One whose first mail has come: once its time is up nobody is told any more where to pay. */
async function createExpired() {
  const order = await createOrder(given(), quickPair)
  await waitForMails(order.order_id, 'waiting for your deposit')
  await given().remote.advanceClock(16 * 60)
  await given().waitForStatus(order.order_id, 'EXPIRED')
  return order
}

const linksOf = ({ text }: SandboxMail) => text.match(/https?:\/\/\S+/g) ?? []

describe('the life of an order', () => {
  test('paid and done: created, received, completed, with everything the customer needs', async () => {
    const order = await createOrder(given(), quickPair)
    await payAndBury(given(), order)
    await given().waitForStatus(order.order_id, 'WITHDRAW')
    await given().bury('BEP20')
    const done = await given().waitForStatus(order.order_id, 'DONE')
    const [created, received, completed] = await waitForMails(
      order.order_id,
      'waiting for your deposit',
      'payment received',
      'completed',
    )
    for (const mail of [created, received, completed]) expect(mail?.to).toBe('demo@sandbox.test')
    for (const part of [created?.text, created?.html]) {
      expect(part).toContain(order.deposit_address)
      expect(part).toContain(`${order.deposit_amount} USDT`)
      expect(part).toContain('ERC20 (Ethereum)')
      expect(part).toContain('BEP20 (BNB Smart Chain)')
      expect(part).toContain('NEW')
    }
    expect(received?.text).toContain(`https://etherscan.io/tx/${done.deposit_tx_hash}`)
    expect(completed?.text).toContain(`https://bscscan.com/tx/${done.withdraw_tx_hash}`)
    expect(completed?.text).toContain(`${done.receive_final_amount} USDC (USD Coin)`)
  })

  test('expired: told once, with no word of the other mails', async () => {
    const order = await createExpired()
    await waitForMails(order.order_id, 'waiting for your deposit', 'expired')
  })

  test('underpaid and refunded: asks, and says at the end that it failed', async () => {
    const order = await createUnderpaid(given(), quickPair, 600)
    const mails = await waitForMails(
      order.order_id,
      'waiting for your deposit',
      'payment received',
      'your decision is needed',
    )
    const asks = mails.at(-1)
    expect(asks?.text).toContain('Less was received than the order asks for.')
    const [told] = await given().rows<{ amount: string }>(
      `SELECT snapshot #>> '{emergency,options,refund,refund_amount}' AS amount FROM events
       WHERE order_id = $1 AND status = 'EMERGENCY'`,
      [order.order_id],
    )
    const refundAmount = told?.amount
    expect(asks?.text).toContain(`${refundAmount} USDT back on ERC20 (Ethereum)`)

    given().log('its button opens a page that says the same, and does nothing')
    const button = linksOf(asks as SandboxMail).find((link) => link.endsWith('#refund'))
    const page = await fetch(button ?? '')
    expect(page.status).toBe(200)
    expect(page.headers.get('content-security-policy')).toContain("default-src 'none'")
    expect(await page.text()).toContain('id="refund"')
    await given().eventually('the page says what a refund would send now', async () => {
      const { emergency } = await given().client.getOrder(order.order_id)
      const shown = await (await fetch(button ?? '')).text()
      expect(shown).toContain(`Sends ${emergency?.options.refund?.refund_amount} USDT back`)
    })
    expect((await given().client.getOrder(order.order_id)).status).toBe('EMERGENCY')

    const back = await given().remote.freshAddress('ERC20')
    await given().client.chooseEmergencyAction(order.order_id, { action: 'refund', refund_address: back })
    const refunded = await expectRefunded(given(), order)
    const whole = await waitForMails(
      order.order_id,
      'waiting for your deposit',
      'payment received',
      'your decision is needed',
      'failed',
    )
    expect(whole.at(-1)?.text).toContain(`to ${back}`)
    expect(whole.at(-1)?.text).toContain(`https://etherscan.io/tx/${refunded.refund?.tx_hash}`)
  })
})

describe('on the wire', () => {
  test('a mail is whole, and says of itself how to stop it with one click', async () => {
    const order = await createOrder(given(), quickPair)
    await waitForMails(order.order_id, 'waiting for your deposit')
    const [row] = await given().rows<{ message_id: string; state: string; data: object }>(
      'SELECT message_id, state, data FROM mails WHERE event_key = $1',
      [`${order.order_id}:1`],
    )
    expect(row).toMatchObject({ state: 'sent', data: {} })
    const raw = await given().devnet.mailbox.raw(`<${row?.message_id}@sandbox.test>`)
    expect(raw).not.toBeNull()
    const mail = await PostalMime.parse(raw ?? '')
    expect(mail.from).toEqual({ name: 'Cambist sandbox', address: 'orders@sandbox.test' })
    expect(mail.subject).toBe(`Order ${order.order_id}: waiting for your deposit`)
    const headers = new Map(mail.headers.map(({ key, value }) => [key, value]))
    expect(headers.get('list-unsubscribe-post')).toBe('List-Unsubscribe=One-Click')
    const link = headers.get('list-unsubscribe')?.slice(1, -1) ?? ''
    expect(link).toMatch(
      new RegExp(`^${given().baseUrl}/unsubscribe\\?token=acc_sandbox00\\.all\\.[\\w-]{43}$`),
    )
    expect(mail.text).toContain(link)
    expect(mail.html).toContain(link)
  })

  test('the mailbox is a page', async () => {
    const page = await fetch(`${given().baseUrl}/sandbox/mailbox`)
    expect(page.headers.get('content-type')).toContain('text/html')
    const [newest] = await mailbox()
    expect(await page.text()).toContain(newest?.subject)
    const mail = await fetch(`${given().baseUrl}/sandbox/mailbox/${newest?.id}`)
    expect(await mail.text()).toBe(newest?.html)
  })
})

describe('preferences', () => {
  test('one click stops a kind, the page stops all; looking stops nothing', async () => {
    const first = await createExpired()
    const [, expired] = await waitForMails(first.order_id, 'waiting for your deposit', 'expired')
    const link = linksOf(expired as SandboxMail).find((each) => each.includes('/unsubscribe')) ?? ''
    expect(link).toContain('.order_expired.')
    expect((await fetch(link)).status).toBe(200)
    const settings = () =>
      given().rows(`SELECT emails, muted FROM notification_settings WHERE account_id = 'acc_sandbox00'`)
    expect(await settings()).toEqual([])
    const click = await fetch(link, {
      method: 'POST',
      headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
      body: 'List-Unsubscribe=One-Click',
      redirect: 'error',
    })
    expect(click.status).toBe(200)
    expect(await settings()).toEqual([{ emails: 'all', muted: ['order_expired'] }])

    const second = await createExpired()
    const [created] = await waitForMails(second.order_id, 'waiting for your deposit')

    const all = linksOf(created as SandboxMail).find((each) => each.includes('/unsubscribe')) ?? ''
    await fetch(all, { method: 'POST' })
    expect(await settings()).toEqual([{ emails: 'off', muted: ['order_expired'] }])
    const third = await createOrder(given(), quickPair)
    await waitForMails(third.order_id)
  })
})
