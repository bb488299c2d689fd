import type { Server } from 'node:http'
import type { FastifyInstance } from 'fastify'
import type { Clock } from '../clock.ts'
import { SECOND_MS } from '../domain/time.ts'
import type { InUse } from './raw_answer.ts'

const LOOK_MS = 20
/** How long an answer that is being given is waited for until it is taken: our own are given whole, files as they are read. */
const REST_TAKEN_MS = 2 * SECOND_MS

/** Node gives a connection its answer as soon as it has the head of a request, whose body may never come. */
const isAnswering = ({ _httpMessage }: InUse) => _httpMessage?.req.complete === true

/**
 * To be called before the server listens; answers what closes it. Whoever was asked something is answered before. Who has
 * connected and asked nothing (load balancers do so ahead of time), or has not said the whole of it, loses the connection, and soon so does
 * who does not take the answer: Node waits for them all, and no longer looks at how long they take. Whoever closes it again
 * waits for the same.
 */
export function closerOf(app: FastifyInstance, clock: Pick<Clock, 'sleep'>): () => Promise<void> {
  const open = new Set<InUse>()
  const server: Server = app.server
  server.on('connection', (socket: InUse) => {
    open.add(socket)
    socket.once('close', () => open.delete(socket))
  })
  // For how long each has had an answer, or several, to take.
  const untakenMs = new Map<InUse, number>()
  const isWaitedFor = (socket: InUse) => {
    if (socket._httpMessage?.headersSent !== true) return isAnswering(socket)
    const waitedMs = untakenMs.get(socket) ?? 0
    untakenMs.set(socket, waitedMs + LOOK_MS)
    return waitedMs < REST_TAKEN_MS
  }
  const closeAll = async () => {
    // Node asks this of itself, and takes for idle who has not taken all of an answer that was given whole: it would be cut. Who is
    // idle is let go below.
    server.closeIdleConnections = () => {}
    let isClosed = false
    const closing = app.close().finally(() => {
      isClosed = true
    })
    while (!isClosed) {
      if (!server.listening) for (const socket of open) if (!isWaitedFor(socket)) socket.destroy()
      await Promise.race([closing, clock.sleep(LOOK_MS)])
    }
    await closing
  }
  let closed: Promise<void> | null = null
  return () => {
    closed ??= closeAll()
    return closed
  }
}
