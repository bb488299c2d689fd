import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Answers } from './answers/answers.ts'
import type { Authenticate } from './auth/authenticate.ts'
import { type ClientAddress, limitedAs } from './limits/client_address.ts'
import type { Guesses } from './limits/guesses.ts'
import type { RateLimit, Spent } from './limits/rate_limit.ts'
import type { Seats } from './limits/seats.ts'
import { type Turns, tooManyAtOnce } from './limits/turns.ts'
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
  readonly turns: Turns
}

/** What was spent for whoever asks. False: the answer was 429, and the request is over. */
export function admit(
  { answers }: RouteContext,
  request: FastifyRequest,
  reply: FastifyReply,
  { headers, refusal }: Spent,
): boolean {
  request.exchange.limitHeaders = headers
  if (refusal === null) return true
  answers.problem(request, reply, refusal)
  return false
}

/** What `work` comes to when it is the turn of whoever asks; null when the request has been answered. */
export async function inTurn<Value>(
  { turns, answers }: RouteContext,
  request: FastifyRequest,
  reply: FastifyReply,
  who: string,
  work: () => Promise<Value>,
): Promise<{ readonly value: Value } | null> {
  const done = await turns.take(who, work)
  if (done !== null) return done
  answers.problem(request, reply, tooManyAtOnce)
  return null
}

export function admitAnonymous(context: RouteContext, request: FastifyRequest, reply: FastifyReply): boolean {
  const who = `address:${limitedAs(context.addressOf(request.raw))}`
  return admit(context, request, reply, context.limit.spend(who, 1))
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
