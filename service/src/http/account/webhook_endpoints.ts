import type { RouteOptions } from 'fastify'
import Type from 'typebox'
import { type Owner, ownerByKey } from '../../accounts/owner_acts.ts'
import type { WebhookEndpoint } from '../../accounts/webhook_endpoints.ts'
import type { Rejection } from '../../domain/outcome.ts'
import { jsonNoStore } from '../answers/answers.ts'
import { errorAnswers } from '../answers/problem_schema.ts'
import { invalidParameters, type Problem } from '../errors.ts'
import { success } from '../json/schema.ts'
import { compileWriter } from '../json/writer.ts'
import { callbackUrl } from '../parameters/kinds.ts'
import { parametersSchema } from '../parameters/read_body.ts'
import { readQuery } from '../parameters/read_query.ts'
import { inTurn, parameterOf, queryOf, type RouteContext } from '../route_context.ts'
import { endpointSchema } from './delivery_schema.ts'
import { admitSignedPost, callerOf, headersOf, refuseWithoutCredentials } from './signed_post.ts'
import { idempotencyHeaders, signedSecurity } from './signed_schema.ts'

const url = '/v1/account/webhooks/endpoints'

const list = <Item extends typeof endpointSchema | ReturnType<typeof Type.Ref>>(item: Item) =>
  Type.Object({ endpoints: Type.Array(item) })

const writeOne = compileWriter(endpointSchema)
const writeAll = compileWriter(list(endpointSchema))

export function listEndpointsRoute(context: RouteContext): RouteOptions {
  const { answers, parts } = context
  return {
    method: 'GET',
    url,
    schema: {
      ...described('listWebhookEndpoints', 'List where the events of all orders go'),
      response: {
        200: { description: 'The oldest first.', ...success(list(Type.Ref('WebhookEndpoint'))) },
        ...errorAnswers('INVALID_PARAMETER', ...refusals),
      },
    },
    async handler(request, reply) {
      const caller = await callerOf(context, request, reply, 'read', 1)
      if (caller === null) return
      const read = readQuery({}, queryOf(request))
      if (!read.ok) return answers.problem(request, reply, invalidParameters(read.details))
      const endpoints = await parts.endpoints.list(caller.key.accountId)
      answers.data(request, reply, writeAll({ endpoints: endpoints.map(viewEndpoint) }), jsonNoStore)
    },
  }
}

export function createEndpointRoute(context: RouteContext): RouteOptions {
  const { answers, parts } = context
  const parameters = {
    url: callbackUrl('Where the events of all orders are sent (https).', parts.limits.loopbackCallbacks),
  }
  return {
    method: 'POST',
    url,
    schema: {
      ...described('createWebhookEndpoint', 'Have the events of all orders sent to a URL'),
      description:
        'The same URL again is the same endpoint, and enabled. An account has at most 10. Costs as much as creating an order.',
      headers: idempotencyHeaders,
      body: parametersSchema(parameters, 'body'),
      response: {
        200: { description: 'The endpoint.', ...success(Type.Ref('WebhookEndpoint')) },
        ...errorAnswers(
          'INVALID_PARAMETER',
          ...refusals,
          'CONFLICT',
          'PAYLOAD_TOO_LARGE',
          'UNSUPPORTED_MEDIA_TYPE',
          'IDEMPOTENCY_CONFLICT',
        ),
      },
    },
    onRequest: refuseWithoutCredentials(context),
    async handler(request, reply) {
      const post = await admitSignedPost(context, request, reply, {
        parameters,
        units: parts.limits.createUnits,
      })
      if (post === null) return
      const owner = ownerByKey(post.key, context.addressOf(request.raw))
      const done = await inTurn(context, request, reply, turnOf(owner), () =>
        parts.endpoints.create(owner, post.values.url, post.retry),
      )
      if (done === null) return
      const made = done.value
      if (!made.ok) return answers.problem(request, reply, problemOf(made.rejection))
      answers.data(request, reply, writeOne(viewEndpoint(made.value.endpoint)), headersOf(made.value))
    },
  }
}

/** Apart from who is signed in, who must be able to end what a stolen key begins. */
function turnOf({ accountId }: Owner): string {
  return `key:${accountId}`
}

function problemOf({
  code,
  message,
  retryAfterSeconds,
}: Rejection & { retryAfterSeconds?: number }): Problem {
  if (code === 'IDEMPOTENCY_CONFLICT') return { code, message }
  if (code === 'too_many_endpoints') return { code: 'CONFLICT', message }
  if (retryAfterSeconds !== undefined)
    return { code: 'RATE_LIMITED', message, retry_after: retryAfterSeconds }
  return invalidParameters([{ field: 'url', message }])
}

const noSuchEndpoint: Problem = { code: 'NOT_FOUND', message: 'there is no such endpoint' }

export function deleteEndpointRoute(context: RouteContext): RouteOptions {
  const { answers, parts } = context
  return {
    method: 'DELETE',
    url: `${url}/:endpoint_id`,
    schema: {
      ...described('deleteWebhookEndpoint', 'Send no more events to an endpoint'),
      params: Type.Object({ endpoint_id: Type.String({ examples: ['we_0123456789abcdef'] }) }),
      response: {
        200: {
          description: 'It is gone; what waited for it is cancelled.',
          ...success(Type.Object({ id: Type.String({ examples: ['we_0123456789abcdef'] }) })),
        },
        ...errorAnswers('INVALID_PARAMETER', ...refusals, 'NOT_FOUND'),
      },
    },
    async handler(request, reply) {
      const caller = await callerOf(context, request, reply, 'trade', 1)
      if (caller === null) return
      const read = readQuery({}, queryOf(request))
      if (!read.ok) return answers.problem(request, reply, invalidParameters(read.details))
      const id = parameterOf(request, 'endpoint_id')
      const owner = ownerByKey(caller.key, context.addressOf(request.raw))
      const done = await inTurn(context, request, reply, turnOf(owner), () =>
        parts.endpoints.remove(owner, id),
      )
      if (done === null) return
      if (!done.value.ok) return answers.problem(request, reply, noSuchEndpoint)
      answers.data(request, reply, JSON.stringify({ id }), jsonNoStore)
    },
  }
}

const refusals = [
  'UNAUTHORIZED',
  'INVALID_SIGNATURE',
  'TIMESTAMP_EXPIRED',
  'FORBIDDEN',
  'RATE_LIMITED',
] as const

function described(operationId: string, summary: string) {
  return { tags: ['webhooks'], operationId, summary, security: signedSecurity }
}

function viewEndpoint(endpoint: WebhookEndpoint) {
  return {
    id: endpoint.endpointId,
    url: endpoint.url,
    created_at: endpoint.createdAtMs,
    disabled_at: endpoint.disabledAtMs,
    disabled_by: endpoint.disabledBy,
  }
}
