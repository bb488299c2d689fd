import type { IncomingMessage } from 'node:http'
import type { Problem } from '../errors.ts'

/**
 * Null for a request that a page of ours made, or a program that says where it acts for. A page of somebody else cannot
 * write these headers: browsers do. `SameSite` keeps the cookie from most of what such a page can send; this refuses the
 * rest, and what asks for a mail or signs in, which needs no cookie. Host and X-Forwarded-Host are not asked: what counts
 * is where clients reach the service, as it was configured.
 */
export function crossOriginProblem({ headers }: IncomingMessage, baseUrl: string): Problem | null {
  const { origin, 'sec-fetch-site': site } = headers
  if (origin === undefined) {
    return {
      code: 'FORBIDDEN',
      message: `a request that changes something must have Origin: ${ownOrigin(baseUrl)}`,
    }
  }
  // What is sent twice reaches us joined, and is no origin.
  const isOurs = origin === ownOrigin(baseUrl) && (site === undefined || site === 'same-origin')
  return isOurs ? null : { code: 'FORBIDDEN', message: 'the request comes from a page of another origin' }
}

function ownOrigin(baseUrl: string): string {
  return new URL(baseUrl).origin
}
