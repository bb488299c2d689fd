import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Clock } from '../../clock.ts'
import { SECOND_MS } from '../../domain/time.ts'

/** An answer that goes on until it is ended, or whoever asked has gone. */
export type OpenAnswer = {
  /** Nothing is said after the end. Who lets too much lie loses the connection. */
  write(text: string): void
  /** Who does not take the rest soon loses the connection. */
  end(): void
}

/** Who does not take what is sent has gone, or goes too slowly to be kept. */
const UNREAD_BYTES_MAX = 262_144
/** Until then an answer that has ended keeps its memory and its seat. */
const REST_TAKEN_MS = 5 * SECOND_MS

/** To be called when the head has been written. */
export function keepOpen(
  clock: Pick<Clock, 'sleep'>,
  { raw: { socket } }: FastifyRequest,
  { raw }: FastifyReply,
): OpenAnswer {
  const closed = new AbortController()
  // An answer that waits behind others on its connection has no socket of its own: destroying it would cut nothing.
  const cut = () => socket.destroy()
  raw.on('close', () => closed.abort())
  closeWith(socket, raw)
  // An error that nobody listens for ends the process.
  raw.on('error', cut)
  return {
    write: (text) => {
      if (raw.writableEnded || raw.destroyed) return
      raw.write(text)
      if (raw.writableLength > UNREAD_BYTES_MAX) cut()
    },
    end: () => {
      if (raw.writableEnded || raw.destroyed) return
      raw.end()
      clock.sleep(REST_TAKEN_MS, closed.signal).then(() => {
        if (!closed.signal.aborted) cut()
      })
    },
  }
}

const openOn = new WeakMap<Socket, Set<ServerResponse>>()

/**
 * Of answers behind one another Node closes only the first with its connection once a tunnel has been asked for behind them:
 * the others would keep their seats for ever. One listener for all of them: many have room on a connection.
 */
function closeWith(socket: Socket, raw: ServerResponse): void {
  const all = openOn.get(socket) ?? new Set()
  if (!openOn.has(socket)) {
    openOn.set(socket, all)
    socket.once('close', () => all.forEach((each) => void each.destroy()))
  }
  all.add(raw)
  raw.once('close', () => all.delete(raw))
}
