import type { ClientRequest, IncomingMessage } from 'node:http'
import { SECOND_MS } from '../../domain/time.ts'
import { readReceiverUrl } from '../../domain/webhooks/receiver_url.ts'
import type { WebhookAnswer, WebhookCall, WebhookChannel } from '../channel.ts'
import { dnsResolver, findAddresses, type ResolveHost } from './find_addresses.ts'
import { limitConnecting, openRequest } from './open_request.ts'

export type WebhookChannelOptions = {
  /** Plain http to this machine is allowed: in the sandbox only. */
  readonly loopbackAllowed: boolean
  readonly limits?: WebhookLimits
  readonly resolve?: ResolveHost
}

export type WebhookLimits = {
  /** Until the connection stands, its encryption included. */
  readonly connectMs: number
  /** Everything, the question for the name included. */
  readonly allMs: number
}

export const webhookLimits: WebhookLimits = { connectMs: 5 * SECOND_MS, allMs: 15 * SECOND_MS }

const ANSWER_BYTES_MAX = 65_536
/** What of an answer is kept. */
const HEAD_BYTES_MAX = 1_000
/** What a server may say before its answer (1xx). None of it is the answer's, so that no limit of that holds for it. */
const INTERIM_ANSWERS_MAX = 10

/**
 * Sends webhooks to public addresses: where the URL leads is looked at before every attempt, and what was looked at is what
 * is connected to. Redirects are answers like any other.
 */
export function webhookChannel(options: WebhookChannelOptions): WebhookChannel {
  const { loopbackAllowed, limits = webhookLimits, resolve = dnsResolver() } = options
  const underWay = new Set<AbortController>()
  let isClosed = false
  return {
    deliver: async (call) => {
      if (isClosed) return failed(STOPPED)
      const read = readReceiverUrl(call.url, loopbackAllowed)
      if (!read.ok) return { kind: 'forbidden', why: `the URL ${read.rejection.message}` }
      const ending = new AbortController()
      underWay.add(ending)
      const end = () => ending.abort(TOO_LATE)
      const limit = AbortSignal.timeout(limits.allMs)
      limit.addEventListener('abort', end)
      try {
        return await send(call, read.value, resolve, limits.connectMs, ending.signal)
      } catch (error) {
        return failed(wordsOf(error))
      } finally {
        limit.removeEventListener('abort', end)
        underWay.delete(ending)
      }
    },
    close: async () => {
      isClosed = true
      for (const ending of underWay) ending.abort(STOPPED)
    },
  }
}

const STOPPED = 'the service was stopped'
const TOO_LATE = 'there was no answer in time'

async function send(
  call: WebhookCall,
  url: URL,
  resolve: ResolveHost,
  connectMs: number,
  signal: AbortSignal,
): Promise<WebhookAnswer> {
  const found = await Promise.race([findAddresses(url, resolve), aborted(signal)])
  if (found.kind !== 'addresses') return found
  if (signal.aborted) return failed(signal.reason)
  const request = openRequest(call, url, found.addresses)
  return new Promise((answer) => {
    limitConnecting(request, connectMs)
    limitInterimAnswers(request)
    let endHeard: (() => void) | null = null
    request.on('response', (response) => {
      endHeard = readAnswer(request, response, answer)
    })
    request.on('upgrade', (response) => {
      request.destroy()
      answer({ kind: 'answered', status: response.statusCode ?? 0, head: '' })
    })
    // Where there is an answer already, what was read of it counts, whatever breaks behind its head or ends it.
    request.on('error', (error) => {
      if (endHeard !== null) endHeard()
      else answer(failed(signal.aborted ? signal.reason : wordsOf(error)))
    })
    signal.addEventListener('abort', () => request.destroy(), { once: true })
    request.end(call.body)
  })
}

/** Whoever says "not yet" as fast as the line carries it would have the process read nothing else. */
function limitInterimAnswers(request: ClientRequest): void {
  let said = 0
  request.on('information', () => {
    said += 1
    if (said > INTERIM_ANSWERS_MAX) request.destroy(new Error('there were too many interim answers (1xx)'))
  })
}

/** For what cannot be ended, such as a question for a name. */
function aborted(signal: AbortSignal): Promise<WebhookAnswer> {
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve(failed(signal.reason)), { once: true })
  })
}

function failed(reason: unknown): WebhookAnswer {
  return { kind: 'failed', why: String(reason) }
}

/**
 * The status is the answer; the rest is read for the log, as long as it is short and comes in time. Returns what answers with what
 * has been read so far: an error of the connection is told before the end of what came with it.
 */
function readAnswer(
  request: ClientRequest,
  response: IncomingMessage,
  answer: (answer: WebhookAnswer) => void,
): () => void {
  const chunks: Buffer[] = []
  let bytes = 0
  const end = () => {
    request.destroy()
    answer({ kind: 'answered', status: response.statusCode ?? 0, head: headOf(chunks) })
  }
  response.on('data', (chunk: Buffer) => {
    if (bytes < HEAD_BYTES_MAX) chunks.push(chunk)
    bytes += chunk.length
    if (bytes >= ANSWER_BYTES_MAX) end()
  })
  for (const event of ['end', 'close', 'error']) response.on(event, end)
  return end
}

function headOf(chunks: readonly Buffer[]): string {
  return Buffer.concat(chunks).subarray(0, HEAD_BYTES_MAX).toString('utf8')
}

function wordsOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  return [code, error.message].filter((part) => part !== '').join(': ')
}
