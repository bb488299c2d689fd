import { dirname, join } from 'node:path'
import { startPostgres } from '@cambist/devnet'
import { createClient, createSigner } from '@cambist/sdk'
import { sandboxRemote } from '../src/sandbox/remote.ts'
import type { Sandbox } from '../src/sandbox/start_sandbox.ts'
import { chanceFrom } from '../test/harness/chance.ts'
import { tell } from './figure.ts'
import { inSandbox } from './in_sandbox.ts'
import { microsecondsEach, type Work } from './in_turns.ts'
import { type BenchRequest, compareWithBare, load } from './load.ts'
import { postgresCpuMicroseconds } from './postgres_cpu.ts'
import { apiServerOf } from './server_process.ts'

/**
 * What a look at an order costs: signed, read from the database on every request, against a bare node:http server
 * that is asked the same and sends as many bytes. Every third order has a deposit.
 */
const ORDERS = 300
const REQUESTS = 20_000
/** The bare server is asked over as many. With more, more looks are one statement. */
const CONNECTIONS = [20, 64]
const chance = chanceFrom(1)

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
    return Array.from({ length: REQUESTS }, () => chance.pick(looks))
  }
}

/** What PostgreSQL takes for a look, in a round of its own, with whatever else the sandbox asks it meanwhile. */
async function postgresMicroseconds({ sandboxFile }: Sandbox, round: () => Promise<Work>): Promise<number> {
  const { pid } = await startPostgres({ dataDir: join(dirname(sandboxFile), 'postgres') })
  const before = postgresCpuMicroseconds(pid)
  const { count, seconds } = await round()
  return microsecondsEach({ count, seconds, cpuMicroseconds: postgresCpuMicroseconds(pid) - before })
}

await inSandbox(async (sandbox) => {
  const ids = await createOrders(sandbox)
  const server = await apiServerOf(sandbox)
  try {
    const requests = lookAt(ids, sandbox.account)
    for (const connections of CONNECTIONS) {
      const { look } = await compareWithBare(server, { look: requests }, connections)
      const postgres = await postgresMicroseconds(sandbox, () => load(server, requests, connections))
      tell({
        name: `GET /v1/order/{id}, read from the database, ${connections} connections`,
        value: look.ratio,
        unit: 'of bare node:http',
        limit: { atLeast: 0.5 },
        detail: `${look.detail}; beside it PostgreSQL ${postgres.toFixed(1)} µs`,
      })
    }
  } finally {
    await server.stop()
  }
})
process.exit(0)
