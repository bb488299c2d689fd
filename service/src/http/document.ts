import { pino } from 'pino'
import { Registry } from 'prom-client'
import { defaultLimits, type HttpParts } from './parts.ts'
import { buildServer } from './server.ts'

function nobody(): never {
  throw new Error('a server made for its document answers nothing')
}

/** What the routes are described with; none of it is ever asked. */
const parts: HttpParts = {
  desk: {
    rate: nobody,
    isCurrent: nobody,
    currencies: nobody,
    createOrder: nobody,
    findOrder: nobody,
    listOrders: nobody,
    findPayment: nobody,
    chooseAction: nobody,
  },
  webhooks: { listDeliveries: nobody, redeliver: nobody, redeliverSince: nobody },
  endpoints: { list: nobody, create: nobody, remove: nobody },
  feed: { since: nobody, follow: nobody, close: async () => {} },
  apiKeys: { find: nobody, noteUse: () => {} },
  unsubscribing: { tokenOf: nobody, read: nobody, unsubscribe: nobody },
  clock: { nowMs: nobody, wallMs: () => 0, fromWallMs: nobody, sleep: nobody, endOfTurn: nobody },
  owners: {
    db: { query: nobody, transaction: nobody, close: nobody },
    box: { seal: nobody, open: nobody, hasKey: nobody },
    wallMs: nobody,
    nowMs: nobody,
    baseUrl: nobody,
    loopbackAllowed: false,
    changeLimits: { keys: 0, settings: 0 },
  },
  baseUrl: nobody,
  limits: defaultLimits,
  readiness: nobody,
  metrics: new Registry(),
  logger: pino({ level: 'silent' }),
}

const sandbox: NonNullable<HttpParts['sandbox']> = {
  pay: nobody,
  mine: nobody,
  reorg: nobody,
  replace: nobody,
  prices: nobody,
  clock: nobody,
  address: nobody,
  balance: nobody,
  mail: nobody,
}

/**
 * The OpenAPI document of the interface, for the command line and the client's generator: no desk, no database,
 * no port. It is byte for byte what `/openapi.json` serves.
 */
export async function openApiDocument({ withSandbox }: { readonly withSandbox: boolean }): Promise<object> {
  const app = buildServer({ ...parts, metrics: new Registry(), ...(withSandbox && { sandbox }) })
  await app.ready()
  const document = app.swagger()
  await app.close()
  return document
}
