import type { FastifyRequest, RouteOptions } from 'fastify'
import { anyOrigin } from '../answers/answers.ts'
import type { RouteContext } from '../route_context.ts'

/** What a browser asks before a page of another origin may send a header of ours: https://fetch.spec.whatwg.org/#http-cors-protocol. */
function isPreflight({ headers }: FastifyRequest): boolean {
  return headers.origin !== undefined && headers['access-control-request-method'] === 'GET'
}

/** The token reads an order from a page of any origin; what is signed is no business of pages. */
const ALLOWED = [
  ...anyOrigin,
  'Access-Control-Allow-Headers',
  'X-ORDER-TOKEN, Last-Event-ID',
  'Access-Control-Max-Age',
  '7200',
]

/** Whatever else comes with this method is refused as on every other path. */
function preflightRoute(url: string): (context: RouteContext) => RouteOptions {
  return ({ answers }) => ({
    method: 'OPTIONS',
    url,
    schema: { hide: true },
    // Before the body: it would be read for nothing.
    onRequest: (request, reply) => {
      if (isPreflight(request)) return answers.raw(request, reply, 204, '', ALLOWED)
      const allow = 'GET, HEAD'
      answers.problem(request, reply, {
        code: 'METHOD_NOT_ALLOWED',
        message: `this path takes ${allow}`,
        allow,
      })
    },
    handler: () => undefined,
  })
}

/** Of what is read with an order's token. */
export const preflightRoutes = ['/v1/order/:order_id', '/v1/order/:order_id/events'].map(preflightRoute)
