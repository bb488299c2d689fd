import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Postgres, removePostgres } from '@cambist/devnet'
import PostalMime from 'postal-mime'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { certificate } from '../../src/channels/email/testing/certificate.ts'
import {
  type MailServer,
  type ReceivedMail,
  startMailServer,
} from '../../src/channels/email/testing/mail_server.ts'
import { type Database, openDatabase } from '../../src/db/database.ts'
import { queueMail } from '../../src/db/mails.ts'
import { eventually } from '../harness/eventually.ts'
import { startMigratedPostgres } from '../harness/migrated_postgres.ts'
import { type RunningProcess, startProcess } from './processes/running_process.ts'

/**
 * What: a notifier that is killed with a mail between sending and noting it sends that mail again, with the same
 * Message-ID, and loses none; one that is stopped waits a moment for its mail server and gives back what it cut off; one whose
 * mail server is away waits for it; TLS is used and its certificate checked. What a notifier lacks it says at the start.
 * How: `cambist serve --roles notifier` as a process of its own on a real PostgreSQL; real mail servers, of which one
 * kills it with SIGKILL when a mail has come whole, before it answers.
 */
const MAILS = 12
let dir: string
let postgres: Postgres
let db: Database

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'cambist-mails-'))
  postgres = await startMigratedPostgres(join(dir, 'postgres'))
  db = openDatabase({
    url: postgres.url,
    connectionsMax: 2,
    applicationName: 'mails crash',
    onConnectionLost: () => {},
  })
})

afterAll(async () => {
  await db?.close()
  await postgres?.stop()
  removePostgres(join(dir, 'postgres'))
  rmSync(dir, { recursive: true, force: true })
})

function keyFile(name: string): string {
  const path = join(dir, `${name}.key`)
  writeFileSync(path, randomBytes(32).toString('hex'), { mode: 0o600 })
  return path
}

function startNotifier(smtpUrl: string, env: Readonly<Record<string, string>> = {}): Promise<RunningProcess> {
  return startProcess({
    roles: 'notifier',
    env: {
      DATABASE_URL: postgres.url,
      PORT: '0',
      CAMBIST_LOG_LEVEL: 'info',
      CAMBIST_ACCOUNT_KEY_FILE: keyFile('account'),
      CAMBIST_ORDER_TOKEN_KEY_FILE: keyFile('token'),
      CAMBIST_BASE_URL: 'https://exchange.example.org',
      CAMBIST_MAIL_FROM: 'Crash test <orders@exchange.example.org>',
      CAMBIST_SMTP_URL: smtpUrl,
      ...env,
    },
    venueOrigins: {},
  })
}

const plainUrl = ({ port }: MailServer) => `smtp://127.0.0.1:${port}?tls=none`

function queueNotice(eventKey: string, to: string): Promise<void> {
  return queueMail(db, {
    kind: 'security_notice',
    data: { what: `This is about ${eventKey}.` },
    eventKey,
    orderId: null,
    accountId: null,
    to,
    nowMs: Date.now(),
  })
}

async function stateOf(eventKey: string) {
  const [row] = await db.query<{ state: string; last_answer: string | null }>(
    'SELECT state, last_answer FROM mails WHERE event_key = $1',
    [eventKey],
  )
  return row
}

const messageIdsOf = (mails: readonly ReceivedMail[]) =>
  Promise.all(mails.map(async ({ raw }) => (await PostalMime.parse(raw)).messageId ?? ''))

test('killed between sending and noting: sent again under the same Message-ID, none lost', async () => {
  let notifier: RunningProcess | null = null
  let kills = 0
  let mailsUntilKill = 2
  const server = await startMailServer({
    onMailCome: async () => {
      mailsUntilKill -= 1
      if (mailsUntilKill > 0 || notifier === null || kills === 2) return
      // The mail is here whole, and who sent it will never hear so.
      kills += 1
      const dying = notifier
      notifier = null
      await dying.kill()
    },
  })
  onTestFinished(async () => {
    await notifier?.kill()
    await server.close()
  })
  for (let number = 1; number <= MAILS; number += 1) {
    await queueNotice(`notice:${number}`, `reader-${number}@example.org`)
  }
  const states = () => db.query<{ state: string; message_id: string }>('SELECT state, message_id FROM mails')
  for (const killsExpected of [1, 2]) {
    mailsUntilKill = 2
    notifier = await startNotifier(plainUrl(server))
    await eventually(`the notifier was killed ${killsExpected} times`, () =>
      expect(kills).toBe(killsExpected),
    )
    expect((await states()).some(({ state }) => state === 'waiting')).toBe(true)
  }
  notifier = await startNotifier(plainUrl(server))
  await eventually('every mail is noted as sent', async () => {
    expect(new Set((await states()).map(({ state }) => state))).toEqual(new Set(['sent']))
  })

  const came = await messageIdsOf(server.received)
  const rows = await states()
  const expected = rows.map(({ message_id }) => `<${message_id}@exchange.example.org>`)
  expect(new Set(came)).toEqual(new Set(expected))
  // Each kill had a mail on its way that nobody noted: it came twice, and a mailbox can tell.
  expect(came.length).toBeGreaterThanOrEqual(MAILS + kills)
  const readers = server.received.map(({ envelope }) => envelope.to.join())
  expect(new Set(readers).size).toBe(MAILS)
})

test('stopped while mail servers are slow: none is waited for long, and what they may have is sent again', async () => {
  const mute = await startMailServer({ mood: 'no greeting' })
  const asked = Promise.withResolvers<void>()
  const pensive = await startMailServer({
    onMailCome: () => {
      asked.resolve()
      return new Promise(() => {})
    },
  })
  const running: RunningProcess[] = []
  onTestFinished(async () => {
    await Promise.all(running.map((notifier) => notifier.kill()))
    await Promise.all([mute.close(), pensive.close()])
  })
  const attempts = () =>
    db.query(`SELECT state, attempts, claimed_until_wall_ms AS until FROM mails WHERE event_key = 'slow'`)
  const untouched = [{ state: 'waiting', attempts: 0, until: 0 }]
  await queueNotice('slow', 'slow@example.org')

  const first = await startNotifier(plainUrl(mute))
  running.push(first)
  await eventually('it is tried', async () => expect(await attempts()).toMatchObject([{ attempts: 1 }]))
  first.send('SIGTERM')
  expect(await first.ended, first.output()).toBe(0)
  expect(await attempts()).toEqual(untouched)

  const second = await startNotifier(plainUrl(pensive))
  running.push(second)
  await asked.promise
  second.send('SIGTERM')
  await eventually('the door is closed', () =>
    expect(fetch(`${second.origin}/healthz`)).rejects.toThrow('fetch failed'),
  )
  expect(second.isRunning(), 'the mail server is still waited for').toBe(true)
  expect(await second.ended, second.output()).toBe(0)
  expect(await attempts()).toEqual(untouched)

  const server = await startMailServer()
  onTestFinished(() => server.close())
  running.push(await startNotifier(plainUrl(server)))
  await eventually('it is sent', async () => expect(await stateOf('slow')).toMatchObject({ state: 'sent' }))
  expect(await messageIdsOf(server.received)).toEqual(await messageIdsOf(pensive.received))
})

test('while the mail server is away mails wait, and go when it is back', async () => {
  const gone = await startMailServer()
  await gone.close()
  const notifier = await startNotifier(plainUrl(gone))
  let back: MailServer | null = null
  onTestFinished(async () => {
    await notifier.kill()
    await back?.close()
  })
  await queueNotice('patience', 'patient@example.org')
  await eventually('it was tried', async () =>
    expect((await stateOf('patience'))?.last_answer).toContain('ECONNREFUSED'),
  )
  expect(await stateOf('patience')).toMatchObject({ state: 'waiting' })
  back = await startMailServer({ port: gone.port })
  await db.query(`UPDATE mails SET due_at_ms = 0 WHERE event_key = 'patience'`)
  await eventually('it is sent', async () =>
    expect(await stateOf('patience')).toMatchObject({ state: 'sent' }),
  )
  expect(back.received.map(({ envelope }) => envelope.to)).toEqual([['patient@example.org']])
})

test('over TLS, from the first byte or by STARTTLS, where the certificate is trusted and only there', async () => {
  const cert = join(dir, 'tls.pem')
  writeFileSync(cert, certificate.cert)
  const direct = await startMailServer({ certificate, secure: true, user: 'me', pass: 'p:ss' })
  const upgraded = await startMailServer({ certificate })
  const running: RunningProcess[] = []
  onTestFinished(async () => {
    await Promise.all(running.map((notifier) => notifier.kill()))
    await Promise.all([direct.close(), upgraded.close()])
  })
  const urls = {
    direct: `smtps://me:p%3Ass@127.0.0.1:${direct.port}`,
    upgraded: `smtp://127.0.0.1:${upgraded.port}`,
  }
  for (const [name, url] of Object.entries(urls)) {
    await queueNotice(name, `${name}@example.org`)
    const doubting = await startNotifier(url)
    running.push(doubting)
    await eventually('an unknown certificate is not trusted', async () =>
      expect((await stateOf(name))?.last_answer).toMatch(/self.signed certificate/),
    )
    await doubting.kill()
    await db.query('UPDATE mails SET due_at_ms = 0 WHERE event_key = $1', [name])
    const trusting = await startNotifier(url, { NODE_EXTRA_CA_CERTS: cert })
    running.push(trusting)
    await eventually(`${name} is sent`, async () =>
      expect(await stateOf(name)).toMatchObject({ state: 'sent' }),
    )
    await trusting.kill()
  }
  const came = [direct, upgraded].map(({ received }) => received.map(({ envelope }) => envelope.to.join()))
  expect(came).toEqual([['direct@example.org'], ['upgraded@example.org']])
})

test('without a mail server the notifier runs and says so', async () => {
  const notifier = await startProcess({
    roles: 'notifier',
    env: {
      DATABASE_URL: postgres.url,
      PORT: '0',
      CAMBIST_LOG_LEVEL: 'info',
      CAMBIST_ACCOUNT_KEY_FILE: keyFile('account'),
    },
    venueOrigins: {},
  })
  onTestFinished(() => notifier.kill())
  expect(notifier.log().map(({ msg }) => msg)).toContain(
    'no mail server is set (CAMBIST_SMTP_URL): no mails are sent',
  )
})

test('secrets that no configured account key opens are warned of at the start', async () => {
  const sealed = Buffer.concat([Buffer.from([1]), Buffer.from('0123456789abcdef', 'hex'), Buffer.alloc(40)])
  await db.query(
    `INSERT INTO accounts (account_id, name, created_at_ms) VALUES ('acc_rotated00', 'Rotated', 1)`,
  )
  await db.query(
    `INSERT INTO webhook_secrets (account_id, slot, sealed, created_at_ms) VALUES ('acc_rotated00', 1, $1, 1)`,
    [sealed],
  )
  const notifier = await startNotifier('smtp://127.0.0.1:1?tls=none')
  onTestFinished(() => notifier.kill())
  expect(notifier.log().filter(({ level }) => level > 30)).toMatchObject([
    { accountKey: '0123456789abcdef', apiSecrets: 0, webhookSecrets: 1 },
  ])
})
