import type { AddressInfo } from 'node:net'
import { connect, createServer, type Socket } from 'node:net'
import type { Chance } from './chance.ts'

/** What a bad line does to one request to PostgreSQL and its answer. A stream cannot be duplicated and still be one. */
export const databaseFaults = [
  // It never arrives, or not whole.
  'reset', // the line is cut
  'cut_in_request', // at some byte
  'drop_request', // and nothing is ever answered
  // It arrives and is done.
  'drop_reply', // the line is cut as soon as the answer begins
  'cut_in_reply', // at some byte
  'stall', // nothing is ever answered
  'delay',
  'trickle', // a byte a second
  'garbage', // something in the answer's place that is no PostgreSQL
] as const
export type DatabaseFault = (typeof databaseFaults)[number]

/** `connect`: a connection is opened. `commit`: what decides whether a transaction happened. */
export type RequestKind = 'connect' | 'commit' | 'statement'

export type DatabaseMeddling = (kind: RequestKind) => DatabaseFault | null

/** A line between the service and PostgreSQL: honest until told otherwise. */
export type DatabaseLine = {
  readonly url: string
  meddle(with_: DatabaseMeddling | null): void
  /** What happened to requests of each kind since the last `meddle`, and how often: `commit drop_reply`. */
  happened(): ReadonlyMap<`${RequestKind} ${DatabaseFault}`, number>
  /** Cuts every connection that would never answer again. */
  hangUp(): void
  stop(): Promise<void>
}

/** From 0 to below 1. */

const DELAY_MS = 200
const TRICKLE_MS = 1_000
const GARBAGE = [
  Buffer.from('HTTP/1.1 502 Bad Gateway\r\ncontent-type: text/html\r\n\r\n<html>'),
  Buffer.from([0x7a, 0, 0, 0, 4]),
]

export async function openDatabaseLine(databaseUrl: string, chance: Chance): Promise<DatabaseLine> {
  const url = new URL(databaseUrl)
  const target = { host: url.hostname, port: Number(url.port) }
  const hanging = new Set<Socket>()
  const open = new Set<Socket>()
  let meddling: DatabaseMeddling | null = null
  let happened = new Map<`${RequestKind} ${DatabaseFault}`, number>()
  const judge = (kind: RequestKind) => {
    const fault = meddling?.(kind) ?? null
    if (fault !== null) happened.set(`${kind} ${fault}`, (happened.get(`${kind} ${fault}`) ?? 0) + 1)
    return fault
  }
  const server = createServer((client) => {
    open.add(client)
    client.on('close', () => {
      open.delete(client)
      hanging.delete(client)
    })
    carry({ client, server: connect(target), judge, chance, onHang: () => hanging.add(client) })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url.hostname = '127.0.0.1'
  url.port = String((server.address() as AddressInfo).port)
  return {
    url: url.href,
    meddle: (next) => {
      meddling = next
      happened = new Map()
    },
    happened: () => happened,
    hangUp: () => {
      for (const client of hanging) client.destroy()
    },
    stop: async () => {
      for (const client of open) client.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

type Connection = {
  readonly client: Socket
  readonly server: Socket
  readonly judge: (kind: RequestKind) => DatabaseFault | null
  readonly chance: Chance
  readonly onHang: () => void
}

/** One connection from its first byte to its end. Whichever side ends first takes the other with it. */
function carry({ client, server, judge, chance, onHang }: Connection): void {
  const requests = requestReader()
  let fault: DatabaseFault | null = null
  const cut = () => {
    client.destroy()
    server.destroy()
  }
  for (const socket of [client, server]) {
    socket.setNoDelay(true)
    socket.on('error', cut)
    socket.on('close', cut)
  }
  client.on('data', (chunk) => {
    for (const { kind, bytes } of requests(chunk)) {
      if (kind === 'rest') {
        server.write(bytes)
        continue
      }
      fault = judge(kind)
      if (fault === 'drop_request' || fault === 'stall' || fault === 'trickle' || fault === 'garbage')
        onHang()
      if (fault === 'reset') cut()
      else if (fault === 'cut_in_request') server.write(someOf(bytes, chance), cut)
      else if (fault === 'delay') setTimeout(() => server.write(bytes), DELAY_MS)
      else if (fault !== 'drop_request') server.write(bytes)
    }
  })
  server.on('data', (chunk) => answer(client, chunk, fault, { cut, chance }))
}

function answer(
  client: Socket,
  chunk: Buffer,
  fault: DatabaseFault | null,
  { cut, chance }: { readonly cut: () => void; readonly chance: Chance },
): void {
  switch (fault) {
    case 'drop_reply':
      cut()
      return
    case 'cut_in_reply':
      client.write(someOf(chunk, chance), cut)
      return
    case 'stall':
      return
    case 'garbage':
      client.write(GARBAGE[chance.happens(0.5) ? 0 : 1] ?? '')
      return
    case 'trickle':
      trickle(client, chunk)
      return
    default:
      client.write(chunk)
  }
}

function someOf(bytes: Buffer, chance: Chance): Buffer {
  return bytes.subarray(0, chance.below(bytes.length))
}

function trickle(client: Socket, bytes: Buffer): void {
  let sent = 0
  const timer = setInterval(() => {
    client.write(bytes.subarray(sent, sent + 1))
    sent += 1
    if (sent === bytes.length) clearInterval(timer)
  }, TRICKLE_MS)
  client.on('close', () => clearInterval(timer))
}

type Request = { readonly kind: RequestKind | 'rest'; readonly bytes: Buffer }

const SIMPLE_QUERY = 0x51
const SYNC = 0x53
const PASSWORD = 0x70
const TERMINATE = 0x58

/**
 * Cuts what a client sends into what it waits for the answer of: the start, a simple query, or everything up to a sync.
 * https://www.postgresql.org/docs/current/protocol-message-formats.html
 */
function requestReader(): (chunk: Buffer) => Request[] {
  let bytes = Buffer.alloc(0)
  let begin = 0
  let isStarted = false
  return (chunk) => {
    bytes = Buffer.concat([bytes.subarray(begin), chunk])
    begin = 0
    const requests: Request[] = []
    for (let at = 0; ; ) {
      const lengthAt = isStarted ? at + 1 : at
      if (bytes.length < lengthAt + 4) return requests
      const end = lengthAt + bytes.readUInt32BE(lengthAt)
      if (bytes.length < end) return requests
      const kind = isStarted ? kindOf(bytes.subarray(at, end)) : 'connect'
      isStarted = true
      at = end
      if (kind === null) continue
      requests.push({ kind, bytes: bytes.subarray(begin, end) })
      begin = end
    }
  }
}

/** Null: more belongs to it. */
function kindOf(message: Buffer): Request['kind'] | null {
  switch (message[0]) {
    case SIMPLE_QUERY:
      return message.toString('latin1', 5, 11) === 'COMMIT' ? 'commit' : 'statement'
    case SYNC:
      return 'statement'
    case PASSWORD:
    case TERMINATE:
      return 'rest'
    default:
      return null
  }
}
