import { createClient } from '@cambist/sdk'
import { expect, test } from 'vitest'
import { verifyAudit } from '../../src/accounts/verify_audit.ts'
import { type Browser, openBrowser, tokenOf } from '../../src/http/testing/browser.ts'
import { createOrder, quickPair } from '../harness/orders.ts'
import { useTestSandbox } from '../harness/test_sandbox.ts'
import { failureOf, openWire } from '../harness/wire.ts'

/**
 * What: whoever reads the mails of an account signs in and looks after it, an integrator works with the keys made there,
 * and everybody else is refused, whatever they send.
 * How: the sandbox with its mailbox, over HTTP alone; mails are read as they came over SMTP, and every answer is held
 * against the served document. Only to let a link grow old the test reaches into the database.
 */
const given = useTestSandbox({ networks: ['ETH', 'BNB'] })

const DEMO = 'demo@sandbox.test'
const ELSEWHERE = { Origin: 'https://evil.example' }

type Mail = { readonly id: number; readonly to: string; readonly subject: string; readonly text: string }

async function openOwner(): Promise<Browser> {
  const wire = await openWire(given())
  return openBrowser(
    (method, target, options) => wire.request(method, target, options),
    () => given().baseUrl,
  )
}

async function mailsTo(address: string): Promise<readonly Mail[]> {
  const wire = await openWire(given())
  const { mails } = (await wire.request('GET', '/sandbox/mail')).json.data as { mails: Mail[] }
  return mails.filter(({ to }) => to === address)
}

/** Does what sends a mail, waits for it, and gives the token of its link. */
async function tokenMailed(address: string, subject: RegExp, send: () => Promise<unknown>): Promise<string> {
  const seen = new Set((await mailsTo(address)).map(({ id }) => id))
  await send()
  return given().eventually(`a mail to ${address} has come`, async () => {
    const mail = (await mailsTo(address)).find((each) => !seen.has(each.id) && subject.test(each.subject))
    const [link] = /http:\S+#token=[\w-]{43}/.exec(mail?.text ?? '') ?? []
    if (link === undefined) throw new Error(`${mail?.subject}: ${mail?.text}`)
    const token = tokenOf(link)
    given().addSecret(token)
    return token
  })
}

function askLink(browser: Browser, email: string): Promise<string> {
  return tokenMailed(email, /sign-in link/i, async () => {
    expect((await browser.send('POST', '/account/sign-in-links', { email })).status).toBe(200)
  })
}

async function signIn(email: string): Promise<Browser> {
  const browser = await openOwner()
  const token = await askLink(browser, email)
  expect((await browser.send('POST', '/account/session', { token })).status).toBe(200)
  given().addSecret(browser.cookies.get('cambist_session') ?? 'none')
  return browser
}

/** What is done with a key to the webhooks is the key's act; what was sent is its owner's to see. */
async function actByKey(
  owner: Browser,
  as: { readonly keyId: string; readonly secret: string },
): Promise<void> {
  given().log('what is done with the key to the webhooks is the key’s act')
  const wire = await openWire(given())
  const url = 'http://127.0.0.1:9/'
  const endpoints = '/v1/account/webhooks/endpoints'
  const endpoint = (await wire.signed('POST', endpoints, JSON.stringify({ url }), { as })).json.data
  const [noted] = (await owner.get('/account/audit?limit=1')).json.data.entries
  expect(noted).toMatchObject({ act: 'endpoint_created', actor: 'key', subject: endpoint.id })
  expect(noted.detail).toEqual({ url, key: as.keyId })
  const { deliveries } = (await owner.get('/account/webhook-deliveries')).json.data
  expect(Array.isArray(deliveries)).toBe(true)
  expect((await owner.send('DELETE', `/account/webhooks/${endpoint.id}`)).status).toBe(200)
}

test('an owner signs in by mail, makes a key, and trades with it until it is revoked', async () => {
  const owner = await signIn(DEMO)
  expect((await owner.get('/account')).json.data).toMatchObject({ account_id: 'acc_sandbox00', email: DEMO })

  given().log('change preferences')
  const wanted = { emails: 'with_callback', muted: ['payment_received'] }
  expect((await owner.send('PUT', '/account/notifications', wanted)).json.data).toEqual(wanted)

  given().log('make a key, create orders with it, list them')
  const label = { label: 'till', scopes: ['read', 'trade'], ip_allow: ['127.0.0.0/8'] }
  const key = (await owner.send('POST', '/account/keys', label)).json.data
  given().addSecret(key.secret)
  const keyed = { baseUrl: given().baseUrl, apiKey: key.key_id, apiSecret: key.secret, retries: 0 }
  const client = createClient(keyed)
  const sandbox = { ...given(), client }
  const formula = '=1+1,"x"'
  const first = await createOrder(sandbox, quickPair, { destination_tag: formula })
  const second = await createOrder(sandbox, quickPair)
  const listed: string[] = []
  for await (const { order_id } of client.listOrders({ status: ['NEW'] })) listed.push(order_id)
  expect(listed.slice(0, 2)).toEqual([second.order_id, first.order_id])
  expect((await owner.get('/account/orders?limit=1')).json.data.orders).toEqual([
    JSON.parse(JSON.stringify(await client.getOrder(second.order_id))),
  ])
  const page = (await owner.get('/account/orders?limit=1')).json.data
  const next = (await owner.get(`/account/orders?limit=1&cursor=${page.next_cursor}`)).json.data
  expect(next.orders[0].order_id).toBe(first.order_id)
  const csv = (await owner.get('/account/orders.csv')).text
  expect(csv).toContain(`"'=1+1,""x"""`)
  await given().eventually('the key was used', async () => {
    const { keys } = (await owner.get('/account/keys')).json.data
    expect(keys.find(({ key_id }: { key_id: string }) => key_id === key.key_id).last_used_at).not.toBeNull()
  })

  await actByKey(owner, { keyId: key.key_id, secret: key.secret })

  given().log('rotate: both secrets sign; revoke: neither does')
  const rotated = (await owner.send('POST', `/account/keys/${key.key_id}/rotate`)).json.data
  given().addSecret(rotated.secret)
  const renewed = createClient({ ...keyed, apiSecret: rotated.secret })
  await given().eventually('the new secret signs', () => renewed.getOrder(first.order_id))
  await client.getOrder(first.order_id)
  expect((await owner.send('DELETE', `/account/keys/${key.key_id}`)).status).toBe(200)
  await given().eventually('the key is dead', async () => {
    for (const each of [client, renewed]) {
      expect((await failureOf(each.getOrder(first.order_id))).code).toBe('INVALID_SIGNATURE')
    }
  })
  const mails = (await mailsTo(DEMO)).map(({ subject }) => subject)
  expect(mails).toEqual(expect.arrayContaining([expect.stringMatching(/key/i)]))

  given().log('sign out everywhere: the cookies are dead')
  const other = await signIn(DEMO)
  const cookie = owner.cookies.get('cambist_session') ?? ''
  const ended = (await owner.send('DELETE', '/account/sessions')).json.data.ended
  expect(ended).toBeGreaterThanOrEqual(2)
  owner.cookies.set('cambist_session', cookie)
  for (const each of [owner, other]) {
    expect((await each.get('/account')).json.error_code).toBe('NOT_SIGNED_IN')
    expect((await each.send('POST', '/account/keys', {})).json.error_code).toBe('NOT_SIGNED_IN')
  }
})

test('who only has the link, the cookie, a guess or another account gets nowhere', async () => {
  given().log('a link is used once, in the browser that asked, while it is young')
  const browser = await openOwner()
  const thief = await openOwner()
  const token = await askLink(browser, 'victim@example.com')
  const sendTo = (each: Browser, what: string) => each.send('POST', '/account/session', { token: what })
  expect((await sendTo(thief, token)).json.error_code).toBe('LINK_INVALID')
  expect((await sendTo(browser, `${token.slice(0, -1)}_`)).json.error_code).toBe('LINK_INVALID')
  expect((await browser.send('POST', '/account/session', { token }, {})).json.error_code).toBe('FORBIDDEN')
  // As a mail scanner does.
  for (const page of ['/account/sign-in', `/account/sign-in?token=${token}`]) await thief.get(page)
  expect((await sendTo(browser, token)).status).toBe(200)
  expect((await sendTo(browser, token)).json.error_code).toBe('LINK_INVALID')
  const aged = await askLink(browser, 'victim@example.com')
  await given().service.world.db.query(
    'UPDATE sign_in_links SET expires_at_ms = created_at_ms WHERE used_at_ms IS NULL',
  )
  expect((await sendTo(browser, aged)).json.error_code).toBe('LINK_INVALID')

  given().log('a page of another origin cannot use the cookie')
  for (const headers of [
    {},
    ELSEWHERE,
    { ...ELSEWHERE, Host: new URL(given().baseUrl).host, 'X-Forwarded-Host': 'evil.example' },
    { ...ELSEWHERE, 'X-Forwarded-Proto': 'https', Forwarded: 'host=evil.example' },
    { Origin: given().baseUrl, 'Sec-Fetch-Site': 'cross-site' },
  ]) {
    const forged = await browser.send('POST', '/account/keys', {}, headers)
    expect([forged.status, forged.json.error_code]).toEqual([403, 'FORBIDDEN'])
  }
  expect((await browser.get('/account/keys')).json.data.keys).toEqual([])

  given().log('another account’s key, session and order do not exist')
  const { key_id: keyId, secret } = (await browser.send('POST', '/account/keys', {})).json.data
  given().addSecret(secret)
  const sessionId = (await browser.get('/account')).json.data.session_id
  const stranger = await signIn('stranger@example.com')
  for (const [method, target] of [
    ['DELETE', `/account/keys/${keyId}`],
    ['POST', `/account/keys/${keyId}/rotate`],
    ['DELETE', `/account/sessions/${sessionId}`],
  ] as const) {
    const answer = await stranger.send(method, target)
    expect([target, answer.status, answer.json.error_code]).toEqual([target, 404, 'NOT_FOUND'])
  }
  expect((await stranger.get('/account/orders')).json.data.orders).toEqual([])
  expect((await browser.get('/account')).status).toBe(200)
})

test('an address is changed by both who can read its mails, and everything is in a log that verifies', async () => {
  const owner = await signIn('before@example.com')
  const tokens = { old: '', new: '' }
  tokens.new = await tokenMailed('after@example.com', /confirm/i, async () => {
    tokens.old = await tokenMailed('before@example.com', /being changed/i, async () => {
      expect((await owner.send('POST', '/account/email', { email: 'after@example.com' })).status).toBe(200)
    })
  })
  const anyone = await openOwner()
  const agree = (token: string) => anyone.send('POST', '/account/email/agree', { token })
  expect((await agree(tokens.new)).json.data.is_changed).toBe(false)
  const { data: before } = (await owner.get('/account')).json
  expect(before.email).toBe('before@example.com')
  expect((await agree(tokens.old)).json.data.is_changed).toBe(true)
  expect((await owner.get('/account')).status).toBe(401)
  const again = await signIn('after@example.com')
  expect((await again.get('/account')).json.data).toMatchObject({
    account_id: before.account_id,
    email: 'after@example.com',
  })

  const { entries } = (await again.get('/account/audit')).json.data
  expect(entries.map(({ act }: { act: string }) => act)).toEqual([
    'signed_in',
    'sign_in_link_asked',
    'email_changed',
    'email_change_agreed',
    'email_change_agreed',
    'email_change_asked',
    'signed_in',
    'account_created',
  ])
  expect((await verifyAudit(given().service.world.db, [])).problems).toEqual([])
})
