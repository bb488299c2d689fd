import { once } from 'node:events'
import { lstatSync, unlinkSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import type { Intent } from '../../domain/payouts/intent.ts'
import {
  checkAddressRequest,
  checkOrderRequest,
  checkPayoutRequest,
  checkRoomRequest,
} from '../requests/check_request.ts'
import { Malformed } from '../requests/fields.ts'
import type { Authority, Signer } from '../signer.ts'
import { PROTOCOL } from './protocol.ts'
import { decodeMessage, encodeMessage, readLines } from './socket_lines.ts'

/** Requests of one connection that are worked on at once; further ones wait in the socket. */
const IN_FLIGHT_MAX = 32

/** The path of the socket is somebody else's. */
export class SocketTaken extends Error {
  override readonly name = 'SocketTaken'
}

/**
 * A signer on a Unix socket that only our own user can open. One line is one request `{id, protocol, method, params}` or answer
 * `{id, protocol, result}` / `{id, protocol, error}`. Nothing a client sends ends the server: what cannot be understood is answered
 * with an error. The signer checks every field itself.
 */
export async function serveSigner(options: {
  readonly path: string
  readonly signer: Signer
  /** Told what went wrong inside; clients only learn that something did. */
  onError(error: unknown): void
}): Promise<{ close(): Promise<void> }> {
  const { path, signer, onError } = options
  await removeStaleSocket(path)
  const connections = new Map<Socket, Promise<void>>()
  const server = createServer((socket) => {
    // The loop that reads the socket sees the error; without a listener it would end the process.
    socket.on('error', () => {})
    const served = serveConnection(socket, signer, onError).finally(() => connections.delete(socket))
    connections.set(socket, served)
  })
  // listen() binds at once, so the file never exists with other permissions than these.
  const umask = process.umask(0o177)
  try {
    server.listen(path)
  } finally {
    process.umask(umask)
  }
  await once(server, 'listening')
  server.on('error', onError)
  return {
    /** Cuts the connections, then waits for the requests that are being worked on. */
    async close() {
      const closed = once(server, 'close')
      server.close()
      for (const socket of connections.keys()) socket.destroy()
      await Promise.all([closed, ...connections.values()])
    },
  }
}

async function serveConnection(socket: Socket, signer: Signer, onError: (error: unknown) => void) {
  const inFlight = new Set<Promise<void>>()
  try {
    for await (const line of readLines(socket)) {
      if (inFlight.size >= IN_FLIGHT_MAX) await Promise.race(inFlight)
      // A client that does not read is not read from either.
      if (socket.writableNeedDrain) await drained(socket)
      const work = answer(line, signer, onError)
        .then((message) => {
          if (!socket.destroyed) socket.write(message)
        })
        .finally(() => inFlight.delete(work))
      inFlight.add(work)
    }
  } catch (error) {
    // A cut connection is the client's business; a message that is too long is told to it before the end.
    if (!socket.destroyed) socket.end(encodeAnswer({ id: null, error: messageOf(error) }))
  }
  await Promise.all(inFlight)
  socket.destroy()
}

async function answer(line: Buffer, signer: Signer, onError: (error: unknown) => void): Promise<string> {
  const request = readRequest(line)
  if (request === null) {
    return encodeAnswer({
      id: null,
      error: `a request is one line of JSON: {"id": 1, "protocol": ${PROTOCOL}, "method": "…", "params": […]}`,
    })
  }
  const { id } = request
  try {
    return encodeAnswer({ id, result: await call(signer, request) })
  } catch (error) {
    if (error instanceof Malformed) return encodeAnswer({ id, error: error.message })
    onError(error)
    return encodeAnswer({ id, error: 'the signer failed; its log says why' })
  }
}

type Answer = { readonly id: number | null } & ({ readonly result: unknown } | { readonly error: string })

function encodeAnswer({ id, ...answer }: Answer): string {
  return encodeMessage({ id, protocol: PROTOCOL, ...answer })
}

function call(signer: Signer, request: Request): Promise<unknown> {
  if ('protocol' in request) {
    throw new Malformed(
      `who asks is of another release than the signer (its protocol is ${request.protocol ?? 'an earlier one'}, that of the signer ${PROTOCOL}): start both of the same release`,
    )
  }
  const { method, params } = request
  switch (method) {
    case 'addresses': {
      const { family, purpose, from, count } = checkAddressRequest(params[0], params[1], params[2], params[3])
      return signer.addresses(family, purpose, from, count)
    }
    case 'room':
      return signer.room(checkRoomRequest(params[0]))
    case 'lastSigned':
      return signer.lastSigned(checkPayoutRequest(params[0]))
    case 'lastOutflow':
      return signer.lastOutflow(checkOrderRequest(params[0]))
    case 'sign':
      // Not believed: the signer checks every field of both before it uses any.
      return signer.sign(params[0] as Intent, params[1] as Authority)
    default:
      throw new Malformed('a method is addresses, room, lastSigned, lastOutflow or sign')
  }
}

type Request =
  | { readonly id: number; readonly method: string; readonly params: readonly unknown[] }
  /** In another protocol than ours, so that nothing else is known of it; null: it names none. */
  | { readonly id: number; readonly protocol: number | null }

function readRequest(line: Buffer): Request | null {
  let message: unknown
  try {
    message = decodeMessage(line)
  } catch {
    return null
  }
  if (typeof message !== 'object' || message === null) return null
  const { id, protocol, method, params } = message as Record<string, unknown>
  if (typeof id !== 'number' || !Number.isSafeInteger(id)) return null
  if (protocol !== PROTOCOL) return { id, protocol: typeof protocol === 'number' ? protocol : null }
  if (typeof method !== 'string' || !Array.isArray(params)) return null
  return { id, method, params }
}

function drained(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      socket.off('drain', done)
      socket.off('close', done)
      resolve()
    }
    socket.on('drain', done)
    socket.on('close', done)
  })
}

/** What a signer that was killed left behind is removed; a live signer and any other file are not. */
async function removeStaleSocket(path: string): Promise<void> {
  const find = () => lstatSync(path, { bigint: true, throwIfNoEntry: false })
  const left = find()
  if (left === undefined) return
  if (!left.isSocket()) throw new SocketTaken(`${path} is not a socket; name another file`)
  const isTaken = await isAnswering(path)
  const now = find()
  // Another signer may have found the same, and have put its own socket there while this one asked.
  const isStill = now?.ino === left.ino && now.birthtimeNs === left.birthtimeNs
  if (isTaken || (now !== undefined && !isStill))
    throw new SocketTaken(`another signer listens on ${path}; stop it first`)
  if (isStill) unlinkSync(path)
}

async function isAnswering(path: string): Promise<boolean> {
  const probe = connect(path)
  try {
    await once(probe, 'connect')
    return true
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ECONNREFUSED') return false
    throw error
  } finally {
    probe.destroy()
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
