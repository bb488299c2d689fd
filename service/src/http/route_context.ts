import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Answers } from './answers/answers.ts'
import type { Authenticate } from './auth/authenticate.ts'
import { type ClientAddress, limitedAs } from './limits/client_address.ts'
import type { Guesses } from './limits/guesses.ts'
import type { RateLimit } from './limits/rate_limit.ts'
import type { Seats } from './limits/seats.ts'
import type { HttpParts, OperatorParts } from './parts.ts'

/** What the operator's routes are made with. */
export type OperatorContext = {
  readonly parts: OperatorParts
  readonly answers: Answers
  readonly addressOf: ClientAddress
}

/** What the routes of the interface are made with. */
export type RouteContext = OperatorContext & {
  readonly parts: HttpParts
  readonly limit: RateLimit
  readonly guesses: Guesses
  readonly authenticate: Authenticate
  readonly seats: Seats
}

/** Spends units for whoever asks. False: the answer was 429, and the request is over. */
export function admit(
  { limit, answers }: RouteContext,
  request: FastifyRequest,
  reply: FastifyReply,
  who: string,
  units: number,
): boolean {
  const { headers, refusal } = limit.spend(who, units)
  request.exchange.limitHeaders = headers
  if (refusal === null) return true
  answers.problem(request, reply, refusal)
  return false
}

export function admitAnonymous(context: RouteContext, request: FastifyRequest, reply: FastifyReply): boolean {
  return admit(context, request, reply, `address:${limitedAs(context.addressOf(request.raw))}`, 1)
}

/** The raw query as sent, without `?`. */
export function queryOf(request: FastifyRequest): string {
  const target = request.raw.url ?? ''
  const mark = target.indexOf('?')
  return mark === -1 ? '' : target.slice(mark + 1)
}

/** PostgreSQL has no text with a NUL in it, so nothing has such a name. */
export function parameterOf(request: FastifyRequest, name: string): string {
  const params = request.params as Readonly<Record<string, string | undefined>>
  const value = params[name] ?? ''
  return value.includes('\0') ? '' : value
}
