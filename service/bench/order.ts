import { createClient, createSigner } from '@cambist/sdk'
import { sandboxRemote } from '../src/sandbox/remote.ts'
import type { Sandbox } from '../src/sandbox/start_sandbox.ts'
import { tell } from './figure.ts'
import { inSandbox } from './in_sandbox.ts'
import { type BenchRequest, compareWithBare } from './load.ts'
import { seeded } from './seeded.ts'
import { apiServerOf } from './server_process.ts'

/**
 * What a look at an order costs: signed, read from the database on every request, against a bare node:http server
 * that is asked the same and sends as many bytes. Every third order has a deposit.
 */
const ORDERS = 300
const REQUESTS = 20_000
const random = seeded(1)

const pairs = [
  { from: 'BTC', from_network: 'BTC', to: 'USDT', to_network: 'ERC20', amount: '0.01234567' },
  { from: 'USDT', from_network: 'ERC20', to: 'USDC', to_network: 'BEP20', amount: '1234.567891' },
  { from: 'BNB', from_network: 'BNB', to: 'ETH', to_network: 'ETH', amount: '1.23456789' },
] as const

async function createOrders({ service, account }: Sandbox): Promise<readonly string[]> {
  const { baseUrl } = service
  const client = createClient({ baseUrl, apiKey: account.api_key, apiSecret: account.api_secret })
  const remote = sandboxRemote(baseUrl)
  const ids: string[] = []
  for (const pair of Array.from({ length: ORDERS / pairs.length }).flatMap(() => pairs)) {
    const destination = await remote.freshAddress(pair.to_network)
    const order = await client.createOrder({ ...pair, rate_type: 'float', destination })
    if (pair.from === 'USDT') await remote.pay(order.order_id)
    ids.push(order.order_id)
  }
  return ids
}

/** Signed anew for every round, in any order. */
function lookAt(ids: readonly string[], { api_key, api_secret }: Sandbox['account']) {
  const sign = createSigner(api_secret)
  return async (): Promise<readonly BenchRequest[]> => {
    const timestamp = String(Math.floor(Date.now() / 1000))
    const looks = await Promise.all(
      ids.map(async (id) => {
        const path = `/v1/order/${id}`
        const signature = await sign({ timestamp, method: 'GET', target: path, body: '' })
        const headers = { 'X-API-KEY': api_key, 'X-API-TIMESTAMP': timestamp, 'X-API-SIGN': signature }
        return { path, headers }
      }),
    )
    return Array.from({ length: REQUESTS }, () => looks[Math.floor(random() * looks.length)] as BenchRequest)
  }
}

await inSandbox(async (sandbox) => {
  const ids = await createOrders(sandbox)
  const server = await apiServerOf(sandbox)
  try {
    const { look } = await compareWithBare(server, { look: lookAt(ids, sandbox.account) })
    tell({
      name: 'GET /v1/order/{id}, read from the database',
      value: look.ratio,
      unit: 'of bare node:http',
      limit: { atLeast: 0.5 },
      detail: look.detail,
    })
  } finally {
    await server.stop()
  }
})
process.exit(0)
