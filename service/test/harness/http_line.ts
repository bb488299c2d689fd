import {
  Agent,
  createServer,
  type IncomingMessage,
  request as openRequest,
  type ServerResponse,
} from 'node:http'
import type { AddressInfo } from 'node:net'

/** What a bad line does to a request. */
export const httpFaults = [
  // It never arrives.
  'drop_request', // and nothing is ever answered
  'reset', // the line is cut
  'http_429',
  'http_500',
  // It arrives and is done, and the caller hears nothing, too much or too late.
  'drop_reply', // the line is cut in place of the answer
  'late', // it arrives only when the caller has given up
  'delay',
  'twice', // it arrives two times, and the second answer is told
  'trickle', // a byte a second
  'truncated', // half of the answer, then a cut
  'broken_json',
  'html', // a web page with status 200
  'wrong_id', // the answer under the id of no call
  'stray', // the answer to an earlier request
  'http_502', // a gateway that handed it on and lost the node meanwhile
] as const
export type HttpFault = (typeof httpFaults)[number]
/** Of a plain request: nothing in its answer says whose it is. */
export const plainFaults: readonly HttpFault[] = httpFaults.filter((fault) => fault !== 'wrong_id')

/** A JSON-RPC call; of a plain request, `method` is its verb and the only parameter its path. */
export type Call = { readonly id?: unknown; readonly method: string; readonly params?: readonly unknown[] }

/** What becomes of a call: null lets it through; `refuse` and `tell` answer in the node's place, without asking it. */
export type Verdict =
  | null
  | HttpFault
  | { readonly refuse: string; readonly code?: number }
  | { readonly tell: unknown }

/** Asked for each call. Of a batch, the first fault happens to the whole request. */
export type Meddling = (call: Call) => Verdict

/** A line over HTTP between the service and a node or a venue: honest until told otherwise. */
export type HttpLine = {
  readonly url: string
  meddle(with_: Meddling | null): void
  /** What happened since the last `meddle`, and how often. */
  happened(): ReadonlyMap<HttpFault | 'refuse' | 'tell', number>
  /** All of that together. */
  count(): number
  /** Cuts whatever is still waiting for an answer. */
  hangUp(): void
  stop(): Promise<void>
}

type Line = {
  readonly target: URL
  readonly agent: Agent
  readonly waiting: Set<ServerResponse>
  /** The last honest answer. */
  previous: Answer | null
}
type Answer = { readonly status: number; readonly type: string; readonly bytes: Buffer }

const DELAY_MS = 150
const TRICKLE_MS = 1_000

export async function openHttpLine(targetUrl: string): Promise<HttpLine> {
  const target = new URL(targetUrl)
  const line: Line = { target, agent: new Agent({ keepAlive: true }), waiting: new Set(), previous: null }
  let meddling: Meddling | null = null
  let happened = new Map<HttpFault | 'refuse' | 'tell', number>()
  const server = createServer(async (request, response) => {
    line.waiting.add(response)
    response.on('close', () => line.waiting.delete(response))
    const body = await readAll(request).catch(() => null)
    if (body === null) return
    const verdicts =
      meddling === null
        ? []
        : callsOf(request, body).map((call) => ({ call, verdict: meddling?.(call) ?? null }))
    const names = await carry(line, { request, body, response }, verdicts).catch(() => {
      response.destroy()
      return []
    })
    for (const name of names) happened.set(name, (happened.get(name) ?? 0) + 1)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = new URL(targetUrl)
  url.port = String((server.address() as AddressInfo).port)
  return {
    url: url.href,
    meddle: (next) => {
      meddling = next
      happened = new Map()
    },
    happened: () => happened,
    count: () => [...happened.values()].reduce((sum, times) => sum + times, 0),
    hangUp: () => {
      for (const response of line.waiting) response.destroy()
    },
    stop: async () => {
      server.closeAllConnections()
      line.agent.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

type Exchange = {
  readonly request: IncomingMessage
  readonly body: Buffer
  readonly response: ServerResponse
}
type Judged = { readonly call: Call; readonly verdict: Verdict }

/** Lets one request happen the way it was judged; answers what was done to it. */
async function carry(line: Line, exchange: Exchange, judged: readonly Judged[]) {
  const fault = judged.map(({ verdict }) => verdict).find((verdict) => typeof verdict === 'string')
  if (fault !== undefined) return (await fail(line, exchange, fault)) ? [fault] : []
  const { request, response, body } = exchange
  const replies = judged.flatMap(({ call, verdict }) => inPlaceOf(call, verdict))
  if (replies.length === 0) {
    const answer = await forward(line, request, body)
    line.previous = answer
    send(response, answer)
    return []
  }
  const asked = JSON.parse(body.toString()) as Call | Call[]
  const others = judged.filter(({ verdict }) => verdict === null).map(({ call }) => call)
  const honest = others.length === 0 ? [] : await ask(line, request, others)
  const bytes = Buffer.from(JSON.stringify(Array.isArray(asked) ? [...replies, ...honest] : replies[0]))
  send(response, { status: 200, type: 'application/json', bytes })
  return judged.flatMap(({ verdict }) =>
    verdict === null || typeof verdict === 'string'
      ? []
      : [('refuse' in verdict ? 'refuse' : 'tell') as 'refuse' | 'tell'],
  )
}

function inPlaceOf({ id = null }: Call, verdict: Verdict): object[] {
  if (verdict === null || typeof verdict === 'string') return []
  if ('tell' in verdict) return [{ jsonrpc: '2.0', id, result: verdict.tell, error: null }]
  return [{ jsonrpc: '2.0', id, error: { code: verdict.code ?? -32000, message: verdict.refuse } }]
}

async function ask(line: Line, request: IncomingMessage, calls: readonly Call[]): Promise<object[]> {
  const { bytes } = await forward(line, request, Buffer.from(JSON.stringify(calls)))
  return JSON.parse(bytes.toString()) as object[]
}

/** False: there was nothing to do it with, and the request went through. */
async function fail(line: Line, { request, body, response }: Exchange, fault: HttpFault): Promise<boolean> {
  if (fault === 'drop_request') return true
  if (fault === 'reset') return reset(response)
  if (fault === 'http_429') return send(response, page(429, 'Too Many Requests'))
  if (fault === 'http_500') return send(response, page(500, 'Internal Server Error'))
  if (fault === 'late' && !response.destroyed) await new Promise((resolve) => response.once('close', resolve))
  if (fault === 'delay') await pause(DELAY_MS)
  if (fault === 'twice') await forward(line, request, body)
  const answer = await forward(line, request, body)
  switch (fault) {
    case 'late':
      return true
    case 'delay':
      await pause(DELAY_MS)
      return send(response, answer)
    case 'twice':
      return send(response, answer)
    case 'drop_reply':
      return reset(response)
    case 'trickle':
      return trickle(response, answer)
    case 'truncated':
      response.writeHead(answer.status, {
        'content-type': answer.type,
        'content-length': answer.bytes.length,
      })
      response.write(answer.bytes.subarray(0, answer.bytes.length / 2), () => response.destroy())
      return true
    case 'broken_json':
      return send(response, { ...answer, bytes: Buffer.from(`${answer.bytes.toString().slice(0, -1)},`) })
    case 'html':
      return send(response, { ...page(200, 'Welcome'), type: 'application/json' })
    case 'wrong_id':
      return send(response, { ...answer, bytes: Buffer.from(JSON.stringify(underOtherIds(answer))) })
    case 'http_502':
      return send(response, page(502, 'Bad Gateway'))
    case 'stray': {
      const { previous } = line
      send(response, previous ?? answer)
      return previous !== null
    }
  }
}

function underOtherIds({ bytes }: Answer): unknown {
  const other = (reply: { id?: unknown }) => ({ ...reply, id: `${String(reply.id)} of another` })
  const replies = JSON.parse(bytes.toString()) as { id?: unknown } | { id?: unknown }[]
  return Array.isArray(replies) ? replies.map(other) : other(replies)
}

function page(status: number, title: string): Answer {
  const bytes = Buffer.from(
    `<!doctype html><html><head><title>${title}</title></head><body>nginx</body></html>`,
  )
  return { status, type: 'text/html', bytes }
}

function send(response: ServerResponse, { status, type, bytes }: Answer): true {
  response.writeHead(status, { 'content-type': type, 'content-length': bytes.length }).end(bytes)
  return true
}

function reset({ socket }: ServerResponse): true {
  socket?.resetAndDestroy()
  return true
}

function trickle(response: ServerResponse, { status, type, bytes }: Answer): true {
  response.writeHead(status, { 'content-type': type, 'content-length': bytes.length })
  let sent = 0
  const timer = setInterval(() => {
    response.write(bytes.subarray(sent, sent + 1))
    sent += 1
    if (sent === bytes.length) response.end()
  }, TRICKLE_MS)
  response.on('close', () => clearInterval(timer))
  return true
}

function pause(durationMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, durationMs))
}

function callsOf(request: IncomingMessage, body: Buffer): Call[] {
  const isJson = /^\s*[[{]/.test(body.toString())
  if (!isJson) return [{ method: request.method ?? 'GET', params: [request.url] }]
  const calls = [JSON.parse(body.toString()) as Partial<Call> | Call[]].flat()
  const isCall = (call: Partial<Call>): call is Call => typeof call.method === 'string'
  return calls.every(isCall) ? calls : [{ method: request.method ?? 'POST', params: [request.url] }]
}

function forward(
  { target, agent }: Line,
  { method, url = '/', headers }: IncomingMessage,
  body: Buffer,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const { host: _ours, connection: _hop, 'content-length': _length, ...passed } = headers
    const outgoing = openRequest(
      {
        agent,
        host: target.hostname,
        port: target.port,
        method,
        path: url,
        headers: { ...passed, 'content-length': body.length },
      },
      (incoming) => {
        readAll(incoming).then(
          (bytes) =>
            resolve({
              status: incoming.statusCode ?? 0,
              type: incoming.headers['content-type'] ?? 'application/json',
              bytes,
            }),
          reject,
        )
      },
    )
    outgoing.on('error', reject)
    outgoing.end(body)
  })
}

async function readAll(message: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of message) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}
