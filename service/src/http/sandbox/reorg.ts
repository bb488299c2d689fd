import type { RouteOptions } from 'fastify'
import Type from 'typebox'
import { symbol, wholeNumber } from '../parameters/kinds.ts'
import type { RouteContext } from '../route_context.ts'
import type { SandboxRoutes } from './sandbox_port.ts'
import { sandboxRoute } from './sandbox_route.ts'

export function reorgRoute(context: RouteContext, sandbox: SandboxRoutes): RouteOptions {
  return sandboxRoute(context, {
    method: 'POST',
    url: '/sandbox/reorg',
    operationId: 'sandboxReorg',
    summary: 'Replace the newest blocks by others',
    parameters: {
      network: symbol('Which chain.', 'BTC'),
      depth: wholeNumber(1, 100, 'How many blocks are orphaned.'),
    },
    data: Type.Object({}),
    errors: ['MAINTENANCE'],
    act: ({ network, depth }) => sandbox.reorg(network, depth),
  })
}
