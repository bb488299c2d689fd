import MailComposer from 'nodemailer/lib/mail-composer'
import SmtpConnection from 'nodemailer/lib/smtp-connection'
import type { Clock } from '../../clock.ts'
import { SECOND_MS } from '../../domain/time.ts'
import type { Mail, MailAnswer, MailChannel } from '../channel.ts'

export type SmtpSettings = {
  readonly host: string
  readonly port: number
  /** `tls`: from the first byte. `starttls`: before anything is said. Certificates are checked in both. `none`: never. */
  readonly security: 'tls' | 'starttls' | 'none'
  readonly auth: { readonly user: string; readonly pass: string } | null
  /** Bare, as in `orders@exchange.example.org`; also where bounces go. */
  readonly fromAddress: string
  readonly fromName: string
}

export type SmtpTimes = {
  readonly connectMs: number
  readonly greetingMs: number
  /** Of silence. */
  readonly silenceMs: number
  /** For the whole conversation, however lively. */
  readonly wholeMs: number
}

const usualTimes: SmtpTimes = {
  connectMs: 10 * SECOND_MS,
  greetingMs: 10 * SECOND_MS,
  silenceMs: 20 * SECOND_MS,
  wholeMs: 60 * SECOND_MS,
}

/** Hands mails to one mail server, each in a conversation of its own: what ends one ends no other. */
export function smtpChannel(
  settings: SmtpSettings,
  clock: Pick<Clock, 'sleep'>,
  times: SmtpTimes = usualTimes,
): MailChannel {
  const underWay = new Set<SmtpConnection>()
  return {
    async send(mail) {
      const connection = connect(settings, times)
      underWay.add(connection)
      try {
        const raw = await compose(settings, mail)
        return await orTooLong(converse(connection, settings, mail.to, raw), clock, times.wholeMs)
      } catch (error) {
        return answerOf(error)
      } finally {
        underWay.delete(connection)
        connection.close()
      }
    },
    async close() {
      for (const connection of underWay) connection.close()
    },
  }
}

function connect({ host, port, security }: SmtpSettings, times: SmtpTimes): SmtpConnection {
  return new SmtpConnection({
    host,
    port,
    secure: security === 'tls',
    requireTLS: security === 'starttls',
    ignoreTLS: security === 'none',
    tls: { rejectUnauthorized: true, minVersion: 'TLSv1.2' },
    connectionTimeout: times.connectMs,
    dnsTimeout: times.connectMs,
    greetingTimeout: times.greetingMs,
    socketTimeout: times.silenceMs,
    socketCloseTimeout: 0,
  })
}

async function compose({ fromAddress, fromName }: SmtpSettings, mail: Mail): Promise<Buffer> {
  const composer = new MailComposer({
    from: { name: fromName, address: fromAddress },
    to: { name: '', address: mail.to },
    subject: mail.subject,
    text: mail.text,
    html: mail.html,
    messageId: `<${mail.messageId}>`,
    headers: {
      // RFC 3834: whoever answers by machine does not answer this.
      'Auto-Submitted': 'auto-generated',
      ...(mail.unsubscribeUrl !== null && {
        'List-Unsubscribe': `<${mail.unsubscribeUrl}>`,
        'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
      }),
    },
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  return composer.compile().build()
}

async function converse(
  connection: SmtpConnection,
  { auth, fromAddress }: SmtpSettings,
  to: string,
  raw: Buffer,
): Promise<MailAnswer> {
  await new Promise<void>((resolve, reject) => {
    // For as long as it lives: an error that nobody listens to would end the process.
    connection.on('error', reject)
    connection.once('end', () => reject(new Error('the mail server hung up')))
    connection.connect((error) => (error ? reject(error) : resolve()))
  })
  if (auth !== null) {
    await new Promise<void>((resolve, reject) => {
      connection.once('end', () => reject(new Error('the mail server hung up')))
      connection.login({ user: auth.user, pass: auth.pass }, (error) => (error ? reject(error) : resolve()))
    })
  }
  return new Promise((resolve, reject) => {
    connection.once('end', () => reject(new Error('the mail server hung up')))
    connection.once('error', reject)
    connection.send({ from: fromAddress, to: [to] }, raw, (error, info) => {
      if (error) return reject(error)
      connection.quit()
      resolve({ kind: 'accepted', said: info?.response ?? '' })
    })
  })
}

async function orTooLong<Value>(
  work: Promise<Value>,
  clock: Pick<Clock, 'sleep'>,
  wholeMs: number,
): Promise<Value> {
  const over = new AbortController()
  const tooLong = clock.sleep(wholeMs, over.signal).then(() => {
    throw new Error(`the mail server took longer than ${wholeMs} ms`)
  })
  // Whichever comes second has nobody left to tell.
  tooLong.catch(() => {})
  work.catch(() => {})
  try {
    return await Promise.race([work, tooLong])
  } finally {
    over.abort()
  }
}

type Failure = {
  readonly message: string
  readonly code?: string
  readonly command?: string
  readonly response?: string
  readonly responseCode?: number
}

/** They are about us, not about the mail: who we are, and how we talk (RFC 4954 §6, RFC 3207 §4). */
const aboutUs = [502, 503, 504, 530, 534, 535, 538]

/** X.7.Z is what we may not do (RFC 3463 §3.8): said to a recipient, such as "relay access denied", it is about every one. */
const FORBIDDEN = /^5\d\d[ -]5\.7\./

/**
 * Only what is said to the recipient or to the mail itself refuses the mail for good. What is said earlier (a greeting,
 * a password, a sender) is the operator's to mend, and the mail waits for that.
 */
function answerOf(error: unknown): MailAnswer {
  const { message, code, command, response = '', responseCode } = error as Failure
  // An address that no mail server could be told.
  if (code === 'EENVELOPE' && command === 'API') return { kind: 'refused', said: message }
  const isAboutMail = command === 'RCPT TO' || command === 'DATA'
  const isForGood = responseCode !== undefined && responseCode >= 500 && responseCode <= 599
  const isForbidden = command === 'RCPT TO' && FORBIDDEN.test(response)
  if (isAboutMail && isForGood && !isForbidden && !aboutUs.includes(responseCode))
    return { kind: 'refused', said: message }
  return { kind: 'failed', why: message }
}
