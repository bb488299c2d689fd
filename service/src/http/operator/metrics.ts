import type { RouteOptions } from 'fastify'
import { addressSet } from '../limits/address_set.ts'
import type { OperatorContext } from '../route_context.ts'

/** For Prometheus. Who may read it is the operator's to say (`metricsAllow`). */
export function metricsRoute({ answers, parts, addressOf }: OperatorContext): RouteOptions {
  const allowed = parts.limits.metricsAllow.length === 0 ? null : addressSet(parts.limits.metricsAllow)
  return {
    method: 'GET',
    url: '/metrics',
    schema: { hide: true },
    async handler(request, reply) {
      if (allowed !== null && !allowed.has(addressOf(request.raw))) {
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
