import type { FastifyRequest } from 'fastify'
import { mediaTypeProblem } from './account/signed_post.ts'
import { bodyOf } from './auth/authenticate.ts'
import { invalidParameters, type Problem } from './errors.ts'
import { parseStrictJson } from './json/strict_json.ts'
import type { Parameters, Values } from './parameters/parameter.ts'
import { readBody } from './parameters/read_body.ts'
import { readQuery } from './parameters/read_query.ts'
import { queryOf } from './route_context.ts'

export type Method = 'GET' | 'POST' | 'PUT' | 'DELETE'

export type Given<Wanted extends Parameters> =
  | { readonly ok: true; readonly values: Values<Wanted> }
  | { readonly ok: false; readonly rejection: Problem }

/** Parameters stand in the query where the method has no body, and in the body otherwise. */
export function isInBody(method: Method): boolean {
  return method === 'POST' || method === 'PUT'
}

/** What a request without a signature says: strictly, every problem at once. A body that may be empty may be left out. */
export function readGiven<Wanted extends Parameters>(
  method: Method,
  parameters: Wanted,
  request: FastifyRequest,
): Given<Wanted> {
  if (!isInBody(method)) {
    const query = readQuery(parameters, queryOf(request))
    return query.ok ? query : { ok: false, rejection: invalidParameters(query.details) }
  }
  const query = readQuery({}, queryOf(request))
  if (!query.ok) return { ok: false, rejection: invalidParameters(query.details) }
  const mayBeEmpty = Object.values(parameters).every(({ absent }) => absent !== null)
  const isEmpty = bodyOf(request).length === 0
  const media = isEmpty && mayBeEmpty ? null : mediaTypeProblem(request)
  if (media !== null) return { ok: false, rejection: media }
  const json = parseStrictJson(isEmpty && mayBeEmpty ? Buffer.from('{}') : bodyOf(request))
  if (!json.ok) {
    return { ok: false, rejection: invalidParameters([{ field: 'body', message: json.problem }]) }
  }
  const body = readBody(parameters, json.value)
  return body.ok ? body : { ok: false, rejection: invalidParameters(body.details) }
}
