import { hash } from 'node:crypto'
import type { FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import type { TSchema } from 'typebox'
import { type Owner, ownerOf } from '../../accounts/owner_acts.ts'
import type { Requester } from '../../accounts/owner_place.ts'
import { findSession, type SignedIn } from '../../accounts/sessions.ts'
import { type Outcome, refuse } from '../../domain/outcome.ts'
import { deliverySchema } from '../account/delivery_schema.ts'
import { type HeaderList, jsonNoStore } from '../answers/answers.ts'
import { errorAnswers } from '../answers/problem_schema.ts'
import type { ErrorCode, Problem } from '../errors.ts'
import { success } from '../json/schema.ts'
import { compileWriter } from '../json/writer.ts'
import { tooManyGuesses } from '../limits/guesses.ts'
import { tooManyAtOnce } from '../limits/turns.ts'
import type { Parameters, Values } from '../parameters/parameter.ts'
import { parametersSchema } from '../parameters/read_body.ts'
import { isInBody, type Method, readGiven } from '../read_given.ts'
import { admit, admitAnonymous, type RouteContext } from '../route_context.ts'
import { accountSchema } from './account_schema.ts'
import { type Cookies, cookiesOf } from './cookies.ts'
import { problemOf } from './problem_of.ts'
import { crossOriginProblem } from './same_origin.ts'

type Described<Wanted extends Parameters> = {
  readonly method: Method
  readonly url: string
  readonly operationId: string
  readonly summary: string
  readonly description?: string
  /** Of the body where the method has one, else of the query. */
  readonly parameters: Wanted
  readonly params?: TSchema
  /** What `data` is. */
  readonly data: TSchema
  readonly errors?: readonly ErrorCode[]
}

/** What an act answers: what `data` is made of, and the cookies that go with it. */
export type Done = { readonly data: unknown; readonly cookies?: HeaderList }

export type Visit = {
  readonly request: FastifyRequest
  readonly requester: Requester
  readonly cookies: Cookies
}

export type OwnersVisit = Visit & { readonly signedIn: SignedIn; readonly owner: Owner }

/** A route for whoever is signed in, to what is theirs. */
export function ownerRoute<Wanted extends Parameters>(
  context: RouteContext,
  route: Described<Wanted> & {
    act(values: Values<Wanted>, visit: OwnersVisit): Promise<Outcome<Done>>
  },
): RouteOptions {
  return routeOf(context, route, [{ session: [] }], async (request, reply, visit, answer) => {
    const owners = await ownersVisit(context, request, reply, visit)
    if (owners === null) return
    await answer(async (values) => {
      if (route.method === 'GET') return route.act(values, owners)
      const who = `owner:${owners.owner.accountId}`
      const done = await context.turns.take(who, () => route.act(values, owners))
      return done?.value ?? refuse(tooManyActs)
    })
  })
}

/** A route for anybody: what is shown in it is the proof. */
export function openRoute<Wanted extends Parameters>(
  context: RouteContext,
  route: Described<Wanted> & {
    act(values: Values<Wanted>, visit: Visit): Promise<Outcome<Done>>
  },
): RouteOptions {
  return routeOf(context, route, [], async (request, reply, visit, answer) => {
    if (admitAnonymous(context, request, reply)) await answer((values) => route.act(values, visit))
  })
}

type Answering<Wanted extends Parameters> = (
  act: (values: Values<Wanted>) => Promise<Outcome<Done>>,
) => Promise<void>

function routeOf<Wanted extends Parameters>(
  context: RouteContext,
  route: Described<Wanted>,
  security: readonly Readonly<Record<string, readonly string[]>>[],
  receive: (
    request: FastifyRequest,
    reply: FastifyReply,
    visit: Visit,
    answer: Answering<Wanted>,
  ) => Promise<void>,
): RouteOptions {
  const { answers, parts } = context
  const { method, url, parameters } = route
  const write = compileWriter(route.data, named)
  const cookies = cookiesOf(parts.baseUrl)
  return {
    method,
    url,
    schema: schemaOf(route, security),
    async handler(request, reply) {
      const foreign = method === 'GET' ? null : crossOriginProblem(request.raw, parts.baseUrl())
      if (foreign !== null) return answers.problem(request, reply, foreign)
      const visit = { request, requester: requesterOf(context, request), cookies }
      await receive(request, reply, visit, async (act) => {
        const read = readGiven(method, parameters, request)
        if (!read.ok) return answers.problem(request, reply, read.rejection)
        const outcome = await act(read.values)
        if (!outcome.ok) return answers.problem(request, reply, problemOf(outcome.rejection))
        const { data, cookies: set = [] } = outcome.value
        answers.data(request, reply, write(data), [...jsonNoStore, ...set])
      })
    },
  }
}

/** As `problemOf` takes it. */
const tooManyActs = {
  code: 'too_many_acts',
  message: tooManyAtOnce.message,
  retryAfterSeconds: tooManyAtOnce.retry_after,
}

const notSignedIn: Problem = {
  code: 'NOT_SIGNED_IN',
  message: 'nobody is signed in, or the session has ended: ask for a link',
}

/** Null when the request has been answered. */
export async function ownersVisit(
  context: RouteContext,
  request: FastifyRequest,
  reply: FastifyReply,
  visit: Visit,
  units = 1,
): Promise<OwnersVisit | null> {
  const { answers, guesses, limit, parts } = context
  const token = visit.cookies.read(request.raw, 'session')
  if (token === null) return notAdmitted(context, request, reply)
  // By its hash, as everywhere: a token is kept nowhere.
  const credential = `session:${hash('sha256', token)}`
  const spend = () => admit(context, request, reply, limit.spend(credential, units))
  // Before it is looked up, so that what is refused asks the database nothing. Not of one that was never good: made-up ones would
  // fill what counts, and are guesses of their address.
  const isKnown = guesses.isKnown(credential)
  if (isKnown && !spend()) return null
  const signedIn = await guesses.look(credential, request.raw, () => findSession(parts.owners, token))
  if (signedIn === 'refused') {
    // Neither the database nor anybody's units are spent on it.
    answers.problem(request, reply, tooManyGuesses)
    return null
  }
  if (signedIn === null) return notAdmitted(context, request, reply)
  if (!isKnown && !spend()) return null
  const owner = ownerOf(signedIn, visit.requester)
  // Each by itself first: what one is refused takes nothing from the others, who may be about to end it.
  const refused = limit.spendBySessions(owner.accountId, units)
  if (refused === null) return { ...visit, signedIn, owner }
  admit(context, request, reply, refused)
  return null
}

/** Spent by the address, so that sessions cannot be guessed at for free. */
function notAdmitted(context: RouteContext, request: FastifyRequest, reply: FastifyReply): null {
  if (admitAnonymous(context, request, reply)) context.answers.problem(request, reply, notSignedIn)
  return null
}

export function requesterOf({ addressOf }: RouteContext, request: FastifyRequest): Requester {
  return { address: addressOf(request.raw), userAgent: request.headers['user-agent'] ?? null }
}

/** What `data` may name. */
const named = { Account: accountSchema, WebhookDelivery: deliverySchema }

const bodyCodes: readonly ErrorCode[] = ['PAYLOAD_TOO_LARGE', 'UNSUPPORTED_MEDIA_TYPE']

function schemaOf<Wanted extends Parameters>(
  route: Described<Wanted>,
  security: readonly Readonly<Record<string, readonly string[]>>[],
) {
  const { method, operationId, summary, description, parameters, params, data, errors = [] } = route
  const given = parametersSchema(parameters, isInBody(method) ? 'body' : 'query')
  const hasParameters = Object.keys(parameters).length > 0
  return {
    tags: ['account'],
    operationId,
    summary,
    ...(description !== undefined && { description }),
    security,
    ...(params && { params }),
    ...(hasParameters && (isInBody(method) ? { body: given } : { querystring: given })),
    response: {
      200: { description: 'Done.', ...success(data) },
      ...errorAnswers(
        ...(security.length > 0 ? (['NOT_SIGNED_IN'] as const) : []),
        ...(method === 'GET' ? [] : (['FORBIDDEN'] as const)),
        ...(isInBody(method) ? bodyCodes : []),
        ...errors,
        'RATE_LIMITED',
      ),
    },
  }
}
