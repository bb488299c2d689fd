import type { RouteOptions } from 'fastify'
import Type from 'typebox'
import { accept } from '../../domain/outcome.ts'
import { deliveryPageOf, deliveryParameters, readDeliveries } from '../account/list_deliveries.ts'
import type { RouteContext } from '../route_context.ts'
import { ownerRoute } from './owner_route.ts'

export function ownersDeliveriesRoute(context: RouteContext): RouteOptions {
  const { webhooks } = context.parts
  return ownerRoute(context, {
    method: 'GET',
    url: '/account/webhook-deliveries',
    operationId: 'listAccountDeliveries',
    summary: 'What was sent to the receivers of the account, with the newest attempts',
    description: 'The newest event first. Deliveries that are over are kept for 30 days.',
    parameters: deliveryParameters,
    data: deliveryPageOf(Type.Ref('WebhookDelivery')),
    act: async (values, { owner }) =>
      accept({ data: await readDeliveries(webhooks, owner.accountId, values) }),
  })
}
