import { Registry } from 'prom-client'
import { systemClock } from '../clock.ts'
import type { Desk } from '../engine/desk.ts'
import { defaultLimits } from '../http/parts.ts'
import { openApiDocument } from '../http/server.ts'
import { createLogger } from '../log.ts'

/** `cambist openapi`: the document that the sdk is generated from. */
export async function printOpenApi(): Promise<void> {
  const document = await openApiDocument({
    desk: nobody,
    apiKeys: { find: async () => null },
    clock: systemClock(),
    baseUrl: () => 'http://127.0.0.1:8080',
    limits: defaultLimits,
    readiness: async () => ({ ready: false, checks: {} }),
    metrics: new Registry(),
    logger: createLogger('silent'),
  })
  console.log(JSON.stringify(document, null, 2))
}

const notHere = async () => {
  throw new Error('the interface is described, not served')
}

const nobody: Desk = {
  rate: notHere,
  currencies: notHere,
  createOrder: notHere,
  findOrder: notHere,
  findPayment: notHere,
  chooseAction: notHere,
}
