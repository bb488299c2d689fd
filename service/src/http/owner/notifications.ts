import type { RouteOptions } from 'fastify'
import Type from 'typebox'
import { readPreferences } from '../../accounts/notifications.ts'
import { choosePreferences } from '../../accounts/owner_acts.ts'
import { mailedOrders, optionalMails } from '../../domain/notifications/preferences.ts'
import { accept } from '../../domain/outcome.ts'
import { oneOf } from '../json/schema.ts'
import { choice, listOf } from '../parameters/kinds.ts'
import type { RouteContext } from '../route_context.ts'
import { ownerRoute } from './owner_route.ts'

const whichOrders = 'Of which orders to send mails: all, those with a callback_url, or none.'
const whichMails = 'Mails that are not wanted. The others come as long as there are any at all.'

const settings = Type.Object({
  emails: oneOf(mailedOrders, whichOrders),
  muted: Type.Array(oneOf(optionalMails, 'A mail.'), { description: whichMails }),
})

export function notificationsRoute(context: RouteContext): RouteOptions {
  const { owners } = context.parts
  return ownerRoute(context, {
    method: 'GET',
    url: '/account/notifications',
    operationId: 'getNotifications',
    summary: 'Which mails about orders are wanted',
    parameters: {},
    data: settings,
    act: async (_values, { owner }) => accept({ data: await readPreferences(owners, owner.accountId) }),
  })
}

export function setNotificationsRoute(context: RouteContext): RouteOptions {
  const { owners } = context.parts
  return ownerRoute(context, {
    method: 'PUT',
    url: '/account/notifications',
    operationId: 'setNotifications',
    summary: 'Say which mails about orders are wanted',
    description: 'Mails about the safety of the account always come.',
    parameters: {
      emails: choice(mailedOrders, whichOrders),
      muted: listOf(choice(optionalMails, 'A mail.'), { min: 0, max: optionalMails.length }, whichMails),
    },
    data: settings,
    act: async (values, { owner }) => {
      const chosen = await choosePreferences(owners, owner, values)
      return chosen.ok ? accept({ data: chosen.value }) : chosen
    },
  })
}
