import { createSecretKey, randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { get, type IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runInNewContext } from 'node:vm'
import { type Postgres, removePostgres } from '@cambist/devnet'
import { parseSetCookie } from 'cookie'
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { emptyTables } from '../../../test/harness/empty_tables.ts'
import { soon } from '../../../test/harness/eventually.ts'
import { startMigratedPostgres } from '../../../test/harness/migrated_postgres.ts'
import { openTestDatabase } from '../../../test/harness/test_database.ts'
import { setEmail } from '../../accounts/email.ts'
import type { OwnerPlace } from '../../accounts/owner_place.ts'
import { createSecretBox } from '../../accounts/secret_box.ts'
import { verifyAudit } from '../../accounts/verify_audit.ts'
import { systemClock } from '../../clock.ts'
import { operator } from '../../db/audit_log.ts'
import type { Database } from '../../db/database.ts'
import { within } from '../../db/within.ts'
import { SESSION_IDLE_MS, SESSION_MS_MAX } from '../../domain/session_lifetimes.ts'
import { defaultLimits } from '../parts.ts'
import type { Answer } from '../testing/answer.ts'
import { type Browser, openBrowser, tokenOf } from '../testing/browser.ts'
import { fakeDesk, orderView } from '../testing/fake_desk.ts'
import { type Harness, startHttp } from '../testing/harness.ts'

/**
 * What: an owner signs in and looks after an account, and nobody else can, whatever they send.
 * How: the real server on a socket over a real PostgreSQL with the service's migrations; only the clock is ours, and
 * mails are read where they wait to be sent. Every answer is checked against the served document.
 */
const folder = mkdtempSync(join(tmpdir(), 'cambist-owner-'))
const dataDir = join(folder, 'postgres')
const desk = fakeDesk()
let server: Postgres
let db: Database
let superuser: pg.Client
let http: Harness
let now = 1_800_000_000_000

const place: OwnerPlace = {
  get db() {
    return db
  },
  box: createSecretBox([createSecretKey(randomBytes(32))]),
  wallMs: () => now,
  nowMs: () => now,
  baseUrl: () => http.base,
  loopbackAllowed: true,
  changeLimits: defaultLimits.changes,
}

beforeAll(async () => {
  server = await startMigratedPostgres(dataDir)
  db = openTestDatabase(server.url, 'owner.test')
  superuser = new pg.Client({ connectionString: server.url })
  await superuser.connect()
  http = await startHttp({ desk, parts: { owners: place }, limits: { loopbackCallbacks: true } })
})

beforeEach(async () => {
  await emptyTables(superuser, [
    ...[
      'accounts',
      'api_keys',
      'api_key_secrets',
      'mails',
      'audit_log',
      'audit_heads',
      'sign_in_links',
      'sessions',
    ],
    ...['ask_counts', 'email_changes', 'notification_settings', 'webhook_secrets', 'webhook_endpoints'],
  ])
})

afterAll(async () => {
  await http?.close()
  await superuser?.end()
  await db?.close()
  await server?.stop()
  removePostgres(dataDir)
  rmSync(folder, { recursive: true, force: true })
})

function browser(): Browser {
  return openBrowser(http.request, () => http.base)
}

type Mail = { kind: string; data: { link: string; [name: string]: unknown } }

/** The newest mails to an address first. */
function mailsTo(address: string): Promise<Mail[]> {
  return db.query<Mail>(
    'SELECT kind, data FROM mails WHERE to_address = $1 ORDER BY queued_at_ms DESC, event_key',
    [address],
  )
}

/** Asks for a link, and gives its token; with `kind` of the mail as it is. */
async function askLink(own: Browser, typed: string): Promise<string> {
  const email = typed.trim().toLowerCase()
  const before = new Set((await mailsTo(email)).map(({ data }) => data.link))
  expect((await own.send('POST', '/account/sign-in-links', { email: typed })).status).toBe(200)
  const fresh = (await mailsTo(email)).filter(
    ({ kind, data }) => kind === 'sign_in_link' && !before.has(data.link),
  )
  expect(fresh).toHaveLength(1)
  return tokenOf(fresh[0]?.data.link ?? '')
}

async function signIn(email = 'owner@example.com', own = browser()): Promise<Browser> {
  const token = await askLink(own, email)
  const answer = await own.send('POST', '/account/session', { token })
  expect(answer.status).toBe(200)
  return own
}

function told({ status, json }: Answer): readonly unknown[] {
  return [status, json.error_code]
}

const linkInvalid = [400, 'LINK_INVALID']
const notSignedIn = [401, 'NOT_SIGNED_IN']
const forbidden = [403, 'FORBIDDEN']
const notFound = [404, 'NOT_FOUND']
const conflict = [409, 'CONFLICT']

async function acts(): Promise<string[]> {
  const rows = await db.query<{ act: string }>('SELECT act FROM audit_log ORDER BY chain, sequence')
  return rows.map(({ act }) => act)
}

test('a link signs in once, makes the account, and the cookie is as safe as it can be', async () => {
  const own = browser()
  const token = await askLink(own, 'owner@example.com')
  expect(await db.query('SELECT 1 FROM accounts')).toHaveLength(0)
  expect(told(await own.get('/account'))).toEqual(notSignedIn)
  const answer = await own.send('POST', '/account/session', { token })
  const cookie = answer.headers.getSetCookie().find((text) => text.startsWith('cambist_session='))
  expect(parseSetCookie(cookie ?? '')).toMatchObject({ httpOnly: true, sameSite: 'lax', path: '/' })
  expect(answer.json.data).toMatchObject({ email: 'owner@example.com', name: 'owner@example.com' })
  const account = await own.get('/account')
  expect(account.json.data).toMatchObject({ email: 'owner@example.com', email_change: null })
  // Used up, here and elsewhere; and the account is the same the next time.
  expect(told(await own.send('POST', '/account/session', { token }))).toEqual(linkInvalid)
  const again = await signIn('OWNER@example.com ', own)
  expect((await again.get('/account')).json.data.account_id).toBe(account.json.data.account_id)
  // No token is kept as it is.
  const stored = JSON.stringify(await db.query('SELECT * FROM sessions, sign_in_links'))
  expect(stored).not.toContain(token)
  expect(stored).not.toContain(own.cookies.get('cambist_session') ?? 'none')
})

test('over https the cookies have the prefix __Host- and Secure', async () => {
  const base = 'https://exchange.example'
  const secure = await startHttp({
    parts: { owners: { ...place, baseUrl: () => base }, baseUrl: () => base },
  })
  const own = openBrowser(secure.request, () => base)
  const asked = await own.send('POST', '/account/sign-in-links', { email: 'tls@example.com' })
  const [mail] = await mailsTo('tls@example.com')
  expect(mail?.data.link).toMatch(/^https:\/\/exchange\.example\/account\/sign-in#token=[\w-]{43}$/)
  const signed = await own.send('POST', '/account/session', { token: tokenOf(mail?.data.link ?? '') })
  const cookies = [asked, signed].flatMap(({ headers }) => headers.getSetCookie())
  expect(cookies).toHaveLength(3)
  // The link's, and as long as a session may last at most; the one that the link needed is gone.
  const seconds = [15 * 60, SESSION_MS_MAX / 1_000, 0]
  expect(cookies.map((cookie) => parseSetCookie(cookie).maxAge)).toEqual(seconds)
  for (const cookie of cookies) {
    expect(cookie).toMatch(/^__Host-cambist_(session|browser)=/)
    expect(cookie).toMatch(/; Path=\/(;|$)/)
    expect(cookie).toMatch(/; Secure/)
    expect(cookie).toMatch(/; HttpOnly/)
    expect(cookie).toMatch(/; SameSite=Lax/)
    expect(cookie).not.toMatch(/Domain/i)
  }
  expect((await own.get('/account')).status).toBe(200)
  // A cookie without the prefix, as a neighbour's page could plant it, is none.
  const planted = openBrowser(secure.request, () => base)
  planted.cookies.set('cambist_session', own.cookies.get('__Host-cambist_session') ?? '')
  expect(told(await planted.get('/account'))).toEqual(notSignedIn)
  await secure.close()
})

test('opening the link uses nothing up, and its page sends nothing by itself', async () => {
  const own = browser()
  const token = await askLink(own, 'owner@example.com')
  const page = await own.get('/account/sign-in')
  expect(page.status).toBe(200)
  expect(page.headers.get('content-security-policy')).toContain(`default-src 'none'`)
  expect(page.headers.get('referrer-policy')).toBe('no-referrer')
  expect(page.text).toContain('data-path="/account/session"')
  expect((await http.request('GET', `/account/session?token=${token}`)).status).toBe(405)
  expect((await own.send('POST', '/account/session', { token })).status).toBe(200)
  expect((await own.get('/account/confirm-email')).text).toContain('/account/email/stop')
})

/** The reasons, chain by chain in the order in which they were written. */
async function failuresNoted(): Promise<readonly string[]> {
  const failures = await db.query<{ detail: string }>(
    `SELECT detail FROM audit_log WHERE act = 'sign_in_failed' ORDER BY chain, sequence`,
  )
  return failures.map(({ detail }) => JSON.parse(detail).reason)
}

/** A page that a link opens, run as a browser runs it: a button that is disabled does nothing when it is pressed. */
async function openPage(path: string, answer: () => Promise<{ json(): Promise<unknown> }>) {
  const { text } = await browser().get(path)
  const [, script = ''] = /<script>(.*?)<\/script>/s.exec(text) ?? []
  const happened: unknown[] = []
  const output = { textContent: '' }
  const buttons = Array.from(text.matchAll(/<button [^>]*>/g), ([tag]) => {
    const data = Array.from(tag.matchAll(/data-(\w+)="(.*?)"/g), ([, name, value]) => [name, value])
    let press = async () => {}
    return {
      hidden: true,
      disabled: false,
      dataset: Object.fromEntries(data),
      addEventListener: (_: string, listener: () => Promise<void>) => {
        press = listener
      },
      async press() {
        if (!this.disabled) await press()
      },
    }
  })
  const listeners = new Map<string, () => void>()
  runInNewContext(script, {
    URLSearchParams,
    location: { hash: '#token=abc', pathname: path, reload: () => happened.push(['reload']) },
    history: { replaceState: (...args: unknown[]) => happened.push(['address', args[2]]) },
    addEventListener: (name: string, listener: () => void) => listeners.set(name, listener),
    document: { querySelector: () => output, querySelectorAll: () => buttons },
    fetch: (path: string, { method, body }: { method: string; body: string }) => {
      happened.push([method, path, JSON.parse(body)])
      return answer()
    },
  })
  return { happened, output, buttons, listeners }
}

const saysYes = async () => ({ json: async () => ({ success: true }) })

test('the page takes the token out of the address before anything else, and sends it when its button is pressed', async () => {
  const { happened, output, buttons } = await openPage('/account/sign-in', saysYes)
  const [button] = buttons
  expect([happened, button?.hidden]).toEqual([[['address', '/account/sign-in']], false])
  await button?.press()
  expect(happened.slice(1)).toEqual([['POST', '/account/session', { token: 'abc' }]])
  expect([output.textContent, button?.hidden]).toEqual(['You are signed in.', true])
})

test('a button that is pressed twice sends once, and no other one beside it', async () => {
  for (const path of ['/account/sign-in', '/account/confirm-email']) {
    const { happened, buttons } = await openPage(path, saysYes)
    const [first] = buttons
    await Promise.all([first, ...buttons].map((button) => button?.press()))
    expect(happened.slice(1)).toEqual([['POST', first?.dataset.path, { token: 'abc' }]])
  }
})

test('a page says of every answer that is no success what there is to say, and can be asked again', async () => {
  const refused = { success: false, message: 'the link does not sign in' }
  const parsed = (value: unknown) => async () => ({ json: async () => value })
  const nothing = 'There was no answer. Try again.'
  const answers = [
    [parsed(refused), refused.message],
    [() => Promise.reject(new Error('no network')), nothing],
    [async () => ({ json: () => Promise.reject(new SyntaxError('<html>502')) }), nothing],
    [parsed({ error: 'of a proxy' }), nothing],
    [parsed(null), nothing],
  ] as const
  for (const [answer, words] of answers) {
    const { happened, output, buttons } = await openPage('/account/confirm-email', answer)
    const [button] = buttons
    await button?.press()
    expect(output.textContent).toBe(words)
    expect(buttons.map(({ hidden, disabled }) => hidden || disabled)).toEqual([false, false])
    await button?.press()
    expect(happened).toHaveLength(3)
  }
})

test('the page of a change of the address speaks to whoever has either, and says what came of agreeing', async () => {
  const { text } = await browser().get('/account/confirm-email')
  expect(text).toContain('this link came to the old or the new one')
  expect(text).not.toContain('your account')
  const saidWhen = async (pressed: string, data: object) => {
    const answer = async () => ({ json: async () => ({ success: true, data }) })
    const { output, buttons } = await openPage('/account/confirm-email', answer)
    await buttons.find(({ dataset }) => dataset.path === pressed)?.press()
    return output.textContent
  }
  const agree = '/account/email/agree'
  const newEmail = "o'neil+<b>&amp;@example.com"
  expect(await saidWhen(agree, { new_email: newEmail, is_changed: true })).toBe(
    `It is changed: sign in with ${newEmail}.`,
  )
  expect(await saidWhen(agree, { new_email: newEmail, is_changed: false })).toBe(
    'You have agreed. The other address has to agree as well.',
  )
  expect(await saidWhen('/account/email/stop', {})).toBe('The change was stopped.')
})

test('a newer link that is opened in the same tab is the one whose token is sent', async () => {
  const { happened, listeners } = await openPage('/account/sign-in', saysYes)
  // Only what stands behind the `#` differs, for which no browser loads a page again by itself.
  listeners.get('hashchange')?.()
  expect(happened.slice(1)).toEqual([['reload']])
})

test('what somebody else has put into a browser as its token is not kept', async () => {
  const own = browser()
  own.cookies.set('cambist_browser', 'planted')
  await askLink(own, 'owner@example.com')
  expect(own.cookies.get('cambist_browser')).toMatch(/^[\w-]{43}$/)
})

test('who has a network of IPv6 addresses is limited as one', async () => {
  const strict = await startHttp({
    parts: { owners: place },
    limits: { mailsPerAddress: 2, trustedProxies: ['127.0.0.1'] },
  })
  const ask = async (address: string) => {
    const headers = { Origin: strict.base, 'Content-Type': 'application/json', 'X-Forwarded-For': address }
    const body = JSON.stringify({ email: 'owner@example.com' })
    return (await strict.request('POST', '/account/sign-in-links', { headers, body })).status
  }
  expect([await ask('2001:db8::1'), await ask('2001:db8::2'), await ask('2001:db8::3')]).toEqual([
    200, 200, 429,
  ])
  expect(await ask('2001:db8:0:1::1')).toBe(200)
  await strict.close()
})

test('a link of another browser, an old one, a guessed one and none do not sign in, in the same words', async () => {
  const own = browser()
  const token = await askLink(own, 'owner@example.com')
  const other = browser()
  const elsewhere = await other.send('POST', '/account/session', { token })
  await other.send('POST', '/account/sign-in-links', { email: 'other@example.com' })
  const withAnother = await other.send('POST', '/account/session', { token })
  const guessed = await own.send('POST', '/account/session', { token: 'A'.repeat(43) })
  const short = await own.send('POST', '/account/session', { token: 'A' })
  for (const answer of [elsewhere, withAnother, guessed, short]) {
    expect(told(answer)).toEqual(linkInvalid)
    expect(answer.text).toBe(elsewhere.text)
    expect(answer.headers.getSetCookie()).toEqual([])
  }
  now += 15 * 60_000
  expect(told(await own.send('POST', '/account/session', { token }))).toEqual(linkInvalid)
  expect(await db.query('SELECT 1 FROM sessions')).toHaveLength(0)
  expect(await failuresNoted()).toEqual(['other_browser', 'expired'])
  // A minute earlier it would have been good.
  const fresh = await askLink(own, 'owner@example.com')
  now += 15 * 60_000 - 1
  expect((await own.send('POST', '/account/session', { token: fresh })).status).toBe(200)
})

test('however often a link fails to sign in, the audit log tells it once for each reason', async () => {
  const [own, other] = [browser(), browser()]
  const token = await askLink(own, 'owner@example.com')
  const fail = async (by: Browser) => {
    for (let time = 0; time < 3; time += 1)
      expect(told(await by.send('POST', '/account/session', { token }))).toEqual(linkInvalid)
  }
  await fail(other)
  expect((await own.send('POST', '/account/session', { token })).status).toBe(200)
  await fail(own)
  await fail(other)
  // With the account the link goes to another chain, which comes first.
  expect(await failuresNoted()).toEqual(['used', 'other_browser'])
  // Each link by itself.
  const another = await askLink(own, 'owner@example.com')
  now += 15 * 60_000
  const answers = await Promise.all(
    Array.from({ length: 4 }, () => own.send('POST', '/account/session', { token: another })),
  )
  expect(answers.map(told)).toEqual(answers.map(() => linkInvalid))
  expect(await failuresNoted()).toHaveLength(3)
})

test('a link that is used many times at once signs in once', async () => {
  const own = browser()
  const token = await askLink(own, 'owner@example.com')
  const answers = await Promise.all(
    Array.from({ length: 8 }, () => own.send('POST', '/account/session', { token })),
  )
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
  expect(await db.query('SELECT 1 FROM sessions')).toHaveLength(1)
  // Two links of an address without an account make one account.
  const [first, second] = [browser(), browser()]
  const tokens = [await askLink(first, 'new@example.com'), await askLink(second, 'new@example.com')]
  const both = await Promise.all([
    first.send('POST', '/account/session', { token: tokens[0] }),
    second.send('POST', '/account/session', { token: tokens[1] }),
  ])
  expect(both.map(({ status }) => status)).toEqual([200, 200])
  expect(new Set(both.map(({ json }) => json.data.account_id)).size).toBe(1)
})

test('whether an address has an account shows neither in the answer nor in what is written', async () => {
  await signIn('known@example.com')
  const written = async (email: string) => {
    const count = async () => {
      const rows = await db.query<{ n: number }>(
        `SELECT (SELECT count(*) FROM mails) + (SELECT count(*) FROM sign_in_links) + (SELECT count(*) FROM audit_log) AS n`,
      )
      return rows[0]?.n ?? 0
    }
    const before = await count()
    const answer = await browser().send('POST', '/account/sign-in-links', { email })
    return { text: answer.text, status: answer.status, rows: (await count()) - before }
  }
  expect(await written('known@example.com')).toEqual(await written('unknown@example.com'))
  expect((await written('known@example.com')).rows).toBe(3)
})

test('mails are limited for an address, known or not, and from an address', async () => {
  const strict = await startHttp({
    parts: { owners: place },
    limits: { mailsPerEmail: 2, mailsPerAddress: 4 },
  })
  const ask = (email: string) =>
    strict.request('POST', '/account/sign-in-links', {
      headers: { Origin: strict.base, 'Content-Type': 'application/json' },
      body: JSON.stringify({ email }),
    })
  await signIn('known@example.com')
  await emptyTables(superuser, ['ask_counts'])
  for (const email of ['known@example.com', 'unknown@example.com']) {
    await emptyTables(superuser, ['ask_counts'])
    const answers = [await ask(email), await ask(email), await ask(email)]
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 429])
    expect(Number(answers[2]?.headers.get('retry-after'))).toBe(answers[2]?.json.retry_after)
  }
  await emptyTables(superuser, ['ask_counts'])
  const statuses: number[] = []
  for (const name of ['a', 'b', 'c', 'd', 'e']) statuses.push((await ask(`${name}@example.com`)).status)
  expect(statuses).toEqual([200, 200, 200, 200, 429])
  // What is refused to an address that has asked too often costs nobody else anything.
  for (let time = 0; time <= defaultLimits.mailsPerEmail; time += 1)
    expect((await ask('victim@example.com')).status).toBe(429)
  await askLink(browser(), 'victim@example.com')
  now += 15 * 60_000
  expect((await ask('e@example.com')).status).toBe(200)
  await strict.close()
})

test('a request of another origin changes nothing, whatever else it brings', async () => {
  const own = await signIn()
  const origin = http.base
  const hostile: Readonly<Record<string, string>>[] = [
    {},
    { Origin: 'https://evil.example' },
    { Origin: 'null' },
    { Origin: `${origin}.evil.example` },
    { Origin: `${origin}/` },
    { Origin: origin.replace('http', 'https') },
    { Origin: `${origin}, https://evil.example` },
    { Origin: origin, 'Sec-Fetch-Site': 'cross-site' },
    { Origin: origin, 'Sec-Fetch-Site': 'same-site' },
    { Origin: origin, 'Sec-Fetch-Site': 'none' },
    { 'Sec-Fetch-Site': 'same-origin' },
    { Referer: `${origin}/account`, 'X-Requested-With': 'XMLHttpRequest' },
    { Origin: 'https://evil.example', 'X-Forwarded-Host': 'evil.example', 'X-Forwarded-Proto': 'https' },
    { Origin: 'https://evil.example', Forwarded: 'host=evil.example;proto=https' },
    { Origin: 'https://evil.example', 'X-HTTP-Method-Override': 'GET' },
  ]
  const requests = [
    ['POST', '/account/sign-in-links', { email: 'x@example.com' }],
    ['POST', '/account/session', { token: 'A'.repeat(43) }],
    ['POST', '/account/keys', {}],
    ['PUT', '/account/notifications', { emails: 'off', muted: [] }],
    ['POST', '/account/email', { email: 'x@example.com' }],
    ['DELETE', '/account/sessions', undefined],
  ] as const
  for (const headers of hostile) {
    for (const [method, target, body] of requests) {
      const answer = await own.send(method, target, body, headers)
      expect(told(answer), JSON.stringify({ headers, target })).toEqual(forbidden)
    }
  }
  // As a form of another page can send it: no JSON, so it is not read even with the right origin.
  const form = await http.request('POST', '/account/keys', {
    headers: {
      Origin: origin,
      Cookie: `cambist_session=${own.cookies.get('cambist_session')}`,
      'Content-Type': 'text/plain',
    },
    body: '{}',
  })
  expect(form.status).toBe(415)
  expect((await own.get('/account')).status).toBe(200)
  expect(await acts()).toEqual(expect.not.arrayContaining(['key_created', 'notifications_changed']))
})

test('without a session, and with what is none, nothing below /account answers', async () => {
  const own = await signIn()
  const session = own.cookies.get('cambist_session') ?? ''
  const swapped = session.startsWith('A') ? `B${session.slice(1)}` : `A${session.slice(1)}`
  const requests = [
    ['GET', '/account'],
    ['GET', '/account/sessions'],
    ['DELETE', '/account/sessions'],
    ['DELETE', '/account/session'],
    ['GET', '/account/keys'],
    ['POST', '/account/keys'],
    ['GET', '/account/orders'],
    ['GET', '/account/orders.csv'],
    ['GET', '/account/audit'],
    ['GET', '/account/notifications'],
    ['GET', '/account/webhooks'],
    ['GET', '/account/webhook-secrets'],
    ['POST', '/account/webhook-secrets/rotate'],
    ['POST', '/account/email'],
    ['DELETE', '/account/email'],
  ] as const
  for (const cookie of [
    '',
    'cambist_session=',
    `cambist_session=${swapped}`,
    `cambist_session=${session}x`,
    `cambist_session=${encodeURIComponent(`${session}\u0000`)}`,
    `cambist_session=%${session.charCodeAt(0).toString(16)}${session.slice(1)}`,
    `cambist_browser=${session}`,
    `__Host-cambist_session=${session}`,
    `Cambist_Session=${session}`,
    `x=1 cambist_session=${session}`,
    "cambist_session=' OR '1'='1",
    'cambist_session[]=1; __proto__=x',
  ]) {
    for (const [method, target] of requests) {
      const headers = { Origin: http.base, ...(cookie !== '' && { Cookie: cookie }) }
      const answer = await http.request(method, target, { headers })
      expect(told(answer), `${cookie} ${target}`).toEqual(notSignedIn)
    }
  }
  // Headers that name an account or a user to other services mean nothing here.
  const headers = { 'X-API-KEY': 'ck_test', Authorization: `Bearer ${session}`, 'X-Forwarded-User': 'owner' }
  expect(told(await http.request('GET', '/account', { headers }))).toEqual(notSignedIn)
})

test('a session slides while it is used, and ends after two weeks whatever is done', async () => {
  const own = await signIn()
  const beganMs = now
  now += SESSION_IDLE_MS - 1
  expect((await own.get('/account')).status).toBe(200)
  now += SESSION_IDLE_MS - 1
  expect((await own.get('/account')).status).toBe(200)
  now += SESSION_IDLE_MS
  expect(told(await own.get('/account'))).toEqual(notSignedIn)
  await signIn('owner@example.com', own)
  const againMs = now
  for (;;) {
    now += SESSION_IDLE_MS / 2
    const { status, json } = await own.get('/account')
    if (now >= againMs + SESSION_MS_MAX) {
      expect(status).toBe(401)
      break
    }
    const endMs = Math.min(now + SESSION_IDLE_MS, againMs + SESSION_MS_MAX)
    expect(Date.parse(json.data.session_expires_at)).toBe(endMs)
  }
  expect(now - againMs).toBe(SESSION_MS_MAX)
  expect(beganMs).toBeLessThan(againMs)
})

test('sessions are listed, ended one by one, signed out and ended everywhere', async () => {
  const [here, there, third] = [await signIn(), await signIn(), await signIn()]
  const stranger = await signIn('stranger@example.com')
  const { sessions } = (await here.get('/account/sessions')).json.data
  expect(sessions).toHaveLength(3)
  expect(sessions.filter((session: { is_current: boolean }) => session.is_current)).toHaveLength(1)
  const thereId = (await there.get('/account')).json.data.session_id
  expect(told(await stranger.send('DELETE', `/account/sessions/${thereId}`))).toEqual(notFound)
  expect((await there.get('/account')).status).toBe(200)
  expect((await here.send('DELETE', `/account/sessions/${thereId}`)).status).toBe(200)
  expect(told(await there.get('/account'))).toEqual(notSignedIn)
  expect(told(await here.send('DELETE', `/account/sessions/${thereId}`))).toEqual(notFound)

  const cookie = third.cookies.get('cambist_session') ?? ''
  expect((await third.send('DELETE', '/account/session')).status).toBe(200)
  expect(third.cookies.has('cambist_session')).toBe(false)
  third.cookies.set('cambist_session', cookie)
  expect(told(await third.get('/account'))).toEqual(notSignedIn)

  const kept = here.cookies.get('cambist_session') ?? ''
  await signIn('owner@example.com', there)
  expect((await here.send('DELETE', '/account/sessions')).json.data).toEqual({ ended: 2 })
  expect(here.cookies.has('cambist_session')).toBe(false)
  here.cookies.set('cambist_session', kept)
  expect(told(await here.get('/account'))).toEqual(notSignedIn)
  expect(told(await there.get('/account'))).toEqual(notSignedIn)
  expect((await stranger.get('/account')).status).toBe(200)
})

test('whoever signs in again in the same browser has one session', async () => {
  const own = await signIn()
  const before = own.cookies.get('cambist_session') ?? ''
  await signIn('owner@example.com', own)
  expect((await own.get('/account/sessions')).json.data.sessions).toHaveLength(1)
  own.cookies.set('cambist_session', before)
  expect(told(await own.get('/account'))).toEqual(notSignedIn)
})

test('keys are made, listed, rotated and revoked; another account has none of them', async () => {
  const own = await signIn()
  const stranger = await signIn('stranger@example.com')
  const made = await own.send('POST', '/account/keys', {
    label: '=shop',
    scopes: ['read'],
    ip_allow: ['203.0.113.0/24', '2001:db8::1'],
  })
  const { key_id: keyId, secret } = made.json.data
  expect(secret).toMatch(/^[0-9a-f]{64}$/)
  expect(made.headers.get('cache-control'), 'a secret is kept by nobody on the way').toBe('no-store')
  const [key] = (await own.get('/account/keys')).json.data.keys
  expect(key).toMatchObject({ key_id: keyId, scopes: ['read'], last_used_at: null, revoked_at: null })
  expect(key.ip_allow).toEqual(['203.0.113.0/24', '2001:db8::1'])
  expect((await own.get('/account/keys')).text).not.toContain(secret)
  expect((await stranger.get('/account/keys')).json.data.keys).toEqual([])
  const rotate = `/account/keys/${keyId}/rotate`
  for (const id of [keyId, 'ck_nobodynobody', '..%2f', "'"]) {
    const target = `/account/keys/${id}`
    expect(told(await stranger.send('POST', `${target}/rotate`))).toEqual(notFound)
    expect(told(await stranger.send('DELETE', target))).toEqual(notFound)
  }
  const rotated = await own.send('POST', rotate, { overlap_seconds: 60 })
  expect(rotated.json.data.secret).not.toBe(secret)
  expect(told(await own.send('POST', rotate))).toEqual(conflict)
  const replaced = (await own.send('POST', rotate, { replace_newest: true })).json.data
  expect((await own.get('/account/keys')).json.data.keys[0].old_secret_until).toBe(replaced.old_secret_until)
  expect((await own.send('DELETE', `/account/keys/${keyId}`)).status).toBe(200)
  expect((await own.send('DELETE', `/account/keys/${keyId}`)).status).toBe(200)
  expect(told(await own.send('POST', rotate))).toEqual(conflict)
  const kinds = (await mailsTo('owner@example.com')).map(({ kind }) => kind)
  expect(kinds.filter((kind) => kind === 'key_created')).toHaveLength(1)
  expect(kinds.filter((kind) => kind === 'security_notice').length).toBeGreaterThan(0)
})

const malformedKeys: readonly (readonly [object, string])[] = [
  [{ scopes: [] }, 'scopes'],
  [{ scopes: ['admin'] }, 'scopes'],
  [{ scopes: ['read', 'read'] }, 'scopes'],
  [{ scopes: 'read' }, 'scopes'],
  [{ scopes: ['read,trade'] }, 'scopes'],
  [{ ip_allow: ['10.0.0.5/8'] }, 'ip_allow'],
  [{ ip_allow: ['x'] }, 'ip_allow'],
  [{ ip_allow: [1] }, 'ip_allow'],
  [{ label: 'a\u0000' }, 'label'],
  [{ label: 'a'.repeat(101) }, 'label'],
  [{ account_id: 'acc_other' }, 'account_id'],
]

test('a malformed key is refused, and says where', async () => {
  const own = await signIn()
  for (const [body, field] of malformedKeys) {
    const answer = await own.send('POST', '/account/keys', body)
    const refused = [...told(answer), answer.json.details[0].field]
    expect(refused, JSON.stringify(body)).toEqual([400, 'INVALID_PARAMETER', field])
  }
  expect((await own.get('/account/keys')).json.data.keys).toEqual([])
})

test('the characters of a label are counted as the reference counts them', async () => {
  const own = await signIn()
  const label = '🪙'.repeat(100)
  expect(told(await own.send('POST', '/account/keys', { label }))).toEqual([200, undefined])
  expect((await own.get('/account/keys')).json.data.keys[0].label).toBe(label)
})

test('an account has at most 100 live keys, also when many are made at once', async () => {
  const own = await signIn()
  await db.query(
    `INSERT INTO api_keys (key_id, account_id, label, scopes, ip_allow, created_at_ms)
     SELECT 'ck_filler' || to_char(n, 'FM0000'), account_id, '', '{read}', '{}', 1
     FROM accounts, generate_series(1, 98) AS n`,
  )
  const answers = await Promise.all([1, 2, 3, 4, 5].map(() => own.send('POST', '/account/keys', {})))
  expect(answers.map(told).sort()).toEqual([[200, undefined], [200, undefined], conflict, conflict, conflict])
  expect(await db.query('SELECT 1 FROM api_keys')).toHaveLength(100)
})

test('keys are made and get new secrets 20 times within a quarter of an hour, and are revoked whenever their owner likes', async () => {
  // Where a quarter of an hour begins.
  now += 900_000 - (now % 900_000)
  const own = await signIn()
  const stranger = await signIn('stranger@example.com')
  const { key_id: keyId } = (await own.send('POST', '/account/keys', {})).json.data
  const rotate = () => {
    now += 1
    return own.send('POST', `/account/keys/${keyId}/rotate`, { replace_newest: true })
  }
  for (let index = 0; index < 19; index += 1) expect((await rotate()).status).toBe(200)
  for (const refused of [await rotate(), await own.send('POST', '/account/keys', {})]) {
    expect(told(refused)).toEqual([429, 'RATE_LIMITED'])
    expect(refused.json.message).toMatch(/^too many keys and secrets were made; try again in \d+ s$/)
    expect(refused.headers.get('retry-after')).toBe(String(refused.json.retry_after))
  }
  const safety = (await mailsTo('owner@example.com')).filter(({ kind }) => kind !== 'sign_in_link')
  expect(safety).toHaveLength(20)
  expect((await acts()).filter((act) => act.startsWith('key_'))).toHaveLength(20)
  expect((await stranger.send('POST', '/account/keys', {})).status).toBe(200)
  expect((await own.send('DELETE', `/account/keys/${keyId}`)).status).toBe(200)
  now += 900_000
  expect((await own.send('POST', '/account/keys', {})).status).toBe(200)
})

test('however much an owner asks for at once, two of the acts hold a connection', async () => {
  const own = await signIn()
  const cookie = `cambist_session=${own.cookies.get('cambist_session')}`
  let [underWay, most] = [0, 0]
  const counted: Database = {
    query: (text, values) => db.query(text, values),
    transaction: async (work) => {
      underWay += 1
      most = Math.max(most, underWay)
      return db.transaction(work).finally(() => {
        underWay -= 1
      })
    },
    close: async () => {},
  }
  const busy = await startHttp({ desk, parts: { owners: { ...place, db: counted } } })
  const answers = await Promise.all(
    Array.from({ length: 20 }, () =>
      busy.request('POST', '/account/keys', {
        headers: { Cookie: cookie, Origin: busy.base, 'Content-Type': 'application/json' },
        body: '{}',
      }),
    ),
  )
  expect(answers.map(({ status }) => status)).toEqual(new Array(20).fill(200))
  expect(most).toBe(2)
  await busy.close()
})

test('preferences are what was said last, for this account only', async () => {
  const own = await signIn()
  const stranger = await signIn('stranger@example.com')
  expect((await own.get('/account/notifications')).json.data).toEqual({ emails: 'all', muted: [] })
  const wanted = { emails: 'with_callback', muted: ['order_expired', 'payment_received'] }
  expect((await own.send('PUT', '/account/notifications', wanted)).json.data).toEqual(wanted)
  expect((await own.get('/account/notifications')).json.data).toEqual(wanted)
  expect((await stranger.get('/account/notifications')).json.data).toEqual({ emails: 'all', muted: [] })
  for (const body of [
    {},
    { emails: 'all' },
    { emails: 'some', muted: [] },
    { emails: 'all', muted: ['order_created'] },
  ]) {
    expect((await own.send('PUT', '/account/notifications', body)).status).toBe(400)
  }
})

test('endpoints and webhook secrets are the account’s own', async () => {
  const own = await signIn()
  const stranger = await signIn('stranger@example.com')
  const url = 'https://hooks.example.com/in'
  const made = (await own.send('POST', '/account/webhooks', { url })).json.data
  const target = `/account/webhooks/${made.endpoint_id}`
  expect(told(await stranger.send('PUT', target, { enabled: false }))).toEqual(notFound)
  expect(told(await stranger.send('DELETE', target))).toEqual(notFound)
  expect((await own.send('PUT', target, { enabled: false })).json.data.disabled_by).toBe('owner')
  expect((await own.send('PUT', target, { enabled: true })).json.data.disabled_by).toBeNull()
  await db.query(`UPDATE webhook_endpoints SET disabled_at_ms = 1, disabled_by = 'receiver'`)
  const [gone] = (await own.get('/account/webhooks')).json.data.endpoints
  expect(gone).toMatchObject({ disabled_at: '1970-01-01T00:00:00.001Z', disabled_by: 'receiver' })
  await db.query('UPDATE webhook_endpoints SET disabled_at_ms = NULL, disabled_by = NULL')
  expect((await own.get('/account/webhooks')).json.data.endpoints).toEqual([made])
  expect((await own.send('POST', '/account/webhooks', { url: 'https://127.0.0.1/' })).status).toBe(400)
  expect((await own.send('DELETE', target)).status).toBe(200)
  const first = (await own.send('POST', '/account/webhook-secrets/rotate')).json.data
  expect(first).toEqual({ secret: expect.stringMatching(/^whsec_/), old_secret_until: null })
  expect((await own.send('POST', '/account/webhook-secrets/rotate')).status).toBe(200)
  expect(told(await own.send('POST', '/account/webhook-secrets/rotate'))).toEqual(conflict)
  const listed = await own.get('/account/webhook-secrets')
  expect(listed.json.data.secrets).toHaveLength(2)
  expect(listed.text).not.toContain('whsec_')
  expect((await stranger.get('/account/webhook-secrets')).json.data.secrets).toEqual([])
})

test('the log of deliveries is that of the account, and needs a session', async () => {
  const own = await signIn()
  const listed = await own.get('/account/webhook-deliveries?limit=1')
  expect(listed.status).toBe(200)
  expect(listed.json.data.deliveries.length).toBeGreaterThan(0)
  expect((await own.get('/account/webhook-deliveries?account_id=acc_other')).status).toBe(400)
  expect(told(await browser().get('/account/webhook-deliveries'))).toEqual(notSignedIn)
})

test('orders are asked for by the account that is signed in, and come as a list and as CSV', async () => {
  const own = await signIn()
  const accountId = (await own.get('/account')).json.data.account_id
  const listed = await own.get('/account/orders?status=NEW&limit=1')
  expect(listed.json.data).toMatchObject({ orders: [{ order_id: orderView.order_id }], next_cursor: null })
  expect(desk.asked.at(-1)?.args[0]).toBe(accountId)
  expect((await own.get('/account/orders?account_id=acc_other')).status).toBe(400)
  const csv = await own.get('/account/orders.csv?created_after=2026-01-01T00:00:00Z')
  expect(csv.headers.get('content-disposition')).toBe('attachment; filename="orders.csv"')
  expect(csv.headers.get('cache-control')).toBe('no-store')
  const [head, row, end] = csv.text.split('\r\n')
  expect(head?.split(',').slice(0, 3)).toEqual(['order_id', 'status', 'created_at'])
  expect(row).toContain(`${orderView.order_id},NEW,2026-09-21T14:13:20.000Z`)
  expect(end).toBe('')
})

test('more orders than an export holds are refused, not left out', async () => {
  const orders = Array.from({ length: 500 }, () => orderView)
  const next = { createdAtMs: 1, orderId: orderView.order_id }
  let pages = 0
  let pagesMax = Number.POSITIVE_INFINITY
  const listOrders: typeof desk.listOrders = async () => {
    pages += 1
    return { orders, next: pages === pagesMax ? null : next }
  }
  const many = await startHttp({ desk: fakeDesk({ listOrders }), parts: { owners: place } })
  const own = await signIn()
  const cookie = `cambist_session=${own.cookies.get('cambist_session')}`
  const answer = await many.request('GET', '/account/orders.csv', { headers: { Cookie: cookie } })
  expect([answer.status, answer.json.details[0].field]).toEqual([400, 'created_after'])
  pages = 0
  pagesMax = 20
  const all = await many.request('GET', '/account/orders.csv', { headers: { Cookie: cookie } })
  expect(all.text.trimEnd().split('\r\n')).toHaveLength(10_000 + 1)
  await many.close()
})

test('an export costs as much as the creation of an order', async () => {
  const limits = { unitsPerMinute: 60, createUnits: 50 }
  const limited = await startHttp({ parts: { owners: place }, limits })
  const own = await signIn()
  const cookie = `cambist_session=${own.cookies.get('cambist_session')}`
  const answer = await limited.request('GET', '/account/orders.csv', { headers: { Cookie: cookie } })
  expect([answer.status, answer.headers.get('ratelimit')]).toEqual([200, '"minute";r=10;t=60'])
  await limited.close()
})

test('others have their turn after every page of an export', async () => {
  const turns = { count: 0, isOver: false, readIn: new Map<number, number>() }
  const count = () => {
    turns.count += 1
    if (!turns.isOver) setImmediate(count)
  }
  const watched = {
    ...orderView,
    get order_id() {
      turns.readIn.set(turns.count, (turns.readIn.get(turns.count) ?? 0) + 1)
      return orderView.order_id
    },
  }
  let pages = 0
  const next = { createdAtMs: 1, orderId: orderView.order_id }
  const listOrders: typeof desk.listOrders = async (_accountId, _filter, { limit }) => {
    pages += 1
    return { orders: Array.from({ length: limit }, () => watched), next: pages * limit < 3_000 ? next : null }
  }
  const many = await startHttp({ desk: fakeDesk({ listOrders }), parts: { owners: place } })
  const own = await signIn()
  const cookie = `cambist_session=${own.cookies.get('cambist_session')}`
  count()
  const answer = await many.request('GET', '/account/orders.csv', { headers: { Cookie: cookie } })
  turns.isOver = true
  await many.close()
  expect(answer.text.match(/\r\n/g)).toHaveLength(3_001)
  expect(Math.max(...turns.readIn.values())).toBe(500)
})

test('an account has two exports in memory, however many it asks for and does not take', async () => {
  const large = { ...orderView, callback_url: `https://example.com/${'a'.repeat(2_000)}` }
  let begun = 0
  let ended = 0
  let mostAtOnce = 0
  const listOrders: typeof desk.listOrders = async (_accountId, _filter, { after, limit }) => {
    if (after === null) {
      begun += 1
      mostAtOnce = Math.max(mostAtOnce, begun - ended)
    }
    const page = (after?.createdAtMs ?? 0) + 1
    const next = page < 20 ? { createdAtMs: page, orderId: orderView.order_id } : null
    return { orders: Array.from({ length: limit }, () => large), next }
  }
  const many = await startHttp({ desk: fakeDesk({ listOrders }), parts: { owners: place } })
  const own = await signIn()
  const headers = { Cookie: `cambist_session=${own.cookies.get('cambist_session')}` }
  const answered: IncomingMessage[] = []
  const asked = Array.from({ length: 5 }, () =>
    get(`${many.base}/account/orders.csv`, { headers, agent: false }, (answer) => answered.push(answer)),
  )
  for (const request of asked) request.on('error', () => {})
  for (ended = 0; ended < asked.length; ended += 1) {
    await expect.poll(() => answered.length).toBeGreaterThan(ended)
    answered[ended]?.destroy()
  }
  expect([begun, mostAtOnce]).toEqual([5, 2])
  await many.close()
})

test('an address changes when both have agreed, in any order, and not before', async () => {
  for (const order of [
    ['old', 'new'],
    ['new', 'old'],
  ] as const) {
    const email = `${order.join('-')}@example.com`
    const next = `next-${email}`
    const own = await signIn(email)
    const { account_id: accountId } = (await own.get('/account')).json.data
    const elsewhere = await signIn(email)
    const asked = await own.send('POST', '/account/email', { email: next })
    expect(asked.json.data).toMatchObject({ new_email: next, old_agreed: false, new_agreed: false })
    const tokens = {
      old: tokenOf((await mailsTo(email)).find(({ kind }) => kind === 'email_change_old')?.data.link ?? ''),
      new: tokenOf((await mailsTo(next)).find(({ kind }) => kind === 'email_change_new')?.data.link ?? ''),
    }
    const agree = (token: string) => browser().send('POST', '/account/email/agree', { token })
    expect((await agree(tokens[order[0]])).json.data).toEqual({ new_email: next, is_changed: false })
    expect((await agree(tokens[order[0]])).json.data).toEqual({ new_email: next, is_changed: false })
    expect((await own.get('/account')).json.data).toMatchObject({
      email,
      email_change: { [`${order[0]}_agreed`]: true, [`${order[1]}_agreed`]: false },
    })
    // A link that waits for the old address is of no use once it is the account's no more.
    const waiting = browser()
    const link = await askLink(waiting, email)
    expect((await agree(tokens[order[1]])).json.data).toEqual({ new_email: next, is_changed: true })
    // Whoever could read the mails of the old address may have signed in with it.
    for (const session of [own, elsewhere]) expect((await session.get('/account')).status).toBe(401)
    const { data } = (await (await signIn(next)).get('/account')).json
    expect(data).toMatchObject({ account_id: accountId, name: next, email: next, email_change: null })
    expect(told(await waiting.send('POST', '/account/session', { token: link }))).toEqual(linkInvalid)
    expect(told(await agree(tokens.old))).toEqual(linkInvalid)
    const noticesTo = async (to: string) =>
      (await mailsTo(to)).filter(({ kind }) => kind === 'security_notice').map(({ data }) => data.is_former)
    // The address that was left signs in to that account no more, and must not be told to.
    expect([await noticesTo(email), await noticesTo(next)]).toEqual([[true], [undefined]])
  }
})

test.each(['a session that begins', 'a change that is asked for'])(
  'an account that the operator gives another address does not keep %s at that moment',
  async (what) => {
    const own = await signIn()
    const { account_id: accountId } = (await own.get('/account')).json.data
    const waiting = browser()
    const token = await askLink(waiting, 'owner@example.com')
    const isDone = Promise.withResolvers<void>()
    const mayEnd = Promise.withResolvers<void>()
    const taking = db.transaction(async (tx) => {
      await setEmail({ ...place, db: within(tx) }, operator, accountId, 'rescued@example.com')
      isDone.resolve()
      await mayEnd.promise
    })
    await isDone.promise
    const asked =
      what === 'a session that begins'
        ? waiting.send('POST', '/account/session', { token })
        : own.send('POST', '/account/email', { email: 'thief@example.com' })
    await soon(async () => {
      const waits = await superuser.query(`SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'`)
      expect(waits.rows).toHaveLength(1)
    })
    mayEnd.resolve()
    await taking
    const answer = await asked
    expect([answer.status, answer.json.data?.account_id === accountId]).toEqual([
      what === 'a session that begins' ? 200 : 409,
      false,
    ])
    const kept = await superuser.query(
      'SELECT 1 FROM sessions WHERE account_id = $1 UNION ALL SELECT 1 FROM email_changes',
      [accountId],
    )
    expect(kept.rows).toEqual([])
  },
)

test('a change that was asked for before the operator gave the account another address comes to nothing', async () => {
  const own = await signIn()
  const { account_id: accountId } = (await own.get('/account')).json.data
  expect((await own.send('POST', '/account/email', { email: 'thief@example.com' })).status).toBe(200)
  const linksTo = async (to: string) =>
    (await mailsTo(to)).filter(({ kind }) => kind.startsWith('email_change_')).map(({ data }) => data.link)
  const links = [...(await linksTo('owner@example.com')), ...(await linksTo('thief@example.com'))]
  expect(links).toHaveLength(2)
  await setEmail(place, operator, accountId, 'rescued@example.com')
  expect((await own.get('/account')).status).toBe(401)
  for (const link of links) {
    const agreed = await browser().send('POST', '/account/email/agree', { token: tokenOf(link) })
    expect(told(agreed)).toEqual(linkInvalid)
  }
  const rescued = await signIn('rescued@example.com')
  expect((await rescued.get('/account')).json.data).toMatchObject({
    account_id: accountId,
    email_change: null,
  })
})

test('a change of the address is stopped, given up, replaced, and too old after a day', async () => {
  const own = await signIn()
  const ask = async (email: string) => {
    expect((await own.send('POST', '/account/email', { email })).status).toBe(200)
    now += 1
    const [mail] = (await mailsTo('owner@example.com')).filter(({ kind }) => kind === 'email_change_old')
    return tokenOf(mail?.data.link ?? '')
  }
  const agree = (token: string) => browser().send('POST', '/account/email/agree', { token })
  const stopped = await ask('a@example.com')
  expect((await browser().send('POST', '/account/email/stop', { token: stopped })).status).toBe(200)
  expect(told(await agree(stopped))).toEqual(linkInvalid)
  const replaced = await ask('b@example.com')
  const givenUp = await ask('c@example.com')
  expect(told(await agree(replaced))).toEqual(linkInvalid)
  expect((await own.send('DELETE', '/account/email')).status).toBe(200)
  expect((await own.send('DELETE', '/account/email')).status).toBe(200)
  expect(told(await agree(givenUp))).toEqual(linkInvalid)
  const old = await ask('d@example.com')
  now += 24 * 3_600_000
  expect(told(await agree(old))).toEqual(linkInvalid)
  expect(told(await agree('A'.repeat(43)))).toEqual(linkInvalid)
  await signIn('owner@example.com', own)
  expect((await own.get('/account')).json.data).toMatchObject({
    email: 'owner@example.com',
    email_change: null,
  })
  expect(told(await own.send('POST', '/account/email', { email: 'owner@example.com' }))).toEqual(conflict)
})

test.each(['old', 'new'] as const)(
  'what the %s address has agreed to is that change, and not the next one that is asked for',
  async (side) => {
    const own = await signIn()
    const ask = async (email: string) => {
      now += 1
      expect((await own.send('POST', '/account/email', { email })).status).toBe(200)
      const linkTo = async (to: string, kind: string) =>
        tokenOf((await mailsTo(to)).find((mail) => mail.kind === kind)?.data.link ?? '')
      return {
        old: await linkTo('owner@example.com', 'email_change_old'),
        new: await linkTo(email, 'email_change_new'),
      }
    }
    const agree = async (token: string) =>
      (await browser().send('POST', '/account/email/agree', { token })).json.data
    const first = await ask('next@example.com')
    expect(await agree(first[side])).toEqual({ new_email: 'next@example.com', is_changed: false })
    const second = await ask('thief@example.com')
    expect((await own.get('/account')).json.data.email_change).toMatchObject({
      old_agreed: false,
      new_agreed: false,
    })
    const other = second[side === 'old' ? 'new' : 'old']
    expect(await agree(other)).toEqual({ new_email: 'thief@example.com', is_changed: false })
    expect((await own.get('/account')).json.data.email).toBe('owner@example.com')
  },
)

test('an address that is asked about is limited as it is for links, whoever asks', async () => {
  now += 900_000 - (now % 900_000)
  const own = await signIn()
  const ask = (email: string) => own.send('POST', '/account/email', { email })
  for (let index = 0; index < defaultLimits.mailsPerEmail; index += 1)
    await askLink(browser(), 'flooded@example.com')
  expect(told(await ask('flooded@example.com'))).toEqual([429, 'RATE_LIMITED'])
  expect(await mailsTo('flooded@example.com')).toHaveLength(defaultLimits.mailsPerEmail)
  expect((await ask('calm@example.com')).status).toBe(200)
})

test('an account asks for another address five times within a quarter of an hour, whichever ones', async () => {
  now += 900_000 - (now % 900_000)
  const own = await signIn()
  const ask = (index: number) => own.send('POST', '/account/email', { email: `next${index}@example.com` })
  for (let index = 1; index <= defaultLimits.mailsPerEmail; index += 1)
    expect((await ask(index)).status).toBe(200)
  expect(told(await ask(defaultLimits.mailsPerEmail + 1))).toEqual([429, 'RATE_LIMITED'])
  expect(await mailsTo(`next${defaultLimits.mailsPerEmail + 1}@example.com`)).toEqual([])
})

test('whoever has an address that is longer than the name of an account may be signs in', async () => {
  const email = `owner@${'a-long-part-of-a-domain.'.repeat(5)}example.com`
  const { data } = (await (await signIn(email)).get('/account')).json
  expect(data).toMatchObject({ email, name: email.slice(0, 100) })
})

test('a name that no database could keep is nobody’s', async () => {
  const own = await signIn()
  for (const [method, path, body] of [
    ['PUT', '/account/webhooks/we_0123456789abcdef%00', { enabled: true }],
    ['DELETE', '/account/webhooks/%00', undefined],
    ['DELETE', '/account/keys/ck_0123456789%00', undefined],
    ['DELETE', '/account/sessions/%00', undefined],
  ] as const) {
    const { status, json } = await own.send(method, path, body)
    expect([status, json.error_code]).toEqual(notFound)
  }
})

test('an address that is another account’s shows only to who reads its mails', async () => {
  await signIn('taken@example.com')
  const own = await signIn()
  const free = await own.send('POST', '/account/email', { email: 'free@example.com' })
  const taken = await own.send('POST', '/account/email', { email: 'taken@example.com' })
  expect([taken.status, Object.keys(taken.json.data)]).toEqual([200, Object.keys(free.json.data)])
  const tokens = await Promise.all(
    [
      ['owner@example.com', 'email_change_old'],
      ['taken@example.com', 'email_change_new'],
    ].map(async ([to = '', wanted]) => {
      const found = (await mailsTo(to)).filter(({ kind, data }) => {
        return kind === wanted && (data.new_email ?? 'taken@example.com') === 'taken@example.com'
      })
      return tokenOf(found[0]?.data.link ?? '')
    }),
  )
  const agree = (token = '') => browser().send('POST', '/account/email/agree', { token })
  expect((await agree(tokens[0])).status).toBe(200)
  expect(told(await agree(tokens[1]))).toEqual(conflict)
  expect((await own.get('/account')).json.data.email).toBe('owner@example.com')
})

test('every act is in the log that its owner sees, and the log verifies', async () => {
  const own = await signIn()
  const stranger = await signIn('stranger@example.com')
  const { key_id: keyId } = (await own.send('POST', '/account/keys', {})).json.data
  await own.send('POST', `/account/keys/${keyId}/rotate`)
  await own.send('DELETE', `/account/keys/${keyId}`)
  await own.send('PUT', '/account/notifications', { emails: 'off', muted: [] })
  const url = 'https://hooks.example.com/in'
  const { endpoint_id: endpointId } = (await own.send('POST', '/account/webhooks', { url })).json.data
  await own.send('PUT', `/account/webhooks/${endpointId}`, { enabled: false })
  await own.send('DELETE', `/account/webhooks/${endpointId}`)
  await own.send('POST', '/account/webhook-secrets/rotate')
  await own.send('POST', '/account/email', { email: 'x@example.com' })
  await own.send('DELETE', '/account/email')
  // Refused, and so no acts.
  await stranger.send('DELETE', `/account/keys/${keyId}`)
  await own.send('DELETE', '/account/keys/ck_nobodynobody')
  const { entries } = (await own.get('/account/audit')).json.data
  expect(entries.map(({ act }: { act: string }) => act).reverse()).toEqual([
    'account_created',
    'signed_in',
    'key_created',
    'key_rotated',
    'key_revoked',
    'notifications_changed',
    'endpoint_created',
    'endpoint_changed',
    'endpoint_deleted',
    'webhook_secret_rotated',
    'email_change_asked',
    'email_change_cancelled',
  ])
  const session = (await own.get('/account')).json.data.session_id
  expect(entries[0]).toMatchObject({
    sequence: 12,
    actor: 'owner',
    address: '127.0.0.1',
    detail: { session },
  })
  const page = await own.get('/account/audit?limit=2&before=11')
  expect(page.json.data.entries).toEqual(entries.slice(2, 4))
  expect((await stranger.get('/account/audit')).json.data.entries).toHaveLength(2)
  expect((await verifyAudit(db, [])).problems).toEqual([])
  const secrets = JSON.stringify(entries)
  expect(secrets).not.toContain('whsec_')
  expect(secrets).not.toMatch(/[0-9a-f]{64}.*"secret"/)
})

/** A server of its own whose limits are narrow and whose minute does not pass, and how often it has looked a session up. */
async function startNarrow(unitsPerMinute: number) {
  let reads = 0
  const counted: Database = {
    query: (text, values) => {
      if (text.includes('token_hash')) reads += 1
      return db.query(text, values)
    },
    transaction: (act) => db.transaction(act),
    close: async () => {},
  }
  const parts = { owners: { ...place, db: counted }, clock: { ...systemClock(), wallMs: () => now } }
  const narrow = await startHttp({ desk, parts, limits: { unitsPerMinute } })
  const ask = (session: string, method = 'GET', target = '/account') => {
    const headers = { Cookie: `cambist_session=${session}`, Origin: narrow.base }
    return narrow.request(method, target, { headers })
  }
  return {
    narrow,
    ask,
    statusOf: async (session: string) => (await ask(session)).status,
    reads: () => reads,
  }
}

const sessionOf = ({ cookies }: Browser) => cookies.get('cambist_session') ?? ''

test('an address that makes up sessions is refused before they are looked up, and who is signed in goes on', async () => {
  const { narrow, statusOf, reads } = await startNarrow(100)
  const signedIn = sessionOf(await signIn())
  expect(await statusOf(signedIn)).toBe(200)
  // No session is no guess: it takes a unit from those that follow, and lets as many be looked up.
  expect((await narrow.request('GET', '/account')).status).toBe(401)
  const statuses = await Promise.all(
    Array.from({ length: 300 }, () => statusOf(randomBytes(32).toString('base64url'))),
  )
  expect(new Set(statuses)).toEqual(new Set([401, 429]))
  expect(statuses.filter((status) => status === 401)).toHaveLength(99)
  expect(reads()).toBe(1 + 100)
  expect(await statusOf(signedIn)).toBe(200)
  await narrow.close()
})

test('a session that has spent its units is not looked up, and one that has ended is asked of the database', async () => {
  const { narrow, statusOf, reads } = await startNarrow(100)
  const own = await signIn()
  expect(await statusOf(sessionOf(own))).toBe(200)
  const statuses = await Promise.all(Array.from({ length: 300 }, () => statusOf(sessionOf(own))))
  expect(statuses.filter((status) => status === 200)).toHaveLength(99)
  expect(statuses.filter((status) => status === 429)).toHaveLength(201)
  expect(reads()).toBe(100)

  const other = await signIn('other@example.com')
  const ended = sessionOf(other)
  expect(await statusOf(ended)).toBe(200)
  expect((await other.send('DELETE', '/account/session')).status).toBe(200)
  expect(await statusOf(ended)).toBe(401)
  await narrow.close()
})

test('a session that sends too much keeps no other of its account from ending it, and all of them have four times what one has', async () => {
  const { narrow, ask, statusOf } = await startNarrow(5)
  const stolen = await signIn()
  const others: string[] = []
  for (let index = 0; index < 4; index += 1) others.push(sessionOf(await signIn()))
  const stolenId = (await stolen.get('/account')).json.data.session_id
  const untilRefused = async (session: string) => {
    for (let count = 0; ; count += 1) if ((await statusOf(session)) === 429) return count
  }
  expect(await untilRefused(sessionOf(stolen))).toBe(5)
  const [own = '', ...rest] = others
  expect((await ask(own, 'DELETE', `/account/sessions/${stolenId}`)).status).toBe(200)
  expect(await untilRefused(own)).toBe(4)
  const [third = '', fourth = '', fifth = ''] = rest
  expect([await untilRefused(third), await untilRefused(fourth)]).toEqual([5, 5])
  const refused = await ask(fifth)
  expect(told(refused)).toEqual([429, 'RATE_LIMITED'])
  expect(refused.headers.get('RateLimit')).toBe('"account-minute";r=0;t=60')
  await narrow.close()
})
