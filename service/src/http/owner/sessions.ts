import type { RouteOptions } from 'fastify'
import Type from 'typebox'
import { endAllSessions, endSession, listSessions, type Session } from '../../accounts/sessions.ts'
import { accept } from '../../domain/outcome.ts'
import { instant, nullable, text } from '../json/schema.ts'
import { parameterOf, type RouteContext } from '../route_context.ts'
import { ownerRoute } from './owner_route.ts'
import { nothing } from './session.ts'

const sessionSchema = Type.Object({
  session_id: text('The session.', 'ses_0123456789abcdef'),
  is_current: Type.Boolean({ description: 'The one that asks.' }),
  created_at: instant('When it began.'),
  last_used_at: instant('When it was used last, to the minute.'),
  expires_at: instant('When it ends if it is not used any more.'),
  address: text('Where it was begun from.', '203.0.113.7'),
  user_agent: nullable(text('What the browser calls itself.', 'Mozilla/5.0')),
})

export function listSessionsRoute(context: RouteContext): RouteOptions {
  const { owners } = context.parts
  return ownerRoute(context, {
    method: 'GET',
    url: '/account/sessions',
    operationId: 'listSessions',
    summary: 'Where the account is signed in',
    parameters: {},
    data: Type.Object({ sessions: Type.Array(sessionSchema, { description: 'The last used first.' }) }),
    act: async (_values, { owner, signedIn }) => {
      const found = await listSessions(owners, owner.accountId)
      return accept({
        data: { sessions: found.map((session) => showSession(session, signedIn.session.sessionId)) },
      })
    },
  })
}

function showSession(session: Session, currentId: string): object {
  return {
    session_id: session.sessionId,
    is_current: session.sessionId === currentId,
    created_at: session.createdAtMs,
    last_used_at: session.lastUsedAtMs,
    expires_at: session.expiresAtMs,
    address: session.address,
    user_agent: session.userAgent,
  }
}

export function endSessionRoute(context: RouteContext): RouteOptions {
  const { owners } = context.parts
  return ownerRoute(context, {
    method: 'DELETE',
    url: '/account/sessions/:session_id',
    operationId: 'endSession',
    summary: 'End a session',
    description: 'At once, everywhere.',
    parameters: {},
    params: Type.Object({ session_id: Type.String({ description: 'The session.' }) }),
    data: nothing,
    errors: ['NOT_FOUND'],
    act: async (_values, { owner, request }) => {
      const ended = await endSession(owners, owner.by, owner.accountId, parameterOf(request, 'session_id'))
      return ended.ok ? accept({ data: {} }) : ended
    },
  })
}

export function endAllSessionsRoute(context: RouteContext): RouteOptions {
  const { owners } = context.parts
  return ownerRoute(context, {
    method: 'DELETE',
    url: '/account/sessions',
    operationId: 'signOutEverywhere',
    summary: 'Sign out everywhere',
    description: 'Ends every session of the account, this one too. API keys go on working.',
    parameters: {},
    data: Type.Object({ ended: Type.Integer({ description: 'How many sessions ended.', examples: [2] }) }),
    act: async (_values, { owner, cookies }) => {
      const ended = await endAllSessions(owners, owner.by, owner.accountId)
      return accept({ data: { ended }, cookies: cookies.clear('session') })
    },
  })
}
