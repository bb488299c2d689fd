import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import PostalMime from 'postal-mime'
import { SMTPServer } from 'smtp-server'

/** A mail as somebody sees who opens it. */
export type KeptMail = {
  /** Counts up with every mail that came. */
  readonly number: number
  readonly messageId: string
  readonly to: string
  readonly from: string
  readonly subject: string
  readonly text: string
  readonly html: string | null
  readonly receivedAtMs: number
}

/** A real mail server on loopback that takes whatever comes, for anybody, and shows it. */
export type Mailbox = {
  /** `smtp://127.0.0.1:<port>` */
  readonly smtpUrl: string
  readonly port: number
  /** Newest first. */
  mails(): Promise<readonly KeptMail[]>
  /** The newest mail with this Message-ID, as it came over the wire; null when there is none. */
  raw(messageId: string): Promise<string | null>
  stop(): Promise<void>
}

type Stored = { readonly to: string; readonly receivedAtMs: number; readonly raw: string }

/** The oldest go first: the folder of a sandbox that runs for months must not grow for ever. */
const KEPT_MAX = 250
const FILE = /^(\d{9})\.json$/

/**
 * Opens the mailbox of this folder on a free port. A mail is with the kernel before its sender is told that it came: a kill -9 of this
 * process does not lose it, a cut of the power may. What that has left of a mail is deleted.
 */
export async function openMailbox(dataDir: string): Promise<Mailbox> {
  mkdirSync(dataDir, { recursive: true })
  const kept = new Map<number, Promise<KeptMail>>()
  for (const number of readdirSync(dataDir).flatMap(numberOf).toSorted(ascending)) {
    const stored = loadWhole(number)
    if (stored === null) rmSync(pathOf(number))
    else kept.set(number, read(number, stored))
  }
  let last = Math.max(0, ...kept.keys())

  function pathOf(number: number): string {
    return join(dataDir, `${String(number).padStart(9, '0')}.json`)
  }

  function load(number: number): Stored {
    return JSON.parse(readFileSync(pathOf(number), 'utf8')) as Stored
  }

  /** Null: no mail can be read from the file. */
  function loadWhole(number: number): Stored | null {
    try {
      return load(number)
    } catch (error) {
      if (error instanceof SyntaxError) return null
      throw error
    }
  }

  async function mails(): Promise<readonly KeptMail[]> {
    return (await Promise.all(kept.values())).toReversed()
  }

  function keep(stored: Stored): void {
    last += 1
    const draft = `${pathOf(last)}.new`
    writeFileSync(draft, JSON.stringify(stored))
    renameSync(draft, pathOf(last))
    kept.set(last, read(last, stored))
    for (const number of [...kept.keys()].slice(0, Math.max(0, kept.size - KEPT_MAX))) {
      kept.delete(number)
      rmSync(pathOf(number), { force: true })
    }
  }

  const server = await listen(keep)
  const { port } = server.server.address() as AddressInfo
  return {
    smtpUrl: `smtp://127.0.0.1:${port}`,
    port,
    mails,
    raw: async (messageId) => {
      const mail = (await mails()).find((each) => each.messageId === messageId)
      return mail === undefined ? null : load(mail.number).raw
    },
    stop: () => new Promise((resolve) => server.close(() => resolve())),
  }
}

async function listen(keep: (stored: Stored) => void): Promise<SMTPServer> {
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS', 'AUTH'],
    disableReverseLookup: true,
    logger: false,
    closeTimeout: 200,
    onData: (stream, { envelope }, callback) => {
      const chunks: Buffer[] = []
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('end', () => {
        const raw = Buffer.concat(chunks).toString('utf8')
        const to = envelope.rcptTo.map(({ address }) => address).join(', ')
        try {
          keep({ to, receivedAtMs: Date.now(), raw })
          callback(null)
        } catch (error) {
          callback(error as Error)
        }
      })
    },
  })
  // Of a client that went away in the middle: it comes again.
  server.on('error', () => {})
  await new Promise<void>((resolve, reject) => {
    server.server.once('error', reject)
    server.listen(0, '127.0.0.1', resolve)
  })
  return server
}

function numberOf(file: string): number[] {
  const [, digits] = FILE.exec(file) ?? []
  return digits === undefined ? [] : [Number.parseInt(digits, 10)]
}

function ascending(left: number, right: number): number {
  return left - right
}

async function read(number: number, { to, receivedAtMs, raw }: Stored): Promise<KeptMail> {
  const mail = await PostalMime.parse(raw)
  return {
    number,
    messageId: mail.messageId ?? '',
    to,
    from: mail.from?.address ?? '',
    subject: mail.subject ?? '',
    text: mail.text ?? '',
    html: mail.html ?? null,
    receivedAtMs,
  }
}
