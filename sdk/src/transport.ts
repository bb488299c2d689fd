import { CambistError, errorFromAnswer } from './cambist_error.ts'
import { pause } from './pause.ts'
import { createSigner } from './sign.ts'

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
  /** How often a call is repeated after 429, 502, 503, 504 or no answer at all; 3 unless told. */
  readonly retries?: number | undefined
  /** One attempt's limit; 30 s unless told. */
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

/** Sends a call until it is answered for good. Resolves with 2xx answers only. */
export type Send = (call: Call) => Promise<Answered>

const BACK_OFF_MS = 250
const retriedStatuses: readonly number[] = [429, 502, 503, 504]

export function createTransport(options: TransportOptions): Send {
  const { retries = 3, timeoutMs = 30_000, retryDelayMsMax = 60_000 } = options
  const doFetch = options.fetch ?? fetch
  const sign = options.apiSecret === undefined ? undefined : createSigner(options.apiSecret)
  // How far the service's clock is ahead of ours; learnt when it refuses our timestamp.
  let skewMs = 0

  const credentials = async (call: Call, url: URL) => {
    if (!call.isSigned) return {}
    if (options.apiKey === undefined || sign === undefined) {
      throw new CambistError({
        code: 'NO_CREDENTIALS',
        status: 0,
        message: 'this call needs apiKey and apiSecret',
      })
    }
    const timestamp = String(Math.floor((Date.now() + skewMs) / 1_000))
    const target = url.pathname + url.search
    const signature = await sign({ timestamp, method: call.method, target, body: call.body ?? '' })
    return { 'X-API-KEY': options.apiKey, 'X-API-SIGN': signature, 'X-API-TIMESTAMP': timestamp }
  }

  const attempt = async (call: Call): Promise<Answered> => {
    const url = new URL(options.baseUrl.replace(/\/+$/, '') + call.path)
    const headers: Record<string, string> = { ...call.headers, ...(await credentials(call, url)) }
    if (call.body !== undefined) headers['Content-Type'] = 'application/json'
    const timeout = AbortSignal.timeout(timeoutMs)
    const signal = call.signal === undefined ? timeout : AbortSignal.any([call.signal, timeout])
    const init = { method: call.method, headers, signal, redirect: 'error' as const }
    const answered = await readAll(() =>
      doFetch(url, call.body === undefined ? init : { ...init, body: call.body }),
    ).catch((error: unknown) => {
      call.signal?.throwIfAborted()
      throw noAnswer(error, timeout.aborted, timeoutMs)
    })
    if (answered.response.ok) return answered
    throw errorFromAnswer(answered.response, new TextDecoder().decode(answered.bytes), Date.now())
  }

  return async (call) => {
    let isSkewLearnt = false
    for (let done = 0; ; ) {
      try {
        return await attempt(call)
      } catch (error) {
        if (!(error instanceof CambistError)) throw error
        if (error.code === 'TIMESTAMP_EXPIRED' && error.serverTime !== undefined && !isSkewLearnt) {
          isSkewLearnt = true
          skewMs = error.serverTime * 1_000 - Date.now()
          continue
        }
        const delayMs = delayBefore(done, error)
        if (done >= retries || delayMs === null || delayMs > retryDelayMsMax) throw error
        done += 1
        options.onRetry?.({ attempt: done, delayMs, method: call.method, path: call.path, error })
        await pause(delayMs, call.signal)
      }
    }
  }
}

async function readAll(ask: () => Promise<Response>): Promise<Answered> {
  const response = await ask()
  return { response, bytes: new Uint8Array(await response.arrayBuffer()) }
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
 * Null when a repetition would change nothing. Asked to wait, we wait so long and a little more, and otherwise up
 * to twice as long each time; at random, so that many clients do not come back together.
 */
function delayBefore(repetitions: number, error: CambistError): number | null {
  const isWorthIt =
    error.code === 'NETWORK_ERROR' || error.code === 'TIMEOUT' || retriedStatuses.includes(error.status)
  if (!isWorthIt) return null
  const spread = BACK_OFF_MS * 2 ** Math.min(repetitions, 5)
  return Math.round((error.retryAfterMs ?? spread / 2) + Math.random() * (spread / 2))
}
