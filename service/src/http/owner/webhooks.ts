import type { RouteOptions } from 'fastify'
import Type from 'typebox'
import {
  addEndpoint,
  removeEndpoint,
  replaceWebhookSecret,
  switchEndpoint,
} from '../../accounts/owner_acts.ts'
import { listEndpoints, type WebhookEndpoint } from '../../accounts/webhook_endpoints.ts'
import { listWebhookSecrets } from '../../accounts/webhook_secrets.ts'
import { accept } from '../../domain/outcome.ts'
import { SECOND_MS } from '../../domain/time.ts'
import { instant, nullable, oneOf, text } from '../json/schema.ts'
import { callbackUrl, flag } from '../parameters/kinds.ts'
import { parameterOf, type RouteContext } from '../route_context.ts'
import { rotation } from './keys.ts'
import { ownerRoute } from './owner_route.ts'
import { nothing } from './session.ts'

const endpointSchema = Type.Object({
  endpoint_id: text('The endpoint.', 'we_0123456789abcdef'),
  url: Type.String({ format: 'uri', description: 'Where events of all orders are sent.' }),
  created_at: instant('When it was made.'),
  disabled_at: nullable(instant('Since when nothing is sent to it.')),
  disabled_by: nullable(oneOf(['owner', 'receiver'], 'The receiver disables itself by answering 410.')),
})

function showEndpoint(endpoint: WebhookEndpoint): object {
  return {
    endpoint_id: endpoint.endpointId,
    url: endpoint.url,
    created_at: endpoint.createdAtMs,
    disabled_at: endpoint.disabledAtMs,
    disabled_by: endpoint.disabledBy,
  }
}

const params = Type.Object({ endpoint_id: Type.String({ description: 'The endpoint.' }) })

export function listEndpointsRoute(context: RouteContext): RouteOptions {
  const { owners } = context.parts
  return ownerRoute(context, {
    method: 'GET',
    url: '/account/webhooks',
    operationId: 'listWebhooks',
    summary: 'List where events are sent',
    parameters: {},
    data: Type.Object({ endpoints: Type.Array(endpointSchema, { description: 'The oldest first.' }) }),
    act: async (_values, { owner }) => {
      const found = await listEndpoints(owners, owner.accountId)
      return accept({ data: { endpoints: found.map(showEndpoint) } })
    },
  })
}

export function createEndpointRoute(context: RouteContext): RouteOptions {
  const { owners, limits } = context.parts
  return ownerRoute(context, {
    method: 'POST',
    url: '/account/webhooks',
    operationId: 'createWebhook',
    summary: 'Have the events of all orders sent somewhere',
    description: 'The same URL again is the same endpoint, and enabled.',
    parameters: { url: callbackUrl('Where to (https).', limits.loopbackCallbacks) },
    data: endpointSchema,
    errors: ['CONFLICT'],
    act: async ({ url }, { owner }) => {
      const made = await addEndpoint(owners, owner, url)
      return made.ok ? accept({ data: showEndpoint(made.value) }) : made
    },
  })
}

export function switchEndpointRoute(context: RouteContext): RouteOptions {
  const { owners } = context.parts
  return ownerRoute(context, {
    method: 'PUT',
    url: '/account/webhooks/:endpoint_id',
    operationId: 'switchWebhook',
    summary: 'Enable or disable an endpoint',
    parameters: { enabled: flag('Whether events are sent to it from now on.') },
    params,
    data: endpointSchema,
    errors: ['NOT_FOUND'],
    act: async ({ enabled }, { owner, request }) => {
      const turned = await switchEndpoint(owners, owner, parameterOf(request, 'endpoint_id'), enabled)
      return turned.ok ? accept({ data: showEndpoint(turned.value) }) : turned
    },
  })
}

export function deleteEndpointRoute(context: RouteContext): RouteOptions {
  const { owners } = context.parts
  return ownerRoute(context, {
    method: 'DELETE',
    url: '/account/webhooks/:endpoint_id',
    operationId: 'deleteWebhook',
    summary: 'Delete an endpoint',
    parameters: {},
    params,
    data: nothing,
    errors: ['NOT_FOUND'],
    act: async (_values, { owner, request }) => {
      const deleted = await removeEndpoint(owners, owner, parameterOf(request, 'endpoint_id'))
      return deleted.ok ? accept({ data: {} }) : deleted
    },
  })
}

export function listWebhookSecretsRoute(context: RouteContext): RouteOptions {
  const { owners } = context.parts
  return ownerRoute(context, {
    method: 'GET',
    url: '/account/webhook-secrets',
    operationId: 'listWebhookSecrets',
    summary: 'Which secrets events are signed with',
    parameters: {},
    data: Type.Object({
      secrets: Type.Array(
        Type.Object({
          created_at: instant('When it was made.'),
          expires_at: nullable(instant('While two live: when the older one ends.')),
        }),
        { description: 'The newest first; at most two live.' },
      ),
    }),
    act: async (_values, { owner }) => {
      const found = await listWebhookSecrets(owners, owner.accountId)
      const secrets = found.map(({ createdAtMs, expiresAtMs }) => ({
        created_at: createdAtMs,
        expires_at: expiresAtMs,
      }))
      return accept({ data: { secrets } })
    },
  })
}

export function rotateWebhookSecretRoute(context: RouteContext): RouteOptions {
  const { owners } = context.parts
  return ownerRoute(context, {
    method: 'POST',
    url: '/account/webhook-secrets/rotate',
    operationId: 'rotateWebhookSecret',
    summary: 'Make a secret that events are signed with',
    description:
      'Told in this answer and never again. Events are signed with the one before as well for a while.',
    parameters: rotation,
    data: Type.Object({
      secret: Type.String({ description: '`whsec_…`, as Standard Webhooks has it. Told once, here.' }),
      old_secret_until: nullable(instant('Until when the old one signs as well; null where there was none.')),
    }),
    errors: ['CONFLICT'],
    act: async (values, { owner }) => {
      const told = await replaceWebhookSecret(owners, owner, {
        overlapMs: values.overlap_seconds * SECOND_MS,
        replacesNewest: values.replace_newest,
      })
      if (!told.ok) return told
      return accept({ data: { secret: told.value.secret, old_secret_until: told.value.oldSecretUntilMs } })
    },
  })
}
