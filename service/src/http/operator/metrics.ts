import type { RouteOptions } from 'fastify'
import type { OperatorContext } from '../route_context.ts'
import { operatorAddresses } from './operator_addresses.ts'

/** For Prometheus. Who may read it is the operator's to say (`metricsAllow`). */
export function metricsRoute(context: OperatorContext): RouteOptions {
  const { answers, parts } = context
  const isOperator = operatorAddresses(context)
  return {
    method: 'GET',
    url: '/metrics',
    schema: { hide: true },
    async handler(request, reply) {
      if (!isOperator(request)) {
        return answers.problem(request, reply, {
          code: 'FORBIDDEN',
          message: 'metrics may not be read from this address',
        })
      }
      const body = await parts.metrics.metrics()
      const headers = ['Content-Type', parts.metrics.contentType, 'Cache-Control', 'no-store']
      answers.raw(request, reply, 200, body, headers)
    },
  }
}
