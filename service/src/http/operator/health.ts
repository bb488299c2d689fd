import type { RouteOptions } from 'fastify'
import type { Readiness } from '../../engine/readiness.ts'
import { jsonNoStore } from '../answers/answers.ts'
import type { OperatorContext } from '../route_context.ts'
import { operatorAddresses } from './operator_addresses.ts'

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

/** Whether requests should be sent here now; 503 with the same shape when not. Anybody may ask; why is the operator's. */
export function readinessRoute(context: OperatorContext): RouteOptions {
  const { answers, parts } = context
  const isOperator = operatorAddresses(context)
  return {
    method: 'GET',
    url: '/readyz',
    schema: { hide: true },
    async handler(request, reply) {
      const { ready, checks: detailed } = await parts.readiness()
      const checks = isOperator(request) ? detailed : withoutDetails(detailed)
      answers.raw(request, reply, ready ? 200 : 503, JSON.stringify({ ready, checks }), jsonNoStore)
    },
  }
}

/** Details hold what databases and nodes said, their addresses among it. */
function withoutDetails(checks: Readiness['checks']): Readiness['checks'] {
  return Object.fromEntries(Object.entries(checks).map(([name, { ok }]) => [name, { ok }]))
}
