import type { IncomingMessage } from 'node:http'
import { assert } from '../../domain/assert.ts'
import type { FieldProblem, Problem } from '../errors.ts'

/** The three headers, in shape; nothing is proven yet. */
export type Credentials = {
  readonly keyId: string
  readonly signature: string
  readonly timestamp: string
}

const shapes = [
  { header: 'X-API-KEY', pattern: /^[A-Za-z0-9_-]{1,64}$/, wanted: 'must be the id of an API key' },
  {
    header: 'X-API-SIGN',
    pattern: /^[0-9a-f]{64}$/,
    wanted: 'must be 64 lowercase hex digits (HMAC-SHA256)',
  },
  { header: 'X-API-TIMESTAMP', pattern: /^[1-9]\d{0,11}$/, wanted: 'must be the time in epoch seconds' },
] as const

export function hasCredentials(request: IncomingMessage): boolean {
  return shapes.some(({ header }) => request.headers[header.toLowerCase()] !== undefined)
}

/** A header sent twice reaches us joined by a comma, and so has not the shape. */
export function readCredentials(
  request: IncomingMessage,
): { readonly ok: true; readonly value: Credentials } | { readonly ok: false; readonly rejection: Problem } {
  const details: FieldProblem[] = []
  const values = shapes.map(({ header, pattern, wanted }) => {
    const value = request.headers[header.toLowerCase()]
    if (value === undefined) details.push({ field: header, message: 'is required' })
    else if (typeof value !== 'string' || !pattern.test(value))
      details.push({ field: header, message: wanted })
    return value
  })
  if (details.length > 0) return { ok: false, rejection: unauthorized(details) }
  const [keyId, signature, timestamp] = values
  assert(
    typeof keyId === 'string' && typeof signature === 'string' && typeof timestamp === 'string',
    'headers of the right shape are text',
  )
  return { ok: true, value: { keyId, signature, timestamp } }
}

export function unauthorized(details: readonly FieldProblem[]): Problem {
  const message = details.map(({ field, message }) => `${field} ${message}`).join('; ')
  return { code: 'UNAUTHORIZED', message, details }
}
