import { randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { type Problem, problems, retryAfterSeconds } from '../errors.ts'
import { describeError } from './describe_error.ts'
import { problemJson } from './problem_json.ts'
import type { RequestLog } from './request_log.ts'
import type { RequestMeter } from './request_meter.ts'

/** What a request learns about itself on its way; the log line and the answer are made of it. */
export type Exchange = {
  /** `performance.now()` at arrival. */
  readonly startedMs: number
  /** The pattern, never the path: paths and queries carry order ids and tokens. */
  readonly route: string
  keyId: string | null
  /** RateLimit headers, flat: name, value, name, value. */
  limitHeaders: HeaderList
}

declare module 'fastify' {
  interface FastifyRequest {
    exchange: Exchange
  }
}

const noHeaders: HeaderList = []

export function openExchange(route: string): Exchange {
  return { startedMs: performance.now(), route, keyId: null, limitHeaders: noHeaders }
}

/** Flat: name, value, name, value. Node takes them as they are. */
export type HeaderList = readonly string[]

/**
 * The only place that answers a request: it writes status, headers and body straight to the socket's response,
 * writes the one log line and measures. Fastify's own reply pipeline is not used: it costs as much as all the rest.
 */
export type Answers = {
  /** `data` is JSON text; it goes out in the success envelope. */
  data(request: FastifyRequest, reply: FastifyReply, data: string, headers?: HeaderList): void
  raw(
    request: FastifyRequest,
    reply: FastifyReply,
    status: number,
    body: string | Buffer,
    headers: HeaderList,
  ): void
  /** Begins an answer that goes on, until whoever asked ends it; written into the log when it has. */
  open(request: FastifyRequest, reply: FastifyReply, headers: HeaderList): void
  problem(request: FastifyRequest, reply: FastifyReply, problem: Problem): void
  /** Something we did not expect: the caller gets a request id, the log gets the rest. */
  failure(request: FastifyRequest, reply: FastifyReply, error: unknown): void
  /** Whoever takes nothing of what this request is answered for a while loses the connection. An open answer sees to that itself. */
  limitTaking(request: FastifyRequest): void
  /** For what somebody else has answered: the log line and the measure only. */
  record(request: FastifyRequest, status: number): void
  /** For what broke after its answer had gone out. */
  recordFailure(request: FastifyRequest, error: unknown): void
}

const JSON_TYPE: HeaderList = ['Content-Type', 'application/json; charset=utf-8']
const NO_STORE: HeaderList = ['Cache-Control', 'no-store']
export const jsonNoStore: HeaderList = [...JSON_TYPE, ...NO_STORE]

/** For answers that hold nothing private, so that a page anywhere may read them. */
export const anyOrigin: HeaderList = ['Access-Control-Allow-Origin', '*']

export function createAnswers(
  logger: Logger,
  log: RequestLog,
  meter: RequestMeter,
  unreadMsMax: number,
): Answers {
  // Node puts its own limit, that of an idle connection, in its place when all has been taken.
  const limitTaking = ({ raw: { socket } }: FastifyRequest) => void socket.setTimeout(unreadMsMax)
  // Most answers are with the kernel at once: a limit for each of them would cost every request a timer.
  const limitRest = (request: FastifyRequest, { raw }: FastifyReply) => {
    if (raw.writableLength > 0) limitTaking(request)
  }
  const record = (request: FastifyRequest, status: number, error: unknown) => {
    const { startedMs, route, keyId } = request.exchange
    const method = request.raw.method ?? 'none'
    const durationMs = performance.now() - startedMs
    meter.observe(method, route, status, durationMs / 1000)
    log.write({ requestId: request.id, method, route, status, durationMs, keyId })
    if (error === undefined) return
    const description = describeError(error, request.raw)
    logger.error({ request_id: request.id, method, route, error: description }, 'request failed')
  }
  const problem = (request: FastifyRequest, reply: FastifyReply, refusal: Problem, error?: unknown) => {
    const { status } = problems[refusal.code]
    const requestId = refusal.code === 'INTERNAL_ERROR' ? request.id : null
    send(request, reply, status, problemJson(refusal, requestId), problemHeaders(refusal))
    limitRest(request, reply)
    record(request, status, error)
  }
  return {
    data(request, reply, data, headers = jsonNoStore) {
      send(request, reply, 200, `{"success":true,"data":${data}}`, headers)
      limitRest(request, reply)
      record(request, 200, undefined)
    },
    raw(request, reply, status, body, headers) {
      send(request, reply, status, body, headers)
      limitRest(request, reply)
      record(request, status, undefined)
    },
    open(request, reply, headers) {
      reply.hijack()
      reply.raw.on('close', () => record(request, 200, undefined))
      reply.raw.writeHead(200, [...commonHeaders(request), ...headers])
    },
    problem: (request, reply, refusal) => problem(request, reply, refusal),
    failure: (request, reply, error) =>
      problem(request, reply, { code: 'INTERNAL_ERROR', message: 'something went wrong on our side' }, error),
    limitTaking,
    record: (request, status) => record(request, status, undefined),
    recordFailure: (request, error) => record(request, 500, error),
  }
}

function send(
  request: FastifyRequest,
  reply: FastifyReply,
  status: number,
  body: string | Buffer,
  headers: HeaderList,
): void {
  const list = [...commonHeaders(request), ...headers]
  // Neither has a body, and must not claim the length of one.
  const length = typeof body === 'string' ? Buffer.byteLength(body) : body.length
  if (status !== 304 && status !== 204) list.push('Content-Length', String(length))
  if (mayNotGoOn(request.raw, status)) list.push('Connection', 'close')
  reply.hijack()
  reply.raw.writeHead(status, list)
  // As many bytes as characters: ASCII, which is sent several times faster when it is called latin1.
  if (length === body.length) reply.raw.end(body, 'latin1')
  else reply.raw.end(body)
}

function commonHeaders(request: FastifyRequest): string[] {
  const { limitHeaders } = request.exchange
  return ['X-Request-Id', request.id, 'X-Content-Type-Options', 'nosniff', ...limitHeaders]
}

/**
 * After an Upgrade that was asked for and not made, Node's parser no longer tells of bytes it cannot read: whoever
 * sends some would wait in vain.
 */
function mayNotGoOn(request: IncomingMessage, status: number): boolean {
  return request.headers.upgrade !== undefined || (status >= 400 && hasMuchToDrain(request))
}

const DRAIN_BYTES_MAX = 1_048_576

/** After a refusal Node reads the rest of the body and throws it away; not for a body that may have no end. */
function hasMuchToDrain(request: IncomingMessage): boolean {
  if (request.headers['transfer-encoding'] !== undefined) return true
  const length = request.headers['content-length']
  return length !== undefined && Number.parseInt(length, 10) > DRAIN_BYTES_MAX
}

/** Without it a browser hides from pages of other origins when to ask again, which of a 503 no body tells. */
const EXPOSED: HeaderList = ['Access-Control-Expose-Headers', 'Retry-After, X-Request-Id']

export function problemHeaders(problem: Problem): HeaderList {
  const headers = [...jsonNoStore, ...anyOrigin, ...EXPOSED]
  const retryAfter = retryAfterSeconds(problem)
  if (retryAfter !== null) headers.push('Retry-After', String(retryAfter))
  if (problem.allow !== undefined) headers.push('Allow', problem.allow)
  return headers
}

/** Unique over restarts and processes, and cheap: a random start, then a counter. */
export function requestIds(): () => string {
  const start = randomBytes(6).toString('hex')
  let count = 0
  return () => {
    count += 1
    return `${start}-${count.toString(36)}`
  }
}
