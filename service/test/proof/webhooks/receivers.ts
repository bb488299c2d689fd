import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { type OrderEvent, verifyWebhook } from '@cambist/sdk'
import { Webhook } from 'standardwebhooks'

export const behaviours = [
  'well',
  'again',
  'errors',
  'hangs',
  'resets',
  'redirects',
  'drips',
  'dead',
] as const
export type Behaviour = (typeof behaviours)[number]

/** A request that arrived whole. */
export type Arrival = {
  readonly orderId: string
  readonly sequence: number
  readonly status: string
  readonly previousStatus: string | null
  readonly atWallMs: number
  readonly isAccepted: boolean
}

export type Receiver = {
  readonly behaviour: Behaviour
  readonly url: string
  readonly arrivals: Arrival[]
  /** What was wrong with a request, in words. */
  readonly wrong: string[]
  /** From now on it answers well. */
  heal(): void
  stop(): void
}

/** How often each message is refused before it is taken. */
const REFUSALS = { errors: 2, hangs: 1, resets: 2, redirects: 1 } as const

/** A real server on this machine that does as its behaviour says, and writes down what arrives. */
export async function startReceiver(behaviour: Behaviour, secret: string): Promise<Receiver> {
  const arrivals: Arrival[] = []
  const wrong: string[] = []
  const refused = new Map<string, number>()
  const bodies = new Map<string, string>()
  const reference = new Webhook(secret)
  let isHealed = false
  const isTaken = (id: string): boolean => {
    if (isHealed || behaviour === 'well' || behaviour === 'again' || behaviour === 'drips') return true
    if (behaviour === 'dead') return false
    const times = refused.get(id) ?? 0
    refused.set(id, times + 1)
    return times >= REFUSALS[behaviour]
  }
  const server = createServer(async (request, response) => {
    const text = await readAll(request)
    // It was cut off by the death of who sent it.
    if (text === null) return
    const atWallMs = Date.now()
    const id = String(request.headers['webhook-id'])
    try {
      const { data } = (await verifyWebhook({ headers: request.headers, body: text, secret })) as OrderEvent
      reference.verify(text, request.headers as Record<string, string>)
      const isAccepted = isTaken(id)
      const { order_id: orderId, sequence, status, previous_status: previousStatus } = data
      if (id !== `evt_${orderId}_${sequence}`) wrong.push(`${id} brings ${orderId} ${sequence}`)
      // Whoever has an id already may throw away what comes under it.
      if ((bodies.get(id) ?? text) !== text) wrong.push(`${id} came again with another body`)
      bodies.set(id, text)
      arrivals.push({ orderId, sequence, status, previousStatus, atWallMs, isAccepted })
      if (isAccepted) accept(response, behaviour, isHealed)
      else refuse(request, response, behaviour)
    } catch (error) {
      wrong.push(String(error))
      response.writeHead(400).end()
    }
  })
  const port = await listen(server)
  return {
    behaviour,
    url: `http://127.0.0.1:${port}/${behaviour}`,
    arrivals,
    wrong,
    heal: () => {
      isHealed = true
    },
    stop: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

async function readAll(request: IncomingMessage): Promise<string | null> {
  const chunks: Buffer[] = []
  try {
    for await (const chunk of request) chunks.push(chunk)
  } catch {
    return null
  }
  return Buffer.concat(chunks).toString()
}

function accept(response: ServerResponse, behaviour: Behaviour, isHealed: boolean): void {
  // The rest of the answer never comes: its status has been said.
  if (behaviour === 'drips' && !isHealed) response.writeHead(200).write('a little')
  else response.writeHead(204).end()
}

function refuse(request: IncomingMessage, response: ServerResponse, behaviour: Behaviour): void {
  if (behaviour === 'errors') response.writeHead(500).end('no')
  else if (behaviour === 'redirects') response.writeHead(302, { location: '/elsewhere' }).end()
  else if (behaviour === 'resets') (request.socket as Socket).resetAndDestroy()
  // What hangs, and what is dead, says nothing.
}

function listen(server: Server): Promise<number> {
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port))
  })
}
