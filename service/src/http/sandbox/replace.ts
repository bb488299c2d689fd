import type { RouteOptions } from 'fastify'
import Type from 'typebox'
import { text } from '../json/schema.ts'
import { address, identifier } from '../parameters/kinds.ts'
import { optional } from '../parameters/parameter.ts'
import type { RouteContext } from '../route_context.ts'
import type { SandboxRoutes } from './sandbox_port.ts'
import { sandboxRoute } from './sandbox_route.ts'

export function replaceRoute(context: RouteContext, sandbox: SandboxRoutes): RouteOptions {
  return sandboxRoute(context, {
    method: 'POST',
    url: '/sandbox/replace',
    operationId: 'sandboxReplace',
    summary: 'Double-spend a transaction that is not in a block yet',
    parameters: {
      tx_hash: identifier('The transaction to replace.'),
      to: optional(address('Who gets the money instead; without it whoever paid.')),
    },
    data: Type.Object({ tx_hash: text('The replacement.', '9b1c0f…') }),
    errors: ['MAINTENANCE'],
    act: ({ tx_hash, to }) => sandbox.replace(tx_hash, to),
  })
}
