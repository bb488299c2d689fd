import type { RouteOptions } from 'fastify'
import Type from 'typebox'
import { errorAnswers } from '../answers/problem_schema.ts'
import { success } from '../json/schema.ts'
import { compileWriter } from '../json/writer.ts'
import { choice, instant } from '../parameters/kinds.ts'
import { optional } from '../parameters/parameter.ts'
import { parametersSchema } from '../parameters/read_body.ts'
import { inTurn, type RouteContext } from '../route_context.ts'
import { admitSignedPost, headersOf, refuseWithoutCredentials } from './signed_post.ts'
import { idempotencyHeaders, signedSecurity } from './signed_schema.ts'

const endedStates = ['delivered', 'exhausted', 'cancelled'] as const

const parameters = {
  since: instant('Deliveries of events from then on, by `event_at`.'),
  state: optional(choice(endedStates, 'Only those that ended in this state; all of them where left out.')),
}

const answerSchema = Type.Object({
  redelivered: Type.Integer({ description: 'How many deliveries wait again.', examples: [12] }),
})

const write = compileWriter(answerSchema)

export function redeliverSinceRoute(context: RouteContext): RouteOptions {
  const { answers, parts } = context
  return {
    method: 'POST',
    url: '/v1/account/webhooks/redeliver',
    schema: { ...schema, body: parametersSchema(parameters, 'body') },
    onRequest: refuseWithoutCredentials(context),
    async handler(request, reply) {
      const post = await admitSignedPost(context, request, reply, {
        parameters,
        units: parts.limits.createUnits,
      })
      if (post === null) return
      const since = { sinceMs: post.values.since, state: post.values.state }
      const { accountId } = post.key
      const done = await inTurn(context, request, reply, `redeliver:${accountId}`, () =>
        parts.webhooks.redeliverSince(accountId, since, post.retry),
      )
      if (done === null) return
      const outcome = done.value
      if (!outcome.ok) return answers.problem(request, reply, outcome.rejection)
      answers.data(request, reply, write(outcome.value), headersOf(outcome.value))
    },
  }
}

const schema = {
  tags: ['webhooks'],
  operationId: 'redeliverWebhooksSince',
  summary: 'Deliver all webhooks since a time again',
  description:
    'Of everything that is over, whatever became of it, unless `state` says which; for a receiver that was away or lost what it had. Costs as much as creating an order.',
  security: signedSecurity,
  headers: idempotencyHeaders,
  response: {
    200: { description: 'They wait for their first attempt again.', ...success(answerSchema) },
    ...errorAnswers(
      'INVALID_PARAMETER',
      'UNAUTHORIZED',
      'INVALID_SIGNATURE',
      'TIMESTAMP_EXPIRED',
      'FORBIDDEN',
      'PAYLOAD_TOO_LARGE',
      'UNSUPPORTED_MEDIA_TYPE',
      'IDEMPOTENCY_CONFLICT',
      'RATE_LIMITED',
    ),
  },
}
