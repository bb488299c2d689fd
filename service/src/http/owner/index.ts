import type { RouteOptions } from 'fastify'
import type { RouteContext } from '../route_context.ts'
import { accountRoute } from './account.ts'
import { auditRoute } from './audit.ts'
import { ownersDeliveriesRoute } from './deliveries.ts'
import {
  agreeToEmailChangeRoute,
  askEmailChangeRoute,
  cancelEmailChangeRoute,
  stopEmailChangeRoute,
} from './email.ts'
import { createKeyRoute, listKeysRoute, revokeKeyRoute, rotateKeyRoute } from './keys.ts'
import { notificationsRoute, setNotificationsRoute } from './notifications.ts'
import { exportOrdersRoute, ownersOrdersRoute } from './orders.ts'
import { pageRoutes } from './pages.ts'
import { askForLinkRoute, signInRoute, signOutRoute } from './session.ts'
import { endAllSessionsRoute, endSessionRoute, listSessionsRoute } from './sessions.ts'
import {
  createEndpointRoute,
  deleteEndpointRoute,
  listEndpointsRoute,
  listWebhookSecretsRoute,
  rotateWebhookSecretRoute,
  switchEndpointRoute,
} from './webhooks.ts'

/** Everything below /account, for owners who sign in. */
export const ownerRoutes: readonly ((context: RouteContext) => RouteOptions)[] = [
  askForLinkRoute,
  signInRoute,
  signOutRoute,
  accountRoute,
  listSessionsRoute,
  endSessionRoute,
  endAllSessionsRoute,
  askEmailChangeRoute,
  cancelEmailChangeRoute,
  agreeToEmailChangeRoute,
  stopEmailChangeRoute,
  notificationsRoute,
  setNotificationsRoute,
  listKeysRoute,
  createKeyRoute,
  rotateKeyRoute,
  revokeKeyRoute,
  listEndpointsRoute,
  createEndpointRoute,
  switchEndpointRoute,
  deleteEndpointRoute,
  listWebhookSecretsRoute,
  rotateWebhookSecretRoute,
  ownersDeliveriesRoute,
  ownersOrdersRoute,
  exportOrdersRoute,
  auditRoute,
  ...pageRoutes,
]
