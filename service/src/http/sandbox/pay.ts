import type { RouteOptions } from 'fastify'
import Type from 'typebox'
import { isOrderId } from '../../domain/orders/identifiers.ts'
import { orderIdSchema, orderNotFound } from '../account/order_id.ts'
import { text } from '../json/schema.ts'
import { amount } from '../parameters/kinds.ts'
import { optional } from '../parameters/parameter.ts'
import { parameterOf, type RouteContext } from '../route_context.ts'
import type { SandboxRoutes } from './sandbox_port.ts'
import { sandboxRoute } from './sandbox_route.ts'

export function payRoute(context: RouteContext, sandbox: SandboxRoutes): RouteOptions {
  return sandboxRoute(context, {
    method: 'POST',
    url: '/sandbox/orders/:order_id/pay',
    operationId: 'sandboxPay',
    summary: 'Pay an order with a real transaction on the local chain',
    parameters: { amount: optional(amount('What to send; without it what the order asks for.', 0.05)) },
    params: Type.Object({ order_id: orderIdSchema }),
    data: Type.Object({ tx_hash: text('The transaction.', '9b1c0f…') }),
    errors: ['ORDER_NOT_FOUND', 'MAINTENANCE', 'AMOUNT_OUT_OF_RANGE'],
    async act(values, request) {
      const orderId = parameterOf(request, 'order_id')
      if (!isOrderId(orderId)) {
        return { ok: false, rejection: { code: 'ORDER_NOT_FOUND', message: orderNotFound.message } }
      }
      return sandbox.pay(orderId, values.amount)
    },
  })
}
