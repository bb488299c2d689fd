import type { RouteOptions } from 'fastify'
import Type from 'typebox'
import { errorAnswers } from '../answers/problem_schema.ts'
import type { Problem } from '../errors.ts'
import { success } from '../json/schema.ts'
import { compileWriter } from '../json/writer.ts'
import { parametersSchema } from '../parameters/read_body.ts'
import { inTurn, parameterOf, type RouteContext } from '../route_context.ts'
import { deliveryIdSchema, deliverySchema } from './delivery_schema.ts'
import { admitSignedPost, headersOf, refuseWithoutCredentials } from './signed_post.ts'
import { idempotencyHeaders, signedSecurity } from './signed_schema.ts'

const write = compileWriter(deliverySchema)

const noSuchDelivery: Problem = { code: 'NOT_FOUND', message: 'there is no such delivery' }

export function redeliverRoute(context: RouteContext): RouteOptions {
  const { answers, parts } = context
  return {
    method: 'POST',
    url: '/v1/account/webhooks/deliveries/:delivery_id/redeliver',
    schema: { ...schema, body: parametersSchema({}, 'body') },
    onRequest: refuseWithoutCredentials(context),
    async handler(request, reply) {
      const post = await admitSignedPost(context, request, reply, { parameters: {}, units: 1 })
      if (post === null) return
      const id = parameterOf(request, 'delivery_id')
      const { accountId } = post.key
      const done = await inTurn(context, request, reply, `redeliver:${accountId}`, () =>
        parts.webhooks.redeliver(accountId, id, post.retry),
      )
      if (done === null) return
      const outcome = done.value
      if (outcome === null) return answers.problem(request, reply, noSuchDelivery)
      if (!outcome.ok) return answers.problem(request, reply, outcome.rejection)
      answers.data(request, reply, write(outcome.value.delivery), headersOf(outcome.value))
    },
  }
}

const schema = {
  tags: ['webhooks'],
  operationId: 'redeliverWebhook',
  summary: 'Deliver a webhook again',
  description:
    'Puts it back into its line, before newer events of the same order that wait there. What waits already goes on waiting. Of the attempts before it the newest 10 are kept.',
  security: signedSecurity,
  headers: idempotencyHeaders,
  params: Type.Object({ delivery_id: deliveryIdSchema }),
  response: {
    200: { description: 'The delivery, as it is now.', ...success(Type.Ref('WebhookDelivery')) },
    ...errorAnswers(
      'INVALID_PARAMETER',
      'UNAUTHORIZED',
      'INVALID_SIGNATURE',
      'TIMESTAMP_EXPIRED',
      'FORBIDDEN',
      'NOT_FOUND',
      'PAYLOAD_TOO_LARGE',
      'UNSUPPORTED_MEDIA_TYPE',
      'IDEMPOTENCY_CONFLICT',
      'RATE_LIMITED',
    ),
  },
}
