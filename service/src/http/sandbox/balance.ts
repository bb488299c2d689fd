import type { RouteOptions } from 'fastify'
import Type from 'typebox'
import { decimal, text } from '../json/schema.ts'
import { symbol } from '../parameters/kinds.ts'
import { optional } from '../parameters/parameter.ts'
import { parameterOf, type RouteContext } from '../route_context.ts'
import type { SandboxRoutes } from './sandbox_port.ts'
import { sandboxRoute } from './sandbox_route.ts'

export function balanceRoute(context: RouteContext, sandbox: SandboxRoutes): RouteOptions {
  return sandboxRoute(context, {
    method: 'GET',
    url: '/sandbox/balance/:network/:address',
    operationId: 'sandboxBalance',
    summary: 'What the chain says an address holds',
    parameters: { currency: optional(symbol("Which currency; without it the network's own.", 'USDT')) },
    params: Type.Object({
      network: text('Which network.', 'ERC20'),
      address: text('Whose balance.', '0x52908400098527886E0F7030069857D2E4169EE7'),
    }),
    data: Type.Object({ balance: decimal('In whole units.', 3225.012) }),
    errors: ['NETWORK_MISMATCH', 'INVALID_ADDRESS', 'MAINTENANCE'],
    act: ({ currency }, request) =>
      sandbox.balance(parameterOf(request, 'network'), parameterOf(request, 'address'), currency),
  })
}
