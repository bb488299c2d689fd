import swagger from '@fastify/swagger'
import type { FastifyInstance, RouteOptions } from 'fastify'
import { chooseActionRoute } from './account/choose_action.ts'
import { createOrderRoute } from './account/create_order.ts'
import { getOrderRoute } from './account/get_order.ts'
import { listDeliveriesRoute } from './account/list_deliveries.ts'
import { listOrdersRoute } from './account/list_orders.ts'
import { orderEventsRoute } from './account/order_events.ts'
import { preflightRoutes } from './account/preflight.ts'
import { redeliverRoute } from './account/redeliver.ts'
import { redeliverSinceRoute } from './account/redeliver_since.ts'
import { createEndpointRoute, deleteEndpointRoute, listEndpointsRoute } from './account/webhook_endpoints.ts'
import { authenticator } from './auth/authenticate.ts'
import { guesses } from './limits/guesses.ts'
import { rateLimit } from './limits/rate_limit.ts'
import { seats } from './limits/seats.ts'
import { turns } from './limits/turns.ts'
import { openOperatorServer, serveRoutes } from './operator_server.ts'
import { ownerRoutes } from './owner/index.ts'
import { orderPageRoute } from './pages/order.ts'
import { unsubscribeActionRoute, unsubscribePageRoute } from './pages/unsubscribe.ts'
import type { HttpParts } from './parts.ts'
import { currenciesRoute } from './public/currencies.ts'
import { registerDocs } from './public/docs.ts'
import { logoRoute } from './public/logo.ts'
import { namedSchemas, openApiRoute, swaggerOptions } from './public/openapi.ts'
import { qrRoute } from './public/qr.ts'
import { rateRoute } from './public/rate.ts'
import type { RouteContext } from './route_context.ts'
import { sandboxRoutes } from './sandbox/index.ts'

const interfaceRoutes: readonly ((context: RouteContext) => RouteOptions)[] = [
  rateRoute,
  currenciesRoute,
  createOrderRoute,
  getOrderRoute,
  listOrdersRoute,
  orderEventsRoute,
  ...preflightRoutes,
  qrRoute,
  chooseActionRoute,
  listDeliveriesRoute,
  redeliverRoute,
  redeliverSinceRoute,
  listEndpointsRoute,
  createEndpointRoute,
  deleteEndpointRoute,
  logoRoute,
  openApiRoute,
  orderPageRoute,
  unsubscribePageRoute,
  unsubscribeActionRoute,
]

/** The whole interface over a desk. Nothing listens yet; `close` lets requests under way finish. */
export function buildServer(parts: HttpParts): FastifyInstance {
  const { app, operator } = openOperatorServer(parts)
  const guessed = guesses(parts.limits, parts.clock, operator.addressOf)
  const context: RouteContext = {
    ...operator,
    parts,
    limit: rateLimit(parts.limits, parts.clock),
    seats: seats(parts.limits),
    turns: turns(),
    guesses: guessed,
    authenticate: authenticator(parts.apiKeys, parts.clock, operator.addressOf, guessed),
  }
  app.register(swagger, swaggerOptions)
  const routes = [
    ...[...interfaceRoutes, ...ownerRoutes].map((route) => route(context)),
    ...sandboxRoutes(context, parts.sandbox),
  ]
  serveRoutes(app, operator, routes, namedSchemas)
  registerDocs(app, operator.answers)
  // A stream would keep the server open for as long as its order takes.
  app.addHook('preClose', parts.feed.close)
  return app
}
