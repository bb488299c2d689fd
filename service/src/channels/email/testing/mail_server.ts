import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { SMTPServer } from 'smtp-server'

/** A real SMTP server on a free port of loopback, in the mood that a test wants. */
export type MailServer = {
  readonly port: number
  readonly received: readonly ReceivedMail[]
  close(): Promise<void>
}

export type ReceivedMail = {
  /** What the client called itself (EHLO). */
  readonly clientName: string
  readonly envelope: { readonly from: string; readonly to: readonly string[] }
  readonly raw: string
}

export type MailServerOptions = {
  /** What these commands are answered with, in place of 250. */
  readonly onMail?: number
  readonly onRcpt?: number
  readonly onData?: number
  /** What the server says besides these numbers, in as many lines. */
  readonly words?: string
  readonly user?: string
  readonly pass?: string
  /** TLS from the first byte. */
  readonly secure?: boolean
  /** PEM; left out, a certificate that nobody trusts. */
  readonly certificate?: { readonly key: string; readonly cert: string }
  /** The greeting waits for this. */
  readonly onConnect?: () => Promise<void>
  readonly mood?:
    | 'no greeting'
    | 'drips'
    | 'silent after data'
    | 'hangs up in data'
    | 'no tls'
    | 'goes away'
    | 'hears none'
  /** Called when a mail has come whole, before it is answered. */
  readonly onMailCome?: (mail: ReceivedMail) => Promise<void>
  readonly port?: number
}

export async function startMailServer(options: MailServerOptions = {}): Promise<MailServer> {
  if (options.mood === 'no greeting' || options.mood === 'drips') return startMute(options.mood)
  if (options.mood === 'goes away') return startGoing()
  if (options.mood === 'hears none') return startDeaf(options.words)
  const received: ReceivedMail[] = []
  const server = new SMTPServer({
    secure: options.secure ?? false,
    ...options.certificate,
    authOptional: options.user === undefined,
    allowInsecureAuth: true,
    disabledCommands: options.mood === 'no tls' ? ['STARTTLS'] : [],
    disableReverseLookup: true,
    logger: false,
    closeTimeout: 100,
    onConnect: (_session, callback) => {
      Promise.resolve(options.onConnect?.()).then(() => callback())
    },
    onAuth: ({ username, password }, _session, callback) => {
      const isRight = username === options.user && password === options.pass
      callback(isRight ? null : said(535), isRight ? { user: username } : undefined)
    },
    onMailFrom: (_address, _session, callback) => callback(said(options.onMail, options.words)),
    onRcptTo: (_address, _session, callback) => callback(said(options.onRcpt, options.words)),
    onData: (stream, session, callback) => {
      const chunks: Buffer[] = []
      if (options.mood === 'hangs up in data') {
        hangUp(server)
        return
      }
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('end', () => {
        if (options.mood === 'silent after data') return
        const { mailFrom, rcptTo } = session.envelope
        const from = mailFrom === false ? '' : mailFrom.address
        const mail = {
          clientName: session.hostNameAppearsAs,
          envelope: { from, to: rcptTo.map(({ address }) => address) },
          raw: Buffer.concat(chunks).toString('utf8'),
        }
        const refusal = said(options.onData, options.words)
        if (refusal !== null) return callback(refusal)
        received.push(mail)
        Promise.resolve(options.onMailCome?.(mail)).then(() => callback(null))
      })
    },
  })
  // A client that goes away is what is tested here.
  server.on('error', () => {})
  await new Promise<void>((resolve) => server.listen(options.port ?? 0, '127.0.0.1', resolve))
  return {
    port: (server.server.address() as AddressInfo).port,
    received,
    close: () => new Promise((resolve) => server.close(() => resolve())),
  }
}

function said(code: number | undefined, words = `said ${code}`): (Error & { responseCode: number }) | null {
  if (code === undefined) return null
  const lines = words.split('\n')
  // Several lines have to come as a list: line ends within a text are taken out.
  return Object.assign(new Error(words), { responseCode: code, ...(lines.length > 1 && { message: lines }) })
}

function hangUp(server: SMTPServer): void {
  for (const connection of server.connections as Set<{ _socket: Socket }>) connection._socket.destroy()
}

/** One that listens and never says anything whole. */
function startMute(mood: 'no greeting' | 'drips'): Promise<MailServer> {
  return startRaw((socket) => {
    socket.on('data', () => {})
    if (mood === 'no greeting') return
    // A greeting of many lines that never comes to its last one: silence never lasts long enough to be one.
    socket.write('220-hello\r\n')
    const dripping = setInterval(() => socket.write('220-hello\r\n'), 50)
    socket.on('close', () => clearInterval(dripping))
  })
}

/** One that is told everything at once (PIPELINING) and says at the recipient that it goes. It leaves that to the client. */
function startGoing(): Promise<MailServer> {
  return startRaw((socket) => {
    socket.write('220 hello\r\n')
    socket.on('data', (chunk: Buffer) => {
      const isGreeting = chunk.toString('latin1').startsWith('EHLO')
      socket.write(isGreeting ? '250-hello\r\n250 PIPELINING\r\n' : '250 ok\r\n421 4.7.0 too many\r\n')
    })
  })
}

/** One that refuses DATA itself, before it has heard anything of a mail. */
function startDeaf(words = ''): Promise<MailServer> {
  return startRaw((socket) => {
    socket.write('220 hello\r\n')
    socket.on('data', (chunk: Buffer) => {
      const isData = chunk.toString('latin1').startsWith('DATA')
      socket.write(isData ? `550 ${words}\r\n` : '250 ok\r\n')
    })
  })
}

async function startRaw(onSocket: (socket: Socket) => void): Promise<MailServer> {
  const sockets = new Set<Socket>()
  const server: Server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    onSocket(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    received: [],
    close: () =>
      new Promise((resolve) => {
        for (const socket of sockets) socket.destroy()
        server.close(() => resolve())
      }),
  }
}
