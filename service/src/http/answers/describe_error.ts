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

function secretsOf(request: IncomingMessage): readonly string[] {
  const { headers, url = '' } = request
  const query = new URLSearchParams(url.slice(url.indexOf('?') + 1))
  const candidates = [
    headers['x-api-sign'],
    headers['x-order-token'],
    headers['idempotency-key'],
    headers.authorization,
    ...(headers.cookie ?? '').split(/[;=\s]+/).filter((part) => part.length > 30),
    ...query.getAll('token'),
  ]
  return candidates.filter((value) => typeof value === 'string' && value.length > 0) as string[]
}
