import type { RouteOptions } from 'fastify'
import Type from 'typebox'
import { instant } from '../json/schema.ts'
import { wholeNumber } from '../parameters/kinds.ts'
import type { RouteContext } from '../route_context.ts'
import type { SandboxRoutes } from './sandbox_port.ts'
import { sandboxRoute } from './sandbox_route.ts'

const YEAR_SECONDS = 31_536_000

export function clockRoute(context: RouteContext, sandbox: SandboxRoutes): RouteOptions {
  return sandboxRoute(context, {
    method: 'POST',
    url: '/sandbox/clock',
    operationId: 'sandboxClock',
    summary: 'Move the time that orders, locks and retries live by',
    parameters: { advance_seconds: wholeNumber(0, YEAR_SECONDS, 'How far into the future.') },
    data: Type.Object({ now: instant('What time it is now.') }),
    act: ({ advance_seconds }) => sandbox.clock(advance_seconds),
  })
}
