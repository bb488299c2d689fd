import type { RouteOptions } from 'fastify'
import Type from 'typebox'
import {
  agreeToEmailChange,
  askEmailChange,
  cancelEmailChange,
  stopEmailChange,
} from '../../accounts/email_change.ts'
import { visitor } from '../../accounts/owner_place.ts'
import { accept } from '../../domain/outcome.ts'
import { text } from '../json/schema.ts'
import { email, identifier } from '../parameters/kinds.ts'
import type { RouteContext } from '../route_context.ts'
import { emailChangeSchema, showEmailChange } from './account_schema.ts'
import { openRoute, ownerRoute } from './owner_route.ts'
import { nothing } from './session.ts'

const token = identifier('What stands behind `#token=` in the link.', 64)

export function askEmailChangeRoute(context: RouteContext): RouteOptions {
  const { owners, limits } = context.parts
  return ownerRoute(context, {
    method: 'POST',
    url: '/account/email',
    operationId: 'askEmailChange',
    summary: 'Ask for another email address',
    description:
      'Sends a link to the present address and one to the new one. The present one holds until both have agreed, for at most 24 hours.',
    parameters: { email: email('The new address.') },
    data: emailChangeSchema,
    errors: ['CONFLICT'],
    act: async (values, { owner, signedIn }) => {
      const mails = { perEmail: limits.mailsPerEmail, perAddress: limits.mailsPerAddress }
      const asked = await askEmailChange(owners, owner.by, signedIn.account, values.email, mails)
      return asked.ok ? accept({ data: showEmailChange(asked.value) }) : asked
    },
  })
}

export function cancelEmailChangeRoute(context: RouteContext): RouteOptions {
  const { owners } = context.parts
  return ownerRoute(context, {
    method: 'DELETE',
    url: '/account/email',
    operationId: 'cancelEmailChange',
    summary: 'Give a change of the address up',
    parameters: {},
    data: nothing,
    act: async (_values, { owner }) => {
      await cancelEmailChange(owners, owner.by, owner.accountId)
      return accept({ data: {} })
    },
  })
}

export function agreeToEmailChangeRoute(context: RouteContext): RouteOptions {
  const { owners } = context.parts
  return openRoute(context, {
    method: 'POST',
    url: '/account/email/agree',
    operationId: 'agreeToEmailChange',
    summary: 'Agree to a change of the address',
    description:
      'With the token of the link that came to either address; needs no session. When both have agreed, every session of the account ends.',
    parameters: { token },
    data: Type.Object({
      new_email: text('The new address.', 'new@example.com'),
      is_changed: Type.Boolean({ description: 'Whether both have agreed, and it holds now.' }),
    }),
    errors: ['LINK_INVALID', 'CONFLICT'],
    act: async (values, { requester }) => {
      const agreed = await agreeToEmailChange(owners, visitor(requester), values.token)
      if (!agreed.ok) return agreed
      const { newEmail, isChanged } = agreed.value
      return accept({ data: { new_email: newEmail, is_changed: isChanged } })
    },
  })
}

export function stopEmailChangeRoute(context: RouteContext): RouteOptions {
  const { owners } = context.parts
  return openRoute(context, {
    method: 'POST',
    url: '/account/email/stop',
    operationId: 'stopEmailChange',
    summary: 'Stop a change of the address',
    description: 'With the token of the link that came to either address; needs no session.',
    parameters: { token },
    data: nothing,
    errors: ['LINK_INVALID'],
    act: async (values, { requester }) => {
      const stopped = await stopEmailChange(owners, visitor(requester), values.token)
      return stopped.ok ? accept({ data: {} }) : stopped
    },
  })
}
