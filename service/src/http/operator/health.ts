import type { RouteOptions } from 'fastify'
import { jsonNoStore } from '../answers/answers.ts'
import type { OperatorContext } from '../route_context.ts'

/** The process answers: nothing else is promised, so that a database that is away does not restart it. */
export function healthRoute({ answers }: OperatorContext): RouteOptions {
  return {
    method: 'GET',
    url: '/healthz',
    schema: { hide: true },
    handler(request, reply) {
      answers.data(request, reply, '{"status":"ok"}')
    },
  }
}

/** Whether requests should be sent here now; 503 with the same shape when not. */
export function readinessRoute({ answers, parts }: OperatorContext): RouteOptions {
  return {
    method: 'GET',
    url: '/readyz',
    schema: { hide: true },
    async handler(request, reply) {
      const { ready, checks } = await parts.readiness()
      answers.raw(request, reply, ready ? 200 : 503, JSON.stringify({ ready, checks }), jsonNoStore)
    },
  }
}
