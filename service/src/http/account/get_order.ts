import type { FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import Type from 'typebox'
import type { OrderView, Viewer } from '../../engine/desk.ts'
import { anyOrigin, jsonNoStore } from '../answers/answers.ts'
import { errorAnswers } from '../answers/problem_json.ts'
import { hasCredentials, unauthorized } from '../auth/credentials.ts'
import { readOrderToken } from '../auth/order_token.ts'
import { invalidParameters } from '../errors.ts'
import { success } from '../json/schema.ts'
import { compileWriter, joined } from '../json/writer.ts'
import { readQuery } from '../parameters/read_query.ts'
import { admitAnonymous, parameterOf, queryOf, type RouteContext } from '../route_context.ts'
import { isOrderId, isShortId, orderNotFound } from './order_id.ts'
import { orderSchema } from './order_schema.ts'
import { callerOf } from './signed_post.ts'
import { signedSecurity } from './signed_schema.ts'

const write = compileWriter(orderSchema)
const written = new WeakMap<OrderView, string>()

/** The desk gives the same object as long as the order stands as it stood. */
function writeOnce(order: OrderView): string {
  const known = written.get(order)
  if (known !== undefined) return known
  const json = joined(write(order))
  written.set(order, json)
  return json
}

export function getOrderRoute(context: RouteContext): RouteOptions {
  const { answers, parts } = context
  return {
    method: 'GET',
    url: '/v1/order/:order_id',
    schema,
    async handler(request, reply) {
      const viewer = await viewerOf(context, request, reply)
      if (viewer === null) return
      const id = parameterOf(request, 'order_id')
      const isPossible = isOrderId(id) || (viewer.kind === 'token' && isShortId(id))
      const order = isPossible ? await parts.desk.findOrder(id, viewer) : null
      if (order === null) return answers.problem(request, reply, orderNotFound)
      const headers = viewer.kind === 'token' ? [...jsonNoStore, ...anyOrigin] : jsonNoStore
      answers.data(request, reply, writeOnce(order), headers)
    },
  }
}

/** Null when the request has been answered. */
async function viewerOf(
  context: RouteContext,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<Viewer | null> {
  const { answers } = context
  const token = readOrderToken(request)
  if (token.kind !== 'none') {
    if (!admitAnonymous(context, request, reply)) return null
    if (hasCredentials(request.raw)) {
      const message = 'is for callers without an API key: send one or the other'
      answers.problem(request, reply, unauthorized([{ field: 'X-ORDER-TOKEN', message }]))
      return null
    }
    if (token.kind === 'refused') {
      answers.problem(request, reply, token.rejection)
      return null
    }
    return { kind: 'token', token: token.token }
  }
  const caller = await callerOf(context, request, reply, 'read', 1)
  if (caller === null) return null
  const read = readQuery({}, queryOf(request))
  if (!read.ok) {
    answers.problem(request, reply, invalidParameters(read.details))
    return null
  }
  return { kind: 'account', accountId: caller.key.accountId }
}

const schema = {
  tags: ['orders'],
  operationId: 'getOrder',
  summary: 'Look at an order',
  description: 'With an API key by its full id, or with its token by the full id or the last 8 digits.',
  security: [...signedSecurity, { orderToken: [] }, { orderTokenQuery: [] }],
  params: Type.Object({
    order_id: Type.String({
      pattern: '^(CB[0-9]{16}|[0-9]{8})$',
      description: 'The order; with its token the last 8 digits are enough.',
      examples: ['CB4821093377160542'],
    }),
  }),
  response: {
    200: { description: 'The order.', ...success(Type.Ref('Order')) },
    ...errorAnswers(
      'ORDER_NOT_FOUND',
      'UNAUTHORIZED',
      'INVALID_SIGNATURE',
      'TIMESTAMP_EXPIRED',
      'FORBIDDEN',
      'RATE_LIMITED',
    ),
  },
}
