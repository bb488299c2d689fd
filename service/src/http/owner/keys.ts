import type { RouteOptions } from 'fastify'
import Type from 'typebox'
import { scopes } from '../../accounts/api_key.ts'
import { type KeySummary, listKeys, OVERLAP_MS_DEFAULT, OVERLAP_MS_MAX } from '../../accounts/keys.ts'
import { endKey, makeKey, replaceSecret } from '../../accounts/owner_acts.ts'
import { accept } from '../../domain/outcome.ts'
import { SECOND_MS } from '../../domain/time.ts'
import { instant, nullable, oneOf, text } from '../json/schema.ts'
import { choice, flag, line, listOf, wholeNumber } from '../parameters/kinds.ts'
import { withDefault } from '../parameters/parameter.ts'
import { parameterOf, type RouteContext } from '../route_context.ts'
import { ownerRoute } from './owner_route.ts'
import { nothing } from './session.ts'

const scopeList = Type.Array(oneOf(scopes, 'read: look at orders; trade: create them and act.'))

const keySchema = Type.Object({
  key_id: text('What goes into X-API-KEY.', 'ck_0123456789abcdef0123'),
  label: Type.String({ description: 'What it is for.' }),
  scopes: scopeList,
  ip_allow: Type.Array(text('An address or range.', '203.0.113.0/24'), {
    description: 'Where it may be used from; empty is anywhere.',
  }),
  created_at: instant('When it was made.'),
  last_used_at: nullable(instant('When it was used last, to the minute.')),
  revoked_at: nullable(instant('Since when it is of no use.')),
  old_secret_until: nullable(instant('While two secrets live: when the older one ends.')),
})

const secret = Type.String({ description: 'The secret to sign with. Told once, here.' })
const keyParams = Type.Object({ key_id: Type.String({ description: 'The key.' }) })

/** Also of webhook secrets. */
export const rotation = {
  overlap_seconds: withDefault(
    wholeNumber(0, OVERLAP_MS_MAX / SECOND_MS, 'How long the old secret lives on.'),
    OVERLAP_MS_DEFAULT / SECOND_MS,
  ),
  replace_newest: withDefault(
    flag('While two live: the newest was lost, replace it. The older keeps its time.'),
    false,
  ),
}

export function listKeysRoute(context: RouteContext): RouteOptions {
  const { owners } = context.parts
  return ownerRoute(context, {
    method: 'GET',
    url: '/account/keys',
    operationId: 'listKeys',
    summary: 'List the API keys',
    parameters: {},
    data: Type.Object({
      keys: Type.Array(keySchema, {
        description: 'The newest first. All that live, and the 100 that were revoked last.',
      }),
    }),
    act: async (_values, { owner }) => {
      const found = await listKeys(owners, owner.accountId)
      return accept({ data: { keys: found.map(showKey) } })
    },
  })
}

function showKey(key: KeySummary): object {
  return {
    key_id: key.keyId,
    label: key.label,
    scopes: key.scopes,
    ip_allow: key.ipAllow,
    created_at: key.createdAtMs,
    last_used_at: key.lastUsedAtMs,
    revoked_at: key.revokedAtMs,
    old_secret_until: key.oldSecretUntilMs,
  }
}

export function createKeyRoute(context: RouteContext): RouteOptions {
  const { owners } = context.parts
  return ownerRoute(context, {
    method: 'POST',
    url: '/account/keys',
    operationId: 'createKey',
    summary: 'Make an API key',
    description: 'Its secret is told in this answer and never again.',
    parameters: {
      label: withDefault(line('What it is for.', 100), ''),
      scopes: withDefault(
        listOf(choice(scopes, 'What it may do.'), { min: 1, max: scopes.length }, 'What it may do.'),
        scopes,
      ),
      ip_allow: withDefault(
        listOf(
          line('An address or range such as 203.0.113.0/24.', 64),
          { min: 0, max: 50 },
          'Where it may be used from; empty is anywhere.',
        ),
        [],
      ),
    },
    data: Type.Object({ key_id: keySchema.properties.key_id, secret }),
    errors: ['CONFLICT'],
    act: async ({ label, scopes: wanted, ip_allow: ipAllow }, { owner }) => {
      const told = await makeKey(owners, owner, { label, scopes: wanted, ipAllow })
      if (!told.ok) return told
      return accept({ data: { key_id: told.value.keyId, secret: told.value.secret } })
    },
  })
}

export function rotateKeyRoute(context: RouteContext): RouteOptions {
  const { owners } = context.parts
  return ownerRoute(context, {
    method: 'POST',
    url: '/account/keys/:key_id/rotate',
    operationId: 'rotateKey',
    summary: 'Make a new secret for an API key',
    description: 'The old one lives on for a while, so that no request fails meanwhile.',
    parameters: rotation,
    params: keyParams,
    data: Type.Object({
      key_id: keySchema.properties.key_id,
      secret,
      old_secret_until: instant('Until when the old one is good as well.'),
    }),
    errors: ['NOT_FOUND', 'CONFLICT'],
    act: async (values, { owner, request }) => {
      const told = await replaceSecret(owners, owner, parameterOf(request, 'key_id'), {
        overlapMs: values.overlap_seconds * SECOND_MS,
        replacesNewest: values.replace_newest,
      })
      if (!told.ok) return told
      const { keyId, secret, oldSecretUntilMs } = told.value
      return accept({ data: { key_id: keyId, secret, old_secret_until: oldSecretUntilMs } })
    },
  })
}

export function revokeKeyRoute(context: RouteContext): RouteOptions {
  const { owners } = context.parts
  return ownerRoute(context, {
    method: 'DELETE',
    url: '/account/keys/:key_id',
    operationId: 'revokeKey',
    summary: 'Revoke an API key',
    description: 'For good, within two seconds everywhere. Revoking twice is the same as once.',
    parameters: {},
    params: keyParams,
    data: nothing,
    errors: ['NOT_FOUND'],
    act: async (_values, { owner, request }) => {
      const ended = await endKey(owners, owner, parameterOf(request, 'key_id'))
      return ended.ok ? accept({ data: {} }) : ended
    },
  })
}
