import type { RouteOptions } from 'fastify'
import Type from 'typebox'
import { endSession } from '../../accounts/sessions.ts'
import { askForLink, signIn } from '../../accounts/sign_in.ts'
import { isToken, makeToken } from '../../accounts/tokens.ts'
import { accept } from '../../domain/outcome.ts'
import { LINK_LIFETIME_MS, SESSION_MS_MAX } from '../../domain/session_lifetimes.ts'
import { inMinutes, SECOND_MS } from '../../domain/time.ts'
import { limitedAs } from '../limits/client_address.ts'
import { email, identifier } from '../parameters/kinds.ts'
import type { RouteContext } from '../route_context.ts'
import { showAccount } from './account_schema.ts'
import { openRoute, ownerRoute } from './owner_route.ts'

export const nothing = Type.Object({}, { description: 'Nothing more to say.' })

/** The same answer, and the same work, whether there is an account or not. */
export function askForLinkRoute(context: RouteContext): RouteOptions {
  const { owners, limits } = context.parts
  return openRoute(context, {
    method: 'POST',
    url: '/account/sign-in-links',
    operationId: 'askForSignInLink',
    summary: 'Have a link sent that signs in',
    description: `It works once, for ${inMinutes(LINK_LIFETIME_MS)}, in the browser that asked. The answer is the same whether the address has an account or not; an account is made when the link is used.`,
    parameters: { email: email('Where to send the link.') },
    data: nothing,
    act: async (values, { request, requester, cookies }) => {
      // The same browser may ask again: each of its links works.
      const known = cookies.read(request.raw, 'browser')
      const browserToken = known !== null && isToken(known) ? known : makeToken()
      const asked = await askForLink(
        owners,
        { perEmail: limits.mailsPerEmail, perAddress: limits.mailsPerAddress },
        { email: values.email, browserToken, requester, limitedAs: limitedAs(requester.address) },
      )
      if (!asked.ok) return asked
      return accept({
        data: {},
        cookies: cookies.set('browser', browserToken, LINK_LIFETIME_MS / SECOND_MS),
      })
    },
  })
}

export function signInRoute(context: RouteContext): RouteOptions {
  const { owners } = context.parts
  return openRoute(context, {
    method: 'POST',
    url: '/account/session',
    operationId: 'signIn',
    summary: 'Sign in with the token of a link',
    description: 'Uses the link up and sets the cookie of the session. Opening the link does neither.',
    parameters: { token: identifier('What stands behind `#token=` in the link.', 64) },
    data: Type.Ref('Account'),
    errors: ['LINK_INVALID'],
    act: async ({ token }, { request, requester, cookies }) => {
      const browserToken = cookies.read(request.raw, 'browser')
      const sessionToken = cookies.read(request.raw, 'session')
      const signedIn = await signIn(owners, { token, browserToken, sessionToken, requester })
      if (!signedIn.ok) return signedIn
      return accept({
        data: showAccount(signedIn.value, null),
        cookies: [
          ...cookies.set('session', signedIn.value.token, SESSION_MS_MAX / SECOND_MS),
          ...cookies.clear('browser'),
        ],
      })
    },
  })
}

export function signOutRoute(context: RouteContext): RouteOptions {
  const { owners } = context.parts
  return ownerRoute(context, {
    method: 'DELETE',
    url: '/account/session',
    operationId: 'signOut',
    summary: 'Sign out',
    parameters: {},
    data: nothing,
    act: async (_values, { owner, signedIn, cookies }) => {
      // Ended meanwhile from elsewhere: it is what was wanted.
      await endSession(owners, owner.by, owner.accountId, signedIn.session.sessionId)
      return accept({ data: {}, cookies: cookies.clear('session') })
    },
  })
}
