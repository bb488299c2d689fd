import type { RouteOptions } from 'fastify'
import Type from 'typebox'
import { errorAnswers } from '../answers/problem_schema.ts'
import { invalidParameters } from '../errors.ts'
import { success } from '../json/schema.ts'
import { parametersSchema } from '../parameters/read_body.ts'
import { readQuery } from '../parameters/read_query.ts'
import { queryOf, type RouteContext } from '../route_context.ts'
import { filterOf, filterParameters, pageParameters, writeOrderPage } from './order_filters.ts'
import { callerOf } from './signed_post.ts'
import { signedSecurity } from './signed_schema.ts'

const parameters = { ...filterParameters, ...pageParameters }

export function listOrdersRoute(context: RouteContext): RouteOptions {
  const { answers, parts } = context
  return {
    method: 'GET',
    url: '/v1/orders',
    schema,
    async handler(request, reply) {
      const caller = await callerOf(context, request, reply, 'read', 1)
      if (caller === null) return
      const read = readQuery(parameters, queryOf(request))
      if (!read.ok) return answers.problem(request, reply, invalidParameters(read.details))
      const { limit, cursor, ...filter } = read.values
      const page = { after: cursor, limit }
      const found = await parts.desk.listOrders(caller.key.accountId, filterOf(filter), page)
      answers.data(request, reply, writeOrderPage(found))
    },
  }
}

const schema = {
  tags: ['orders'],
  operationId: 'listOrders',
  summary: 'List the orders of the account',
  description:
    'The newest first, page by page. An order that was there when the first page was read is met once, whatever is created meanwhile.',
  security: signedSecurity,
  querystring: parametersSchema(parameters, 'query'),
  response: {
    200: { description: 'A page of orders.', ...success(Type.Ref('OrderPage')) },
    ...errorAnswers('UNAUTHORIZED', 'INVALID_SIGNATURE', 'TIMESTAMP_EXPIRED', 'FORBIDDEN', 'RATE_LIMITED'),
  },
}
