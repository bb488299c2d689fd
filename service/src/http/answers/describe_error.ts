import type { IncomingMessage } from 'node:http'

/** Name, message, stack and cause for the operator, without what the caller of this request must keep secret. */
export function describeError(error: unknown, request: IncomingMessage): string {
  let text = stackOf(error)
  if (error instanceof Error && error.cause !== undefined) text += `\ncaused by ${stackOf(error.cause)}`
  for (const secret of secretsOf(request)) text = text.replaceAll(secret, '[redacted]')
  return text
}

function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}

/**
 * Every secret of ours is longer. What is shorter is only called one, and would be found in words of the error: `token=e`, said
 * a few dozen times, doubles the text each time.
 */
const SECRET_LENGTH_MIN = 30

function secretsOf(request: IncomingMessage): readonly string[] {
  const { headers, url = '' } = request
  const query = new URLSearchParams(url.slice(url.indexOf('?') + 1))
  const candidates = [
    headers['x-api-sign'],
    headers['x-order-token'],
    headers['idempotency-key'],
    headers.authorization,
    ...(headers.cookie ?? '').split(/[;=\s]+/),
    ...query.getAll('token'),
  ]
  return candidates.filter(
    (value): value is string => typeof value === 'string' && value.length >= SECRET_LENGTH_MIN,
  )
}
