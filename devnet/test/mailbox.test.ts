import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { type Mailbox, openMailbox } from '../src/mailbox/open_mailbox.ts'

/**
 * What: the mailbox takes what is sent to it, shows the newest first, and still has it after a restart.
 * How: SMTP spoken by hand over a socket, so that nothing is believed of any client.
 */
function openIn(dataDir: string): Promise<Mailbox> {
  const opening = openMailbox(dataDir)
  onTestFinished(async () => (await opening).stop())
  return opening
}

function freshFolder(): string {
  const dataDir = mkdtempSync(join(tmpdir(), 'cambist-mailbox-'))
  onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }))
  return dataDir
}

/** Sends these lines one after the other, each when the one before was answered; answers the codes. */
function speak(port: number, lines: readonly string[]): Promise<string[]> {
  return new Promise((resolve, reject) => {
    const codes: string[] = []
    const socket = connect(port, '127.0.0.1')
    socket.on('error', reject).on('close', () => resolve(codes))
    socket.setEncoding('utf8').on('data', (text: string) => {
      for (const line of text.split('\r\n')) {
        const [, code] = /^(\d{3}) /.exec(line) ?? []
        if (code === undefined) continue
        codes.push(code)
        const next = lines[codes.length - 1]
        if (next === undefined) socket.end()
        else socket.write(`${next}\r\n`)
      }
    })
  })
}

const send = (port: number, subject: string) =>
  speak(port, [
    'EHLO test',
    'MAIL FROM:<a@example.org>',
    'RCPT TO:<b@example.org>',
    'DATA',
    `Message-ID: <${subject}@example.org>\r\nFrom: A <a@example.org>\r\nSubject: ${subject}\r\n\r\nHello\r\n.`,
    'QUIT',
  ])

test('what was taken is kept, newest first, also after a restart', async () => {
  const dataDir = freshFolder()
  const mailbox = await openIn(dataDir)
  expect(mailbox.smtpUrl).toBe(`smtp://127.0.0.1:${mailbox.port}`)
  for (const subject of ['one', 'two']) {
    expect(await send(mailbox.port, subject)).toEqual(['220', '250', '250', '250', '354', '250', '221'])
  }
  const before = await mailbox.mails()
  expect(before).toMatchObject([
    { number: 2, subject: 'two', from: 'a@example.org', to: 'b@example.org', html: null },
    { number: 1, subject: 'one', messageId: '<one@example.org>', text: 'Hello\n' },
  ])
  expect(await mailbox.raw('<one@example.org>')).toContain('Subject: one')
  expect(await mailbox.raw('<three@example.org>')).toBeNull()
  await mailbox.stop()
  // A crash in the middle of writing leaves a draft, which is no mail.
  writeFileSync(join(dataDir, '000000003.json.new'), '{"to":')
  const again = await openIn(dataDir)
  expect(await again.mails()).toEqual(before)
  await send(again.port, 'three')
  expect((await again.mails()).map(({ number, subject }) => [number, subject])).toEqual([
    [3, 'three'],
    [2, 'two'],
    [1, 'one'],
  ])
  expect(readdirSync(dataDir).filter((file) => file.endsWith('.json'))).toHaveLength(3)
})

test('a mail that a cut of the power left empty is gone, and the others are there', async () => {
  const dataDir = freshFolder()
  const mailbox = await openIn(dataDir)
  await send(mailbox.port, 'one')
  await mailbox.stop()
  writeFileSync(join(dataDir, '000000002.json'), '')
  const again = await openIn(dataDir)
  expect((await again.mails()).map(({ subject }) => subject)).toEqual(['one'])
  expect(readdirSync(dataDir)).toEqual(['000000001.json'])
  await send(again.port, 'two')
  expect((await again.mails()).map(({ number, subject }) => [number, subject])).toEqual([
    [2, 'two'],
    [1, 'one'],
  ])
})

test('a sender that goes away in the middle leaves nothing', async () => {
  const mailbox = await openIn(freshFolder())
  await speak(mailbox.port, ['EHLO test', 'MAIL FROM:<a@example.org>', 'RCPT TO:<b@example.org>', 'DATA'])
  expect(await send(mailbox.port, 'whole')).toContain('354')
  expect((await mailbox.mails()).map(({ subject }) => subject)).toEqual(['whole'])
})
