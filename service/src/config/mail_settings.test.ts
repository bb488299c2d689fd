import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { defaultExplorers } from '../domain/catalog/explorers.ts'
import { ConfigError } from './problems.ts'
import { readServeConfig } from './serve_config.ts'

/** What: how mails are sent, read from the environment. How: a notifier's environment, one variable at a time. */
const folder = mkdtempSync(join(tmpdir(), 'cambist-mail-settings-'))
const keyFile = join(folder, 'account.key')
writeFileSync(keyFile, Buffer.from('0123456789abcdef0123456789abcdef').toString('hex'))

const notifier = {
  CAMBIST_ROLES: 'notifier',
  DATABASE_URL: 'postgres://localhost/cambist',
  CAMBIST_ACCOUNT_KEY_FILE: keyFile,
}
const mailing = {
  ...notifier,
  CAMBIST_ORDER_TOKEN_KEY_FILE: keyFile,
  CAMBIST_BASE_URL: 'https://exchange.example.org',
  CAMBIST_SMTP_URL: 'smtp://me%40example.org:p%3Ass@smtp.example.org',
  CAMBIST_MAIL_FROM: 'Orders <orders@exchange.example.org>',
}

afterAll(() => rmSync(folder, { recursive: true }))

function problemsOf(env: Record<string, string>): string[] {
  try {
    readServeConfig(env)
    return []
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.problems.map(({ variable, message }) => `${variable}: ${message}`)
  }
}

test('without a mail server there are no mails, and nothing else is asked for', () => {
  expect(readServeConfig(notifier).mail).toBeNull()
})

test('a mail server, its user, its port, its TLS, and who sends', () => {
  const smtpOf = (url: string) => readServeConfig({ ...mailing, CAMBIST_SMTP_URL: url }).mail?.smtp
  expect(readServeConfig(mailing).mail).toEqual({
    smtp: {
      host: 'smtp.example.org',
      port: 587,
      security: 'starttls',
      auth: { user: 'me@example.org', pass: 'p:ss' },
    },
    fromAddress: 'orders@exchange.example.org',
    fromName: 'Orders',
    explorers: defaultExplorers,
  })
  expect(smtpOf('smtps://relay')).toEqual({ host: 'relay', port: 465, security: 'tls', auth: null })
  expect(smtpOf('smtp://relay')).toEqual({ host: 'relay', port: 587, security: 'starttls', auth: null })
  expect(smtpOf('smtp://[::1]:25?tls=none')).toEqual({
    host: '::1',
    port: 25,
    security: 'none',
    auth: null,
  })
  const bare = readServeConfig({ ...mailing, CAMBIST_MAIL_FROM: 'orders@exchange.example.org' }).mail
  expect(bare).toMatchObject({ fromAddress: 'orders@exchange.example.org', fromName: 'Cambist' })
})

test('what mails need is asked for by name', () => {
  const { CAMBIST_SMTP_URL } = mailing
  const names = problemsOf({ ...notifier, CAMBIST_SMTP_URL }).map((problem) => problem.split(':')[0])
  expect(names.toSorted()).toEqual(['CAMBIST_BASE_URL', 'CAMBIST_MAIL_FROM', 'CAMBIST_ORDER_TOKEN_KEY_FILE'])
})

test.each([
  ['CAMBIST_SMTP_URL', 'http://smtp.example.org'],
  ['CAMBIST_SMTP_URL', 'smtp://smtp.example.org/path'],
  ['CAMBIST_SMTP_URL', 'smtp://smtp.example.org?tls.rejectUnauthorized=false'],
  ['CAMBIST_SMTP_URL', 'smtps://smtp.example.org?tls=none'],
  ['CAMBIST_SMTP_URL', 'smtp://me:p%zz@smtp.example.org'],
  ['CAMBIST_MAIL_FROM', 'nobody'],
  ['CAMBIST_MAIL_FROM', 'A <a@example.org>, B <b@example.org>'],
  ['CAMBIST_MAIL_FROM', 'A\r\nBcc: x@example.org <a@example.org>'],
  ['CAMBIST_EXPLORER_BTC', 'https://example.org/tx/'],
  ['CAMBIST_EXPLORER_BTC', 'javascript:alert({tx})'],
  ['CAMBIST_EXPLORER_SOL', 'https://example.org/{tx}, https://example.org/nothing'],
])('%s may not be %s', (name, value) => {
  const problems = problemsOf({ ...mailing, [name]: value })
  expect(problems).toHaveLength(1)
  expect(problems[0]).toMatch(new RegExp(`^${name}: `))
})

test('a # in the URL of the mail server, which would make it another host, is refused', () => {
  for (const url of [
    'smtp://me:25#ss@smtp.example.org',
    'smtp://smtp.example.org#',
    'smtp://me:p#ss@smtp.example.org',
  ])
    expect(problemsOf({ ...mailing, CAMBIST_SMTP_URL: url }), url).toContainEqual(
      expect.stringMatching(/^CAMBIST_SMTP_URL: has a #.*%23/),
    )
  const escaped = readServeConfig({ ...mailing, CAMBIST_SMTP_URL: 'smtp://me:p%23ss@smtp.example.org' })
  expect(escaped.mail?.smtp.auth).toEqual({ user: 'me', pass: 'p#ss' })
})

test('an explorer is one’s own, or none', () => {
  const { mail } = readServeConfig({
    ...mailing,
    CAMBIST_EXPLORER_BTC: 'https://b.example/{tx}, https://b.example/a/{address}',
    CAMBIST_EXPLORER_ETH: 'https://e.example/{tx}',
    CAMBIST_EXPLORER_BNB: 'none',
  })
  expect(mail?.explorers).toEqual({
    ...defaultExplorers,
    BTC: { tx: 'https://b.example/{tx}', address: 'https://b.example/a/{address}' },
    ETH: { tx: 'https://e.example/{tx}', address: null },
    BNB: null,
  })
})
