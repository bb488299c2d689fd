import type { ServiceErrorCode } from './types.ts'

/** What the client itself may say; every other code is the service's (docs/api.md). */
export type LocalErrorCode =
  /** No answer: the line, the name or the server is down. The request may have been acted on. */
  | 'NETWORK_ERROR'
  /** No answer in time. The request may have been acted on. */
  | 'TIMEOUT'
  /** An answer that is not the service's: usually a proxy in between. The request may have been acted on behind it. */
  | 'UNEXPECTED_ANSWER'
  /** The call needs apiKey and apiSecret. */
  | 'NO_CREDENTIALS'
  /** waitForStatus: the time is up, or the order ended in another status. */
  | 'WAIT_TIMEOUT'
  | 'STATUS_UNREACHABLE'

export type ErrorFacts = {
  readonly code: string
  readonly message: string
  /** HTTP status; 0 when there was no answer. */
  readonly status: number
  readonly requestId?: string | undefined
  readonly details?: readonly { readonly field: string; readonly message: string }[] | undefined
  /** AMOUNT_OUT_OF_RANGE: the limits, in `currency`. */
  readonly minAmount?: number | undefined
  readonly maxAmount?: number | undefined
  readonly currency?: string | undefined
  /** TIMESTAMP_EXPIRED: the service's clock in epoch seconds. */
  readonly serverTime?: number | undefined
  /** How long the service asks us to wait, in milliseconds. */
  readonly retryAfterMs?: number | undefined
  readonly cause?: unknown
}

/** Why a call failed: `code` for programs, `message` for people. */
export class CambistError extends Error {
  override readonly name = 'CambistError'
  /** Compare with anything: a newer service may know codes that this client does not. */
  readonly code: LocalErrorCode | ServiceErrorCode | (string & {})
  readonly status: number
  readonly requestId: string | undefined
  readonly details: readonly { readonly field: string; readonly message: string }[]
  readonly minAmount: number | undefined
  readonly maxAmount: number | undefined
  readonly currency: string | undefined
  readonly serverTime: number | undefined
  readonly retryAfterMs: number | undefined
  /**
   * POST only: the Idempotency-Key it was sent with. Given this as `idempotencyKey`, the same call again is acted on once, within 24 hours.
   */
  idempotencyKey: string | undefined
  /**
   * Of a POST: whether an attempt of this call may have been acted on, or may yet be. So it is from the first attempt on that ended
   * with no answer, with a fault of the service, or with an answer that is not the service's, whatever the ones after it were
   * answered: `code` is of the last one. False: this call has done nothing. An earlier call under the same key is not counted.
   */
  mayHaveActed = false

  constructor(facts: ErrorFacts) {
    super(describe(facts), facts.cause === undefined ? undefined : { cause: facts.cause })
    this.code = facts.code
    this.status = facts.status
    this.requestId = facts.requestId
    this.details = facts.details ?? []
    this.minAmount = facts.minAmount
    this.maxAmount = facts.maxAmount
    this.currency = facts.currency
    this.serverTime = facts.serverTime
    this.retryAfterMs = facts.retryAfterMs
  }
}

function describe(facts: ErrorFacts): string {
  const where = [
    facts.status === 0 ? undefined : `HTTP ${facts.status}`,
    facts.requestId === undefined ? undefined : `request ${facts.requestId}`,
  ].filter((part) => part !== undefined)
  return `${facts.code}: ${facts.message}${where.length === 0 ? '' : ` (${where.join(', ')})`}`
}

/** Reads an answer that is not a success. Whatever it holds, an error comes out. */
export function errorFromAnswer(response: Response, text: string, nowMs: number): CambistError {
  const body = parseObject(text)
  const header = response.headers.get('retry-after')
  const common = { status: response.status, requestId: response.headers.get('x-request-id') ?? undefined }
  const retryAfterMs = readRetryAfter(header, nowMs)
  if (body === undefined || body.error !== true || typeof body.error_code !== 'string') {
    const location = response.headers.get('location')
    const says = location === null ? text.slice(0, 120).replace(/\s+/g, ' ') : `it leads to ${location}`
    return new CambistError({
      ...common,
      retryAfterMs,
      code: 'UNEXPECTED_ANSWER',
      message: `the answer is not Cambist's${says === '' ? '' : `: ${says}`}`,
    })
  }
  const bodyWaitMs = typeof body.retry_after === 'number' ? body.retry_after * 1_000 : undefined
  return new CambistError({
    ...common,
    code: body.error_code,
    message: textOf(body.message) ?? 'no message',
    requestId: textOf(body.request_id) ?? common.requestId,
    details: Array.isArray(body.details) ? (body.details as { field: string; message: string }[]) : undefined,
    minAmount: numberOf(body.min_amount),
    maxAmount: numberOf(body.max_amount),
    currency: textOf(body.currency),
    serverTime: numberOf(body.server_time),
    retryAfterMs: retryAfterMs ?? bodyWaitMs,
  })
}

/** RFC 9110: seconds, or a date. */
function readRetryAfter(header: string | null, nowMs: number): number | undefined {
  if (header === null) return undefined
  if (/^\d{1,9}$/.test(header)) return Number(header) * 1_000
  const atMs = Date.parse(header)
  return Number.isNaN(atMs) ? undefined : Math.max(0, atMs - nowMs)
}

export function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined // not JSON: the caller says so
  }
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

function numberOf(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined
}
