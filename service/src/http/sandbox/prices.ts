import type { RouteOptions } from 'fastify'
import Type from 'typebox'
import type { DecimalText, DeskOutcome } from '../../engine/desks/desk.ts'
import { isPlainDecimal } from '../json/number_text.ts'
import { amount, symbol } from '../parameters/kinds.ts'
import { optional, type Parameter } from '../parameters/parameter.ts'
import type { RouteContext } from '../route_context.ts'
import type { SandboxRoutes } from './sandbox_port.ts'
import { sandboxRoute } from './sandbox_route.ts'

const changePercent: Parameter<DecimalText> = {
  schema: Type.Number({ format: 'double', description: 'By how much the price changes.', examples: [-5] }),
  kind: 'number',
  absent: null,
  readText: (text) =>
    isPlainDecimal(text.replace(/^-/, '')) && text.length <= 20
      ? { ok: true, value: text }
      : { ok: false, problem: 'must be a plain decimal number such as -2.5' },
}

export function pricesRoute(context: RouteContext, sandbox: SandboxRoutes): RouteOptions {
  return sandboxRoute(context, {
    method: 'POST',
    url: '/sandbox/prices',
    operationId: 'sandboxPrices',
    summary: 'Set a price; it holds still until changed',
    parameters: {
      code: symbol('Which currency.', 'BTC'),
      usd: optional(amount('The new price in USD.', 65000)),
      change_percent: optional(changePercent),
    },
    data: Type.Object({}),
    async act({ code, usd, change_percent }): Promise<DeskOutcome<unknown>> {
      if (usd !== null && change_percent === null) return sandbox.prices({ code, usd })
      if (usd === null && change_percent !== null) {
        return sandbox.prices({ code, changePercent: change_percent })
      }
      const details = [{ field: 'usd', message: 'or change_percent must be given, and not both' }]
      const message = 'usd or change_percent must be given, and not both'
      return { ok: false, rejection: { code: 'INVALID_PARAMETER', message, details } }
    },
  })
}
