import type { RouteOptions } from 'fastify'
import type { RouteContext } from '../route_context.ts'
import { addressRoute } from './address.ts'
import { balanceRoute } from './balance.ts'
import { clockRoute } from './clock.ts'
import { mailRoute } from './mail.ts'
import { mailboxRoute, mailHtmlRoute, mailTextRoute } from './mailbox.ts'
import { mineRoute } from './mine.ts'
import { payRoute } from './pay.ts'
import { pricesRoute } from './prices.ts'
import { reorgRoute } from './reorg.ts'
import { replaceRoute } from './replace.ts'
import type { SandboxRoutes } from './sandbox_port.ts'

const routes = [
  payRoute,
  mineRoute,
  reorgRoute,
  replaceRoute,
  pricesRoute,
  clockRoute,
  addressRoute,
  balanceRoute,
  mailRoute,
  mailboxRoute,
  mailHtmlRoute,
  mailTextRoute,
]

/** None, unless there is a sandbox. */
export function sandboxRoutes(context: RouteContext, sandbox: SandboxRoutes | undefined): RouteOptions[] {
  return sandbox === undefined ? [] : routes.map((route) => route(context, sandbox))
}
