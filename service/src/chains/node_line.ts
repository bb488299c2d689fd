import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { pipeline, type Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { accept, type Outcome, refuse } from '../domain/outcome.ts'

export type Question = {
  readonly method: 'GET' | 'POST'
  /** What follows the path in the node's address, and begins with a slash; may have a query, and the address's own follows that. */
  readonly path?: string
  readonly body?: string
  readonly contentType?: string
  /** A longer answer is none. */
  readonly bytesMax?: number
}

export type NodeAnswer = { readonly status: number; readonly text: string }

/**
 * The way to a node, over HTTP, by the agents of Node itself: connections are kept for the next question, and closed by us when
 * there was none for 5 s, before a node closes them just as something is asked. One question, one answer, whatever its status.
 * Nothing is asked twice and no redirect followed. The rejection is why there is no answer; it never holds any part of the
 * address, in which there often is a secret.
 */
export type NodeLine = {
  ask(question: Question): Promise<Outcome<NodeAnswer, string>>
}

/** No text can be longer. */
const ANSWER_BYTES_MAX = 500_000_000

/** `nodeUrl` may have a login in it, which is sent as a header. `timeoutMs` is real time, until the end of the answer. */
export function openLine(nodeUrl: string, timeoutMs: number): NodeLine {
  const base = new URL(nodeUrl)
  const request = base.protocol === 'https:' ? httpsRequest : httpRequest
  const root = base.pathname.replace(/\/$/, '')
  const place = { hostname: base.hostname.replace(/^\[|\]$/g, ''), port: base.port }
  const headers = { host: base.host, 'accept-encoding': 'gzip', 'user-agent': 'Cambist/1', ...loginOf(base) }
  return {
    ask: ({ method, path, body, contentType = 'application/json', bytesMax = ANSWER_BYTES_MAX }) => {
      const target = path === undefined ? base : withQueryOf(base, new URL(`${root}${path}`, base))
      const content = body !== undefined && {
        'content-type': contentType,
        'content-length': Buffer.byteLength(body),
      }
      const asked = request({
        ...place,
        method,
        path: `${target.pathname}${target.search}`,
        headers: { ...headers, ...content },
      })
      return exchange(asked, body, { timeoutMs, bytesMax })
    },
  }
}

/** Providers have their key in it. As it was written: what is parsed and printed again may be another key. */
function withQueryOf(base: URL, target: URL): URL {
  target.search = [target.search, base.search]
    .map((query) => query.slice(1))
    .filter(Boolean)
    .join('&')
  return target
}

function loginOf({ username, password }: URL): { readonly authorization?: string } {
  if (username === '' && password === '') return {}
  const login = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  return { authorization: `Basic ${Buffer.from(login).toString('base64')}` }
}

const TOO_LATE = 'no answer within'
const TOO_LONG = 'the answer is longer than'

/** Whether a rejection says that the answer took longer than we wait, or was longer than we take. */
export function isTooMuch(rejection: string): boolean {
  return rejection.startsWith(TOO_LATE) || rejection.startsWith(TOO_LONG)
}

type Limits = { readonly timeoutMs: number; readonly bytesMax: number }

function exchange(
  request: ClientRequest,
  body: string | undefined,
  { timeoutMs, bytesMax }: Limits,
): Promise<Outcome<NodeAnswer, string>> {
  return new Promise((resolve) => {
    let isOver = false
    const end = (outcome: Outcome<NodeAnswer, string>) => {
      // Whatever is said first counts.
      if (isOver) return
      isOver = true
      clearTimeout(late)
      if (!outcome.ok) request.destroy()
      resolve(outcome)
    }
    // Not an AbortSignal: that is kept for its whole time when the answer has long come, and makes an error at its end.
    const late = setTimeout(() => end(refuse(`${TOO_LATE} ${timeoutMs} ms`)), timeoutMs)
    request.on('error', (error) => end(refuse(reasonOf(error))))
    request.once('upgrade', (_response, socket) => {
      socket.destroy()
      end(refuse('HTTP 101: it speaks another protocol'))
    })
    request.once('response', (response) => {
      const { statusCode: status = 0 } = response
      // The whole address of the node would have to be another.
      if (status >= 300 && status < 400) return end(refuse(`HTTP ${status}: it is somewhere else`))
      collect(response, bytesMax, (text) => end(text.ok ? accept({ status, text: text.value }) : text))
    })
    request.end(body)
  })
}

/** Calls back once or more often; the first time counts. */
function collect(
  response: IncomingMessage,
  bytesMax: number,
  end: (text: Outcome<string, string>) => void,
): void {
  const chunks: Buffer[] = []
  let bytes = 0
  const content = unpacked(response)
  content.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes > bytesMax) end(refuse(`${TOO_LONG} ${bytesMax} bytes`))
    else chunks.push(chunk)
  })
  content.on('end', () => end(accept(Buffer.concat(chunks).toString('utf8'))))
  content.on('error', (error) => end(refuse(reasonOf(error))))
  content.on('close', () => end(refuse('the answer was cut off')))
}

function unpacked(response: IncomingMessage): Readable {
  if (response.headers['content-encoding'] !== 'gzip') return response
  // What fails is told by the last of them.
  return pipeline(response, createGunzip(), () => {})
}

function reasonOf(error: Error): string {
  const { code } = error as NodeJS.ErrnoException
  return code === undefined ? 'the node cannot be reached' : `the node cannot be reached (${code})`
}

/** What an answer says in JSON; the rejection is why it says nothing. `revive` as for JSON.parse. */
export function readJson(
  { status, text }: NodeAnswer,
  revive?: Parameters<typeof JSON.parse>[1],
): Outcome<unknown, string> {
  try {
    return accept(JSON.parse(text, revive))
  } catch {
    return refuse(`HTTP ${status} without JSON`)
  }
}

/** What a node's answer says in JSON, whatever its status; the rejection is why there is no answer, or none in JSON. */
export async function askJson(
  line: NodeLine,
  question: Question,
  revive?: Parameters<typeof JSON.parse>[1],
): Promise<Outcome<{ readonly status: number; readonly body: unknown }, string>> {
  const answered = await line.ask(question)
  if (!answered.ok) return answered
  const read = readJson(answered.value, revive)
  return read.ok ? accept({ status: answered.value.status, body: read.value }) : read
}
