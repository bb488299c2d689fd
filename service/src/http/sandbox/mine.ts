import type { RouteOptions } from 'fastify'
import Type from 'typebox'
import { symbol, wholeNumber } from '../parameters/kinds.ts'
import type { RouteContext } from '../route_context.ts'
import type { SandboxRoutes } from './sandbox_port.ts'
import { sandboxRoute } from './sandbox_route.ts'

export function mineRoute(context: RouteContext, sandbox: SandboxRoutes): RouteOptions {
  return sandboxRoute(context, {
    method: 'POST',
    url: '/sandbox/mine',
    operationId: 'sandboxMine',
    summary: 'Mine blocks now',
    parameters: {
      network: symbol('Where to mine.', 'BTC'),
      blocks: wholeNumber(1, 1000, 'How many blocks.'),
    },
    data: Type.Object({}),
    errors: ['MAINTENANCE'],
    act: ({ network, blocks }) => sandbox.mine(network, blocks),
  })
}
