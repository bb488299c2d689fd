import type { FastifyRequest } from 'fastify'
import { addressSet } from '../limits/address_set.ts'
import { handedOnByStranger } from '../limits/client_address.ts'
import type { OperatorContext } from '../route_context.ts'

/**
 * Whether a request comes from an address that the operator looks from (`metricsAllow`). A proxy on this machine that is
 * not said to be one of ours has such an address, too; whoever it asks for has not.
 */
export function operatorAddresses({
  parts,
  addressOf,
}: OperatorContext): (request: FastifyRequest) => boolean {
  const { metricsAllow, trustedProxies } = parts.limits
  if (metricsAllow.length === 0) return () => true
  const allowed = addressSet(metricsAllow)
  const isHandedOn = handedOnByStranger(trustedProxies)
  return ({ raw }) => allowed.has(addressOf(raw)) && !isHandedOn(raw)
}
