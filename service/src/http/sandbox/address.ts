import type { RouteOptions } from 'fastify'
import Type from 'typebox'
import { text } from '../json/schema.ts'
import { parameterOf, type RouteContext } from '../route_context.ts'
import type { SandboxRoutes } from './sandbox_port.ts'
import { sandboxRoute } from './sandbox_route.ts'

export function addressRoute(context: RouteContext, sandbox: SandboxRoutes): RouteOptions {
  return sandboxRoute(context, {
    method: 'GET',
    url: '/sandbox/address/:network',
    operationId: 'sandboxAddress',
    summary: 'A fresh valid address that belongs to nobody here',
    parameters: {},
    params: Type.Object({ network: text('Which network.', 'ERC20') }),
    data: Type.Object({ address: text('The address.', '0x52908400098527886E0F7030069857D2E4169EE7') }),
    errors: ['MAINTENANCE'],
    act: (_, request) => sandbox.address(parameterOf(request, 'network')),
  })
}
