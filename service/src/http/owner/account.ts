import type { RouteOptions } from 'fastify'
import Type from 'typebox'
import { findEmailChange } from '../../accounts/email_change.ts'
import { accept } from '../../domain/outcome.ts'
import type { RouteContext } from '../route_context.ts'
import { showAccount } from './account_schema.ts'
import { ownerRoute } from './owner_route.ts'

export function accountRoute(context: RouteContext): RouteOptions {
  const { owners } = context.parts
  return ownerRoute(context, {
    method: 'GET',
    url: '/account',
    operationId: 'getAccount',
    summary: 'Look at the account',
    parameters: {},
    data: Type.Ref('Account'),
    act: async (_values, { owner, signedIn }) =>
      accept({ data: showAccount(signedIn, await findEmailChange(owners, owner.accountId)) }),
  })
}
