import type { IncomingMessage } from 'node:http'
import type { FieldProblem, Problem } from '../errors.ts'

/** The three headers, in shape; nothing is proven yet. */
export type Credentials = {
  readonly keyId: string
  readonly signature: string
  readonly timestamp: string
}

const shapes = {
  'x-api-key': {
    name: 'X-API-KEY',
    pattern: /^[A-Za-z0-9_-]{1,64}$/,
    wanted: 'must be the id of an API key',
  },
  'x-api-sign': {
    name: 'X-API-SIGN',
    pattern: /^[0-9a-f]{64}$/,
    wanted: 'must be 64 lowercase hex digits (HMAC-SHA256)',
  },
  'x-api-timestamp': {
    name: 'X-API-TIMESTAMP',
    pattern: /^[1-9]\d{0,11}$/,
    wanted: 'must be the time in epoch seconds',
  },
} as const
const headers = Object.keys(shapes) as readonly (keyof typeof shapes)[]

export function hasCredentials(request: IncomingMessage): boolean {
  return headers.some((header) => request.headers[header] !== undefined)
}

export function readCredentials({
  headers: sent,
}: IncomingMessage):
  | { readonly ok: true; readonly value: Credentials }
  | { readonly ok: false; readonly rejection: Problem } {
  const keyId = sent['x-api-key']
  const signature = sent['x-api-sign']
  const timestamp = sent['x-api-timestamp']
  if (
    isOfShape('x-api-key', keyId) &&
    isOfShape('x-api-sign', signature) &&
    isOfShape('x-api-timestamp', timestamp)
  )
    return { ok: true, value: { keyId, signature, timestamp } }
  return { ok: false, rejection: unauthorized(headers.flatMap((header) => problemOf(header, sent[header]))) }
}

/** A header sent twice reaches us joined by a comma, and so has not the shape. */
function isOfShape(header: keyof typeof shapes, value: string | string[] | undefined): value is string {
  return typeof value === 'string' && shapes[header].pattern.test(value)
}

function problemOf(
  header: keyof typeof shapes,
  value: string | string[] | undefined,
): readonly FieldProblem[] {
  const { name: field, wanted } = shapes[header]
  if (value === undefined) return [{ field, message: 'is required' }]
  return isOfShape(header, value) ? [] : [{ field, message: wanted }]
}

export function unauthorized(details: readonly FieldProblem[]): Problem {
  const message = details.map(({ field, message }) => `${field} ${message}`).join('; ')
  return { code: 'UNAUTHORIZED', message, details }
}
