import { readFileSync, writeFileSync } from 'node:fs'
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { TroubleSwitch } from './troubles.ts'

export type HttpRequest = {
  readonly method: string
  /** As the caller knows it: links that are made of it lead back here. */
  readonly url: URL
  readonly headers: IncomingHttpHeaders
  readonly body: string
}
export type HttpReply = {
  readonly status: number
  readonly type: string
  readonly body: string
  /** The answer goes on after `body` until the caller hangs up (server-sent events). */
  readonly goOn?: (line: Line) => void
}

/** A line that stays open: a WebSocket, or an answer that goes on. `send` says something nobody asked for. */
export type Line = { send(text: string): void; onClose(listener: () => void): void }

/** Thrown while answering: the line is cut in place of the answer. */
export class CutLine extends Error {}

export type Endpoint = {
  http(request: HttpRequest): Promise<HttpReply>
  /** Called once for each WebSocket; what it returns is called with each message and gives the answer. */
  socket?(line: Line): (message: string) => Promise<string>
}

export type SimulatedServer = {
  /** Serves HTTP and, where the network speaks it, WebSocket. */
  readonly port: number
  stop(): Promise<void>
}

export function jsonReply(value: unknown, status = 200): HttpReply {
  return { status, type: 'application/json', body: JSON.stringify(value) }
}

/** On 127.0.0.1, on the port of the last start when it is free: addresses that people noted down stay valid. */
export async function serve(
  folder: string,
  endpoint: Endpoint,
  troubles: TroubleSwitch,
): Promise<SimulatedServer> {
  const server = createServer((request, response) => {
    answer(request, response, endpoint, troubles).catch(() => response.destroy())
  })
  // As long as real nodes do: a client that takes up a connection at the moment when it is closed gets no answer.
  server.keepAliveTimeout = 75_000
  const connections = new Set<Socket>()
  server.on('connection', (connection) => {
    connections.add(connection)
    connection.on('close', () => connections.delete(connection))
  })
  if (endpoint.socket !== undefined) await openSockets(server, endpoint.socket, troubles)
  const portFile = join(folder, 'port')
  const port = (await listen(server, lastPort(portFile))) ?? (await listen(server, 0))
  if (port === undefined) throw new Error('no free port on 127.0.0.1')
  writeFileSync(portFile, String(port))
  return {
    port,
    stop: async () => {
      const closed = new Promise((resolve) => server.close(resolve))
      for (const connection of connections) connection.destroy()
      await closed
    },
  }
}

async function answer(
  incoming: IncomingMessage,
  response: ServerResponse,
  endpoint: Endpoint,
  troubles: TroubleSwitch,
): Promise<void> {
  const body = await readAll(incoming)
  if (troubles.now.hangs) return
  const { method = 'GET', headers } = incoming
  const url = new URL(incoming.url ?? '/', `http://${headers.host ?? '127.0.0.1'}`)
  const reply = await replyTo({ method, url, headers, body }, endpoint, troubles)
  await holdBack(troubles)
  response.writeHead(reply.status, { 'content-type': reply.type })
  if (reply.goOn === undefined) return void response.end(reply.body)
  response.write(reply.body)
  reply.goOn({
    send: (text) => {
      if (!troubles.now.hangs) response.write(text)
    },
    onClose: (listener) => response.on('close', listener),
  })
}

async function replyTo(
  request: HttpRequest,
  endpoint: Endpoint,
  troubles: TroubleSwitch,
): Promise<HttpReply> {
  if (troubles.now.errs) return jsonReply({ error: 'internal error' }, 500)
  try {
    return await endpoint.http(request)
  } catch (error) {
    if (error instanceof CutLine) throw error
    return jsonReply({ error: error instanceof Error ? error.message : String(error) }, 500)
  }
}

async function openSockets(
  server: Server,
  open: NonNullable<Endpoint['socket']>,
  troubles: TroubleSwitch,
): Promise<void> {
  const { WebSocketServer } = await import('ws')
  const sockets = new WebSocketServer({ noServer: true })
  server.on('upgrade', (request, socket, head) => {
    if (troubles.now.hangs) return
    sockets.handleUpgrade(request, socket, head, (opened) => sockets.emit('connection', opened))
  })
  sockets.on('connection', (socket) => {
    const send = (text: string) => {
      if (!troubles.now.hangs) socket.send(text)
    }
    const respond = open({ send, onClose: (listener) => socket.on('close', listener) })
    socket.on('error', () => socket.terminate())
    socket.on('message', async (message) => {
      if (troubles.now.hangs) return
      try {
        if (troubles.now.errs) throw new CutLine()
        const reply = await respond(message.toString())
        await holdBack(troubles)
        send(reply)
      } catch {
        socket.terminate()
      }
    })
  })
}

/** Does not keep a process alive that is done otherwise. */
async function holdBack({ now }: TroubleSwitch): Promise<void> {
  if (now.delayMs > 0) await delay(now.delayMs, undefined, { ref: false })
}

async function readAll(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}

function lastPort(portFile: string): number {
  try {
    return Number(readFileSync(portFile, 'utf8')) || 0
  } catch {
    return 0
  }
}

function listen(server: Server, port: number): Promise<number | undefined> {
  return new Promise((resolve) => {
    const onError = () => resolve(undefined)
    server.once('error', onError)
    server.listen(port, '127.0.0.1', () => {
      server.off('error', onError)
      resolve((server.address() as AddressInfo).port)
    })
  })
}
