import type { RouteOptions } from 'fastify'
import Type from 'typebox'
import type { OrderView } from '../../engine/desks/desk.ts'
import { anyOrigin, jsonNoStore } from '../answers/answers.ts'
import { errorAnswers } from '../answers/problem_schema.ts'
import { success } from '../json/schema.ts'
import { compileWriter, joined } from '../json/writer.ts'
import type { RouteContext } from '../route_context.ts'
import { orderReference } from './order_id.ts'
import { orderSchema } from './order_schema.ts'
import { signedSecurity } from './signed_schema.ts'
import { orderAskedFor } from './viewer.ts'

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
  return {
    method: 'GET',
    url: '/v1/order/:order_id',
    schema,
    async handler(request, reply) {
      const asked = await orderAskedFor(context, request, reply, 'order')
      if (asked === null) return
      const headers = asked.viewer.kind === 'token' ? [...jsonNoStore, ...anyOrigin] : jsonNoStore
      context.answers.data(request, reply, writeOnce(asked.order), headers)
    },
  }
}

const schema = {
  tags: ['orders'],
  operationId: 'getOrder',
  summary: 'Look at an order',
  description: 'With an API key by its full id, or with its token by the full id or the last 8 digits.',
  security: [...signedSecurity, { orderToken: [] }, { orderTokenQuery: [] }],
  params: Type.Object({ order_id: orderReference }),
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
