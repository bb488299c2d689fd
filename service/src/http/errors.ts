import type { DeskRejection } from '../engine/desks/desk.ts'

/** Refusals that only HTTP knows; the others are the desk's. */
type DoorCode =
  | 'UNAUTHORIZED'
  | 'INVALID_SIGNATURE'
  | 'TIMESTAMP_EXPIRED'
  | 'FORBIDDEN'
  | 'NOT_SIGNED_IN'
  | 'LINK_INVALID'
  | 'CONFLICT'
  | 'NOT_FOUND'
  | 'METHOD_NOT_ALLOWED'
  | 'REQUEST_TIMEOUT'
  | 'PAYLOAD_TOO_LARGE'
  | 'UNSUPPORTED_MEDIA_TYPE'
  | 'RATE_LIMITED'
  | 'INTERNAL_ERROR'

export type ErrorCode = DeskRejection['code'] | DoorCode

type Entry = {
  readonly status: number
  /** One line for the reference. */
  readonly meaning: string
  /** When it makes sense to ask again. */
  readonly retryAfterSeconds?: number
}

/** The complete catalogue: a code without a status does not compile. */
export const problems = {
  INVALID_PARAMETER: { status: 400, meaning: 'A parameter is missing, malformed or unknown; see details.' },
  INVALID_PAIR: { status: 400, meaning: 'The pair of currencies is not exchanged here.' },
  NETWORK_MISMATCH: { status: 400, meaning: 'The currency is not exchanged on that network.' },
  AMOUNT_OUT_OF_RANGE: { status: 400, meaning: 'The amount is outside min_amount … max_amount.' },
  INVALID_ADDRESS: { status: 400, meaning: 'The address cannot be paid on that network.' },
  DESTINATION_TAG_REQUIRED: { status: 400, meaning: 'The destination needs a destination_tag.' },
  INVALID_ACTION: { status: 400, meaning: 'The action is unknown, or not possible with what was received.' },
  REFUND_ADDRESS_REQUIRED: { status: 400, meaning: 'A refund needs a refund_address.' },
  LINK_INVALID: { status: 400, meaning: 'The link was used or is too old, or belongs to another browser.' },
  UNAUTHORIZED: { status: 401, meaning: 'The authentication headers are missing or malformed.' },
  INVALID_SIGNATURE: { status: 401, meaning: 'The key is unknown or the signature is wrong.' },
  NOT_SIGNED_IN: { status: 401, meaning: 'There is no session, or it has ended.' },
  TIMESTAMP_EXPIRED: { status: 401, meaning: 'The timestamp is too far from server_time.' },
  FORBIDDEN: { status: 403, meaning: 'The key may not do this, or not from this address.' },
  ORDER_NOT_FOUND: { status: 404, meaning: 'There is no such order for this caller.' },
  NOT_FOUND: { status: 404, meaning: 'There is nothing at this path.' },
  METHOD_NOT_ALLOWED: { status: 405, meaning: 'The path exists, but not for this method; see Allow.' },
  REQUEST_TIMEOUT: { status: 408, meaning: 'The request did not arrive in time.' },
  NOT_EMERGENCY: { status: 409, meaning: 'The order is not in EMERGENCY.' },
  RATE_EXPIRED: { status: 409, meaning: 'The fixed rate has expired; ask for a new one.' },
  CONFLICT: { status: 409, meaning: 'Not possible as things stand; the message says why.' },
  PAYLOAD_TOO_LARGE: { status: 413, meaning: 'The body is larger than the service reads.' },
  UNSUPPORTED_MEDIA_TYPE: { status: 415, meaning: 'The body is not application/json in UTF-8.' },
  IDEMPOTENCY_CONFLICT: { status: 422, meaning: 'The Idempotency-Key was used with another body.' },
  RATE_LIMITED: { status: 429, meaning: 'Too many requests; wait retry_after seconds.' },
  INTERNAL_ERROR: { status: 500, meaning: 'Our fault; tell us the request_id.' },
  RATE_UNAVAILABLE: { status: 503, meaning: 'No trustworthy price right now.', retryAfterSeconds: 5 },
  MAINTENANCE: {
    status: 503,
    meaning: 'Not possible for a while, such as when a network is not available.',
    retryAfterSeconds: 60,
  },
} as const satisfies Record<ErrorCode, Entry>

export type FieldProblem = { readonly field: string; readonly message: string }

/** A refusal on its way out. */
export type Problem = {
  readonly code: ErrorCode
  readonly message: string
  readonly details?: readonly FieldProblem[]
  /** Decimal text, as in DeskRejection. */
  readonly min_amount?: string
  readonly max_amount?: string
  readonly currency?: string
  /** TIMESTAMP_EXPIRED: epoch seconds, to be compared with X-API-TIMESTAMP. */
  readonly server_time?: number
  /** RATE_LIMITED: seconds. */
  readonly retry_after?: number
  /** Goes out as the Retry-After header, where that is not the code's. */
  readonly retryAfterSeconds?: number
  /** METHOD_NOT_ALLOWED: goes out as the Allow header. */
  readonly allow?: string
}

/** One refusal for everything that is wrong with a request's parameters. */
export function invalidParameters(details: readonly FieldProblem[]): Problem {
  const message = details.map(({ field, message }) => `${field} ${message}`).join('; ')
  return { code: 'INVALID_PARAMETER', message, details }
}

export function retryAfterSeconds(problem: Problem): number | null {
  const entry: Entry = problems[problem.code]
  return problem.retry_after ?? problem.retryAfterSeconds ?? entry.retryAfterSeconds ?? null
}
