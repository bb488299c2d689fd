import type { FastifyRequest } from 'fastify'
import { invalidParameters, type Problem } from '../errors.ts'
import { identifier } from '../parameters/kinds.ts'
import type { Parameter } from '../parameters/parameter.ts'
import { optional } from '../parameters/parameter.ts'
import { readQuery } from '../parameters/read_query.ts'
import { queryOf } from '../route_context.ts'
import { unauthorized } from './credentials.ts'

export type OrderToken =
  | { readonly kind: 'none' }
  | { readonly kind: 'token'; readonly token: string }
  | { readonly kind: 'refused'; readonly rejection: Problem }

const parameters = { token: optional(identifier('The token of the order.')) } satisfies Record<
  string,
  Parameter<string | null>
>

/** X-ORDER-TOKEN, or `?token=` for links that people click. */
export function readOrderToken(request: FastifyRequest): OrderToken {
  const header = request.headers['x-order-token']
  const query = queryOf(request)
  const isInQuery = /(^|&)token=/.test(query)
  if (header === undefined && !isInQuery) return { kind: 'none' }
  const read = readQuery(parameters, query)
  if (!read.ok) return { kind: 'refused', rejection: invalidParameters(read.details) }
  if (header !== undefined && isInQuery) return refused('must not be given in the query as well')
  const token = header ?? read.values.token
  return typeof token === 'string' && isToken(token)
    ? { kind: 'token', token }
    : refused('must be the token of an order')
}

/** The token of a link that a page is opened by. Mail relays and apps append parameters of their own, which are none of ours. */
export function readLinkToken(request: FastifyRequest): string | null {
  const tokens = new URLSearchParams(queryOf(request)).getAll('token')
  const [token] = tokens
  return tokens.length === 1 && token !== undefined && isToken(token) ? token : null
}

function isToken(text: string): boolean {
  return /^[A-Za-z0-9_-]{1,128}$/.test(text)
}

function refused(message: string): OrderToken {
  return { kind: 'refused', rejection: unauthorized([{ field: 'X-ORDER-TOKEN', message }]) }
}
