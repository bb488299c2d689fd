import { CambistError, errorFromAnswer, type LocalErrorCode } from './cambist_error.ts'
import { checkMs, checkTimes } from './check_option.ts'
import { pause, timerMs } from './pause.ts'
import { createSigner } from './sign.ts'
import type { ServiceErrorCode } from './types.ts'

export type Retry = {
  /** 1 is the first repetition. */
  readonly attempt: number
  readonly delayMs: number
  readonly method: string
  readonly path: string
  readonly error: CambistError
}

export type TransportOptions = {
  readonly baseUrl: string
  readonly apiKey?: string | undefined
  readonly apiSecret?: string | undefined
  readonly fetch?: typeof fetch | undefined
  /** How often a call is repeated after 408, 429, 500, 502, 503, 504 or no answer at all; 3 unless told. */
  readonly retries?: number | undefined
  /** One attempt's limit; 30 s unless told, and none with `Infinity`. */
  readonly timeoutMs?: number | undefined
  /** The longest wait before a repetition; asked to wait longer, the call fails instead. 60 s unless told. */
  readonly retryDelayMsMax?: number | undefined
  readonly onRetry?: ((retry: Retry) => void) | undefined
}

export type Call = {
  readonly method: 'GET' | 'POST'
  /** Path and query below the base URL. */
  readonly path: string
  readonly isSigned: boolean
  readonly body?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal | undefined
}

export type Answered = { readonly response: Response; readonly bytes: Uint8Array<ArrayBuffer> }

/** Both repeat a call until it is answered for good, and resolve with 2xx answers only. */
export type Transport = {
  send(call: Call): Promise<Answered>
  /** For an answer that goes on: only its beginning has a limit in time, and its body is left to be read. */
  open(call: Call): Promise<Response>
}

const BACK_OFF_MS = 250
/**
 * 408 speaks of the line, which was too slow, and not of the call. 500 is among them because that is what a service says whose
 * database is moving to another machine. It may have acted all the same: so every POST needs an Idempotency-Key.
 */
const retriedStatuses: readonly number[] = [408, 429, 500, 502, 503, 504]

/**
 * A redirect is not followed: nobody else is to see what was signed. With `error` instead, Node 20 and 22 do not heed our
 * signal any more once garbage was collected, and a body that breaks off is waited for beyond every limit.
 */
const REDIRECT = 'manual' as const

/** Throws `TypeError` for an option that is no number of times or milliseconds. */
export function createTransport(options: TransportOptions): Transport {
  const { retries, timeoutMs, retryDelayMsMax } = limitsOf(options)
  const doFetch = options.fetch ?? fetch
  const sign = options.apiSecret === undefined ? undefined : createSigner(options.apiSecret)
  // How far the service's clock is ahead of ours; learnt when it refuses our timestamp.
  let skewMs = 0

  const credentials = async (call: Call, url: URL) => {
    if (!call.isSigned) return {}
    if (options.apiKey === undefined || sign === undefined) throw noCredentials()
    const timestamp = String(Math.floor((Date.now() + skewMs) / 1_000))
    const target = url.pathname + url.search
    const signature = await sign({ timestamp, method: call.method, target, body: call.body ?? '' })
    return { 'X-API-KEY': options.apiKey, 'X-API-SIGN': signature, 'X-API-TIMESTAMP': timestamp }
  }

  const attempt = async <Read>(call: Call, read: (response: Response) => Promise<Read>): Promise<Read> => {
    const url = new URL(options.baseUrl.replace(/\/+$/, '') + call.path)
    const headers: Record<string, string> = { ...call.headers, ...(await credentials(call, url)) }
    if (call.body !== undefined) headers['Content-Type'] = 'application/json'
    // Throws what no header can carry as the mistake that it is: out of `fetch` it would look like a line that failed.
    new Headers(headers)
    const late = new AbortController()
    const timer = setTimeout(() => late.abort(), timerMs(timeoutMs))
    const signal = call.signal === undefined ? late.signal : AbortSignal.any([call.signal, late.signal])
    const init = { method: call.method, headers, signal, redirect: REDIRECT }
    const ask = async () => {
      const response = await doFetch(url, call.body === undefined ? init : { ...init, body: call.body })
      return response.ok ? { read: await read(response) } : { refused: response, text: await response.text() }
    }
    const answered = await ask()
      .catch((error: unknown) => {
        call.signal?.throwIfAborted()
        throw noAnswer(error, late.signal.aborted, timeoutMs)
      })
      .finally(() => clearTimeout(timer))
    if ('read' in answered) return answered.read
    throw errorFromAnswer(answered.refused, answered.text, Date.now())
  }

  const persist = async <Read>(call: Call, read: (response: Response) => Promise<Read>): Promise<Read> => {
    let isSkewLearnt = false
    let mayHaveActed = false
    for (let done = 0; ; ) {
      try {
        return await attempt(call, read)
      } catch (error) {
        if (!(error instanceof CambistError)) throw error
        mayHaveActed = call.method === 'POST' && mayStillAct(mayHaveActed, error)
        error.mayHaveActed = mayHaveActed
        if (error.code === 'TIMESTAMP_EXPIRED' && error.serverTime !== undefined && !isSkewLearnt) {
          isSkewLearnt = true
          skewMs = error.serverTime * 1_000 - Date.now()
          continue
        }
        const delayMs = delayBefore(done, error, retryDelayMsMax)
        if (done >= retries || delayMs === null) throw error
        done += 1
        options.onRetry?.({ attempt: done, delayMs, method: call.method, path: call.path, error })
        await pause(delayMs, call.signal)
      }
    }
  }
  return {
    send: (call) =>
      persist(call, async (response) => ({ response, bytes: new Uint8Array(await response.arrayBuffer()) })),
    open: (call) => persist(call, async (response) => response),
  }
}

/** Without a limit that is one every call would end at once, and what it asked for may have been done. */
function limitsOf({ retries = 3, timeoutMs = 30_000, retryDelayMsMax = 60_000 }: TransportOptions) {
  checkTimes('retries', retries)
  checkMs('timeoutMs', timeoutMs, 'above 0')
  checkMs('retryDelayMsMax', retryDelayMsMax, 'from 0')
  return { retries, timeoutMs, retryDelayMsMax }
}

function noCredentials(): CambistError {
  const message = 'this call needs apiKey and apiSecret'
  return new CambistError({ code: 'NO_CREDENTIALS', status: 0, message })
}

function noAnswer(error: unknown, isTimeout: boolean, timeoutMs: number): CambistError {
  if (isTimeout) {
    return new CambistError({
      code: 'TIMEOUT',
      status: 0,
      message: `no answer within ${timeoutMs} ms`,
      cause: error,
    })
  }
  return new CambistError({
    code: 'NETWORK_ERROR',
    status: 0,
    message: `no answer: ${reasonOf(error)}`,
    cause: error,
  })
}

/** `fetch failed` says nothing; its cause does. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const { cause } = error
  const inner = cause instanceof Error ? cause.message || ('code' in cause ? String(cause.code) : '') : ''
  return inner === '' ? error.message : inner
}

/**
 * Whether a call with an Idempotency-Key may have been acted on, or may yet be, when its last attempt ended with `error`. What
 * an earlier one left open, a refusal does not settle. Some come before the service looks for what was done under the key, such as those of
 * the signature and of limits. The others say that nothing had been done by then, which an attempt that is still under way may do
 * later. Only where the key belongs to another request, none of this call ever acts.
 */
function mayStillAct(mayBefore: boolean, error: CambistError): boolean {
  return error.code !== 'IDEMPOTENCY_CONFLICT' && (mayBefore || !isRefusal(error))
}

/** What the service did not say, and so nobody knows what it did. */
const notTheService: readonly string[] = [
  'NETWORK_ERROR',
  'TIMEOUT',
  'UNEXPECTED_ANSWER',
] satisfies LocalErrorCode[]
/** Its refusals that come with 503. Every other 5xx may come after the act. */
const refusedWith503: readonly string[] = ['MAINTENANCE', 'RATE_UNAVAILABLE'] satisfies ServiceErrorCode[]

/** Whether this attempt changed nothing: docs/api.md#retries. */
function isRefusal({ code, status }: CambistError): boolean {
  return !notTheService.includes(code) && (status < 500 || refusedWith503.includes(code))
}

/** Whether the same call may be answered otherwise a little later. */
export function mayPass(error: CambistError): boolean {
  return error.code === 'NETWORK_ERROR' || error.code === 'TIMEOUT' || retriedStatuses.includes(error.status)
}

/**
 * Null when a repetition would change nothing, or would have to wait longer than `waitMsMax`. Asked to wait, we wait so
 * long and a little more, and otherwise up to twice as long each time; at random, so that many clients do not come back
 * together. What is added by chance is not held against the limit: a service that asks for exactly that much gets it.
 */
function delayBefore(repetitions: number, error: CambistError, waitMsMax: number): number | null {
  const spreadMs = (BACK_OFF_MS * 2 ** Math.min(repetitions, 5)) / 2
  const waitMs = error.retryAfterMs ?? spreadMs
  if (!mayPass(error) || waitMs > waitMsMax) return null
  return Math.round(waitMs + Math.random() * spreadMs)
}
