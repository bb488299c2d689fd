import type { FastifyRequest } from 'fastify'
import { addressSet } from '../limits/address_set.ts'
import type { OperatorContext } from '../route_context.ts'

/** Whether a request comes from an address that the operator looks from (`metricsAllow`). */
export function operatorAddresses({
  parts,
  addressOf,
}: OperatorContext): (request: FastifyRequest) => boolean {
  const { metricsAllow } = parts.limits
  if (metricsAllow.length === 0) return () => true
  const allowed = addressSet(metricsAllow)
  return (request) => allowed.has(addressOf(request.raw))
}
