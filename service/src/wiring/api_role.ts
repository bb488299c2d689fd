import { randomFillSync, randomInt } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { Registry } from 'prom-client'
import { openApiKeys } from '../accounts/api_keys.ts'
import { addEndpointOnce, removeEndpoint } from '../accounts/owner_acts.ts'
import type { OwnerPlace } from '../accounts/owner_place.ts'
import { createSecretBox } from '../accounts/secret_box.ts'
import { listEndpoints } from '../accounts/webhook_endpoints.ts'
import type { Database } from '../db/database.ts'
import { openDesk } from '../engine/desks/desks.ts'
import { webhookDesk } from '../engine/desks/webhook_desk.ts'
import { registerGauges } from '../engine/gauges.ts'
import { openFeed } from '../engine/notify/feed.ts'
import { unsubscribing } from '../engine/notify/unsubscribe.ts'
import { openReadiness } from '../engine/readiness.ts'
import type { DeskWorld, World } from '../engine/world.ts'
import { closerOf } from '../http/close_server.ts'
import { listenAt } from '../http/listen_at.ts'
import { buildOperatorServer } from '../http/operator_server.ts'
import type { EndpointDesk, OperatorParts } from '../http/parts.ts'
import type { Opened } from './opened.ts'
import { orderTokens, sealWith } from './order_keys.ts'
import { type ApiRole, decidesOrders, type Service, type ServiceOptions } from './roles.ts'
import { toldCurrencies } from './told_currencies.ts'

const LAST_ANSWERS_MS = 500

/**
 * Listens: with the interface where this process has the role api, else for its operator only. `close` lets what is under way be
 * answered first.
 */
export async function openServer(
  options: ServiceOptions,
  world: World,
  record: Database,
  opened: Opened,
): Promise<Pick<Service, 'baseUrl' | 'origin'> & { close(): Promise<void> }> {
  const { roles, prices, clock, logger } = options
  const { port, host, limits } = options.http
  const metrics = new Registry()
  const quotes = decidesOrders(roles)
  const ageMs = quotes ? prices.ageMs?.bind(prices) : undefined
  registerGauges(world, metrics, ageMs && { ageMs, currencies: toldCurrencies(options.chains) })
  const readiness = openReadiness(world, { quotes, record: record === world.db ? null : record })
  const operator = { clock, limits, readiness, metrics, logger }

  let baseUrl = ''
  const app =
    roles.api === null
      ? buildOperatorServer(operator)
      : await buildInterface(roles.api, operator, world, () => baseUrl, opened)
  // Before the door closes, whoever keeps a connection open learns with an answer that it will be closed.
  app.addHook('preClose', () => clock.sleep(LAST_ANSWERS_MS))
  const close = closerOf(app, clock)
  opened.closeWith(close)
  const listening = await listenAt(app, { port, host })
  const origin = `http://${host.includes(':') ? `[${host}]` : host}:${listening.port}`
  baseUrl = roles.api?.baseUrl ?? origin
  return { baseUrl, origin, close }
}

async function buildInterface(
  api: ApiRole,
  operator: OperatorParts,
  world: World,
  baseUrl: () => string,
  opened: Opened,
): Promise<FastifyInstance> {
  const { buildServer } = await import('../http/server.ts')
  const { wallMs, nowMs } = operator.clock
  const accounts = { db: world.db, box: createSecretBox(api.accountKeys), wallMs }
  const { loopbackCallbacks: loopbackAllowed, changes: changeLimits } = operator.limits
  const owners = { ...accounts, nowMs, baseUrl, loopbackAllowed, changeLimits }
  const apiKeys = openApiKeys({
    ...accounts,
    onTouchFailed: (error) => operator.logger.warn({ err: error }, 'the last use of a key was not noted'),
  })
  opened.closeWith(apiKeys.settle)
  const desk = openDesk(openDeskWorld(world, api))
  return buildServer({
    ...operator,
    desk,
    webhooks: webhookDesk(world),
    endpoints: openEndpoints(owners),
    feed: openFeed(world),
    apiKeys,
    unsubscribing: unsubscribing(world.db, api.orderToken),
    owners,
    baseUrl,
    ...(api.sandbox && { sandbox: api.sandbox(world) }),
  })
}

function openDeskWorld(world: World, { orderSeal, orderToken }: ApiRole): DeskWorld {
  return {
    ...world,
    seal: sealWith(orderSeal),
    tokenOf: orderTokens(orderToken),
    randomDigits: (count) => String(randomInt(10 ** count)).padStart(count, '0'),
    randomId: randomIds(),
  }
}

const ID_BYTES = 16
const IDS_A_DRAW = 256

/** Drawn for many ids at once: the system's randomness costs as much for one as for all of them. */
function randomIds(): DeskWorld['randomId'] {
  const drawn = Buffer.alloc(ID_BYTES * IDS_A_DRAW)
  let used = drawn.length
  return () => {
    if (used === drawn.length) {
      randomFillSync(drawn)
      used = 0
    }
    used += ID_BYTES
    return drawn.toString('base64url', used - ID_BYTES, used)
  }
}

function openEndpoints(owners: OwnerPlace): EndpointDesk {
  return {
    list: (accountId) => listEndpoints(owners, accountId),
    create: (owner, url, retry) => addEndpointOnce(owners, owner, url, retry),
    remove: (owner, endpointId) => removeEndpoint(owners, owner, endpointId),
  }
}
