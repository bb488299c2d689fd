import type { FastifyRequest, RouteOptions } from 'fastify'
import type { TSchema } from 'typebox'
import type { DeskOutcome } from '../../engine/desks/desk.ts'
import { errorAnswers } from '../answers/problem_schema.ts'
import type { ErrorCode, Problem } from '../errors.ts'
import { success } from '../json/schema.ts'
import { compileWriter } from '../json/writer.ts'
import { plainAddress } from '../limits/address_set.ts'
import type { Parameters, Values } from '../parameters/parameter.ts'
import { parametersSchema } from '../parameters/read_body.ts'
import { readGiven } from '../read_given.ts'
import type { RouteContext } from '../route_context.ts'

type SandboxRoute<Given extends Parameters> = {
  readonly method: 'GET' | 'POST'
  readonly url: string
  readonly operationId: string
  readonly summary: string
  /** Of the body of a POST, of the query of a GET. */
  readonly parameters: Given
  readonly params?: TSchema
  /** What `data` is. */
  readonly data: TSchema
  readonly errors?: readonly ErrorCode[]
  act(values: Values<Given>, request: FastifyRequest): Promise<DeskOutcome<unknown>>
}

/** What all sandbox routes have in common: this machine only, no key, no limit, the interface's envelope. */
export function sandboxRoute<Given extends Parameters>(
  { answers }: RouteContext,
  route: SandboxRoute<Given>,
): RouteOptions {
  const write = compileWriter(route.data)
  return {
    method: route.method,
    url: route.url,
    schema: schemaOf(route),
    async handler(request, reply) {
      if (!isFromThisMachine(request)) return answers.problem(request, reply, notFromHere)
      const read = readGiven(route.method, route.parameters, request)
      if (!read.ok) return answers.problem(request, reply, read.rejection)
      const outcome = await route.act(read.values, request)
      if (!outcome.ok) return answers.problem(request, reply, outcome.rejection)
      answers.data(request, reply, write(outcome.value))
    },
  }
}

export const notFromHere: Problem = { code: 'FORBIDDEN', message: 'the sandbox listens to this machine only' }

/** The peer itself: no proxy is asked, because this may not depend on how one is set up. */
export function isFromThisMachine(request: FastifyRequest): boolean {
  const peer = plainAddress(request.raw.socket.remoteAddress ?? '')
  return peer === '::1' || peer.startsWith('127.')
}

const bodyCodes: readonly ErrorCode[] = ['PAYLOAD_TOO_LARGE', 'UNSUPPORTED_MEDIA_TYPE']

function schemaOf<Given extends Parameters>(route: SandboxRoute<Given>) {
  const given = parametersSchema(route.parameters, route.method === 'GET' ? 'query' : 'body')
  return {
    tags: ['sandbox'],
    operationId: route.operationId,
    summary: route.summary,
    security: [],
    ...(route.params && { params: route.params }),
    ...(route.method === 'GET' ? { querystring: given } : { body: given }),
    response: {
      200: { description: 'Done.', ...success(route.data) },
      ...errorAnswers('FORBIDDEN', ...(route.method === 'POST' ? bodyCodes : []), ...(route.errors ?? [])),
    },
  }
}
