import { createHash, hash } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { ApiKey, Scope } from '../../accounts/api_key.ts'
import { accept, type Outcome, refuse } from '../../domain/outcome.ts'
import type { RetrySlot } from '../../engine/desks/desk.ts'
import { type HeaderList, jsonNoStore } from '../answers/answers.ts'
import { bodyOf } from '../auth/authenticate.ts'
import { readCredentials } from '../auth/credentials.ts'
import { type FieldProblem, invalidParameters, type Problem } from '../errors.ts'
import { parseStrictJson } from '../json/strict_json.ts'
import { tooManyGuesses } from '../limits/guesses.ts'
import type { Spent } from '../limits/rate_limit.ts'
import type { Parameters, Values } from '../parameters/parameter.ts'
import { readBody } from '../parameters/read_body.ts'
import { readQuery } from '../parameters/read_query.ts'
import { admit, admitAnonymous, queryOf, type RouteContext } from '../route_context.ts'
import { IDEMPOTENCY_KEY } from './signed_schema.ts'

/**
 * Before the body is read: whoever sends no credentials at all is not worth waiting for. Spent by the address, as every
 * proof that fails.
 */
export function refuseWithoutCredentials(context: RouteContext) {
  return (request: FastifyRequest, reply: FastifyReply, done: () => void) => {
    const credentials = readCredentials(request.raw)
    if (credentials.ok) return done()
    if (admitAnonymous(context, request, reply))
      context.answers.problem(request, reply, credentials.rejection)
  }
}

type Caller = { readonly key: ApiKey; readonly signature: string }

/** Proves the caller and spends their units; null when the request has been answered. */
export async function callerOf(
  context: RouteContext,
  request: FastifyRequest,
  reply: FastifyReply,
  scope: Scope,
  units: number,
): Promise<Caller | null> {
  return callerBy(context, request, reply, scope, (key) => context.limit.spendByKey(key, units))
}

/** Likewise, of what opens a stream. */
export async function followerOf(
  context: RouteContext,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<Caller | null> {
  return callerBy(context, request, reply, 'read', (key) => context.limit.spendByStreams(key.accountId))
}

/** A failed proof is spent by the address that sent it, so that nobody can spend the units of a key they do not hold. */
async function callerBy(
  context: RouteContext,
  request: FastifyRequest,
  reply: FastifyReply,
  scope: Scope,
  spend: (key: ApiKey) => Spent,
): Promise<Caller | null> {
  const authenticated = await context.authenticate(request, scope)
  if (!authenticated.ok) {
    // Who had no guess left spends nothing: they may come back sooner than their units do.
    const isTold = authenticated.rejection === tooManyGuesses || admitAnonymous(context, request, reply)
    if (isTold) context.answers.problem(request, reply, authenticated.rejection)
    return null
  }
  const isAdmitted = admit(context, request, reply, spend(authenticated.key))
  return isAdmitted ? authenticated : null
}

type Said<Given extends Parameters> = { readonly values: Values<Given>; readonly retry: RetrySlot }

export type SignedPost<Given extends Parameters> = Said<Given> & { readonly key: ApiKey }

/**
 * What a key that may trade asks for, once whatever it arrives: the caller is proved and has spent `units`, and what they say
 * is read. Null when the request has been answered.
 */
export async function admitSignedPost<Given extends Parameters>(
  context: RouteContext,
  request: FastifyRequest,
  reply: FastifyReply,
  { parameters, units }: { readonly parameters: Given; readonly units: number },
): Promise<SignedPost<Given> | null> {
  const caller = await callerOf(context, request, reply, 'trade', units)
  if (caller === null) return null
  const read = readSignedPost(parameters, request, caller.signature)
  if (read.ok) return { ...read.value, key: caller.key }
  context.answers.problem(request, reply, read.rejection)
  return null
}

/** Header, query and body together, so that all problems come at once. */
function readSignedPost<Given extends Parameters>(
  parameters: Given,
  request: FastifyRequest,
  signature: string,
): Outcome<Said<Given>, Problem> {
  const mediaProblem = mediaTypeProblem(request)
  if (mediaProblem !== null) return refuse(mediaProblem)
  const details: FieldProblem[] = []
  const slot = retrySlot(request, signature)
  if (slot === null) details.push({ field: 'Idempotency-Key', message: slotShape })
  const query = readQuery({}, queryOf(request))
  if (!query.ok) details.push(...query.details)
  const json = parseStrictJson(bodyOf(request))
  if (!json.ok) {
    return refuse(invalidParameters([...details, { field: 'body', message: json.problem }]))
  }
  const body = readBody(parameters, json.value)
  if (!body.ok) return refuse(invalidParameters([...details, ...body.details]))
  if (slot === null || details.length > 0) return refuse(invalidParameters(details))
  return accept({ values: body.values, retry: { slot, bodyHash: requestHash(request) } })
}

const idempotencyKey = new RegExp(IDEMPOTENCY_KEY)
const slotShape = 'must be 1 to 64 letters, digits, - and _'

/** Null: there is an Idempotency-Key, and it is malformed. The slot is stored and shown; a signature may not be. */
function retrySlot(request: FastifyRequest, signature: string): string | null {
  const key = request.headers['idempotency-key']
  if (key === undefined) return `sign:${hash('sha256', signature)}`
  return typeof key === 'string' && idempotencyKey.test(key) ? `key:${key}` : null
}

/** Of everything that makes two requests the same request, method and target included. */
function requestHash(request: FastifyRequest): string {
  return createHash('sha256')
    .update(`${request.raw.method}\n${request.raw.url}\n`, 'latin1')
    .update(bodyOf(request))
    .digest('hex')
}

export function mediaTypeProblem(request: FastifyRequest): Problem | null {
  const type = request.headers['content-type'] ?? ''
  const isJson = /^application\/json\s*(;\s*charset\s*=\s*"?utf-8"?\s*)?$/i.test(type)
  const encoding = request.headers['content-encoding'] ?? 'identity'
  if (isJson && encoding === 'identity') return null
  const message = isJson
    ? 'the body must not be compressed'
    : 'the body must be sent with Content-Type: application/json (UTF-8)'
  return { code: 'UNSUPPORTED_MEDIA_TYPE', message }
}

const replayHeaders: HeaderList = [...jsonNoStore, 'Idempotent-Replayed', 'true']

/** Of the answer to a signed POST. */
export function headersOf({ isReplay }: { readonly isReplay: boolean }): HeaderList {
  return isReplay ? replayHeaders : jsonNoStore
}
