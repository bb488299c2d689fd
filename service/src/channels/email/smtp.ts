import { hostname } from 'node:os'
import { Readable } from 'node:stream'
import MailComposer from 'nodemailer/lib/mail-composer'
import SmtpConnection from 'nodemailer/lib/smtp-connection'
import type { Clock } from '../../clock.ts'
import { SECOND_MS } from '../../domain/time.ts'
import type { Mail, MailAnswer, MailChannel } from '../channel.ts'
import { isOfRecipient, mayBeOfContent, type Refusal } from './whom_it_refuses.ts'

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
  /** From the question for its name until it is greeted and, with STARTTLS, encrypted. */
  readonly connectMs: number
  /** Of these, for its greeting, and again for the encryption: a busy mail server takes its time (RFC 5321 §4.5.3.2.1). */
  readonly greetingMs: number
  /** For the whole conversation, however lively, as long as the mail server has not begun to take the mail. */
  readonly untilTakenMs: number
  /**
   * From then on, for its answer. It may have the mail and look through it, or hold its answer back until another server has it
   * (Exchange: 30 s): cut off there, it gets the mail once more at every attempt (RFC 5321 §4.5.3.2.6).
   */
  readonly answerMs: number
  /** Once closed, for the answer of a mail server that has begun to take the mail: cut off, it would be sent twice. */
  readonly lastAnswersMs: number
}

const usualTimes: SmtpTimes = {
  connectMs: 40 * SECOND_MS,
  greetingMs: 40 * SECOND_MS,
  untilTakenMs: 60 * SECOND_MS,
  answerMs: 120 * SECOND_MS,
  lastAnswersMs: 2 * SECOND_MS,
}

type Conversation = {
  /** From here on the mail server may have the mail, whatever we hear of it. */
  isTaken: boolean
  cutOff(): void
  readonly ended: Promise<void>
}

/** Hands mails to one mail server, each in a conversation of its own: what ends one ends no other. */
export function smtpChannel(
  settings: SmtpSettings,
  clock: Pick<Clock, 'sleep' | 'endOfTurn'>,
  times: SmtpTimes = usualTimes,
): MailChannel {
  const underWay = new Set<Conversation>()
  let isClosed = false
  const begin = () => {
    const cut = Promise.withResolvers<MailAnswer>()
    const end = Promise.withResolvers<void>()
    const one: Conversation = {
      isTaken: false,
      cutOff: () => cut.resolve({ kind: 'cut_off', mayHaveIt: one.isTaken }),
      ended: end.promise,
    }
    underWay.add(one)
    const over = () => {
      underWay.delete(one)
      end.resolve()
    }
    return { one, cut: cut.promise, over }
  }
  return {
    async send(mail) {
      const { one, cut, over } = begin()
      const connection = connect(settings, times)
      try {
        const raw = await compose(settings, mail)
        if (isClosed) return { kind: 'cut_off', mayHaveIt: false }
        const read = readOnce(raw, () => {
          one.isTaken = true
        })
        const answer = converse(connection, settings, clock, mail.to, read)
        return await orTooLong(Promise.race([answer, cut]), one, clock, times)
      } catch (error) {
        return answerOf(error)
      } finally {
        over()
        connection.close()
      }
    },
    async close() {
      isClosed = true
      const taken = [...underWay].filter(({ isTaken }) => isTaken)
      for (const one of underWay) if (!one.isTaken) one.cutOff()
      const heard = new AbortController()
      const allEnded = Promise.all(taken.map(({ ended }) => ended)).then(() => heard.abort())
      await clock.sleep(times.lastAnswersMs, heard.signal)
      for (const one of taken) one.cutOff()
      await allEnded
    },
  }
}

/** The mail, read when the server has said that it may come (354). */
function readOnce(raw: Buffer, onRead: () => void): Readable {
  return new Readable({
    read() {
      onRead()
      this.push(raw)
      this.push(null)
    },
  })
}

function connect({ host, port, security, fromAddress }: SmtpSettings, times: SmtpTimes): SmtpConnection {
  const isNamed = hostname().includes('.')
  return new SmtpConnection({
    // A machine without a whole name would greet as [127.0.0.1], at which some hang up (Google's relay), and who sends is a name too.
    ...(!isNamed && { name: fromAddress.slice(fromAddress.lastIndexOf('@') + 1) }),
    host,
    port,
    secure: security === 'tls',
    requireTLS: security === 'starttls',
    ignoreTLS: security === 'none',
    tls: { rejectUnauthorized: true, minVersion: 'TLSv1.2' },
    connectionTimeout: times.connectMs,
    dnsTimeout: times.connectMs,
    greetingTimeout: times.greetingMs,
    // Ours are shorter.
    socketTimeout: 2 * (times.untilTakenMs + times.answerMs),
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
  clock: Pick<Clock, 'endOfTurn'>,
  to: string,
  raw: Readable,
): Promise<MailAnswer> {
  const onHangUp = (reject: (why: Error) => void) =>
    connection.once('end', async () => {
      // With a 421 nodemailer closes first and says second what it was told: that goes before this.
      await clock.endOfTurn()
      reject(new Error('the mail server hung up'))
    })
  await new Promise<void>((resolve, reject) => {
    // For as long as it lives: an error that nobody listens to would end the process.
    connection.on('error', reject)
    onHangUp(reject)
    connection.connect((error) => (error ? reject(error) : resolve()))
  })
  if (auth !== null) {
    await new Promise<void>((resolve, reject) => {
      onHangUp(reject)
      connection.login({ user: auth.user, pass: auth.pass }, (error) => (error ? reject(error) : resolve()))
    })
  }
  return new Promise((resolve, reject) => {
    onHangUp(reject)
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
  conversation: Conversation,
  clock: Pick<Clock, 'sleep'>,
  { untilTakenMs, answerMs }: SmtpTimes,
): Promise<Value> {
  const over = new AbortController()
  const wait = async (): Promise<never> => {
    await clock.sleep(untilTakenMs, over.signal)
    if (!conversation.isTaken) throw new Error(`the mail server took no mail within ${untilTakenMs} ms`)
    await clock.sleep(answerMs, over.signal)
    throw new Error(`the mail server did not say within ${answerMs} ms whether it has the mail`)
  }
  const tooLong = wait()
  // Whichever comes second has nobody left to tell.
  tooLong.catch(() => {})
  work.catch(() => {})
  try {
    return await Promise.race([work, tooLong])
  } finally {
    over.abort()
  }
}

type Failure = Refusal & { readonly message: string }

/**
 * Only what is said of the recipient refuses the mail for good. All else (a greeting, a password, a sender, the limit of a day, a
 * policy) is the operator's to mend, and the mail waits for that; also what does not say whom it means.
 */
function answerOf(error: unknown): MailAnswer {
  const failure = error as Failure
  const { message, code, command, responseCode = 0 } = failure
  // An address that no mail server could be told.
  if (code === 'EENVELOPE' && command === 'API') return { kind: 'refused', said: message }
  const isForGood = responseCode >= 500 && responseCode <= 599
  if (isForGood && isOfRecipient(failure)) return { kind: 'refused', said: message }
  return { kind: 'failed', why: message, ...(isForGood && mayBeOfContent(failure) && { mayBeContent: true }) }
}
