import { get, type IncomingMessage } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { type CreatedOrder, createClient, type OrderEvent } from '@cambist/sdk'
import { sandboxRemote } from '../src/sandbox/remote.ts'
import type { Sandbox } from '../src/sandbox/start_sandbox.ts'
import { tell } from './figure.ts'
import { inSandbox } from './in_sandbox.ts'
import { kibibytes } from './process_memory.ts'
import { apiServerOf, type ServerProcess } from './server_process.ts'

/**
 * What 5,000 open streams cost the process that keeps them, and how late they tell. The role api is a process of its own;
 * this one holds the other ends. Four follow each order; then a hundred orders are paid, which makes them PENDING.
 */
const ORDERS = 1_250
const STREAMS_AN_ORDER = 4
const STREAMS = ORDERS * STREAMS_AN_ORDER
const PAID = 100
const IDLE_SECONDS = 20
const LINES_AT_ONCE = 50
const pair = { from: 'ETH', from_network: 'ETH', to: 'USDC', to_network: 'BEP20', amount: '0.02' } as const

await inSandbox(async (sandbox) => {
  const orders = await createOrders(sandbox)
  const server = await apiServerOf(sandbox)
  try {
    await fetch(`${server.url}/v1/currencies`)
    const before = kibibytes(server.pid, 'status', 'VmRSS')
    const late: number[] = []
    let beginnings = 0
    const onEvent = ({ data, timestamp }: OrderEvent) => {
      if (data.status === 'NEW') beginnings += 1
      else late.push(Date.now() - Date.parse(timestamp))
    }
    const wanted = orders.flatMap((order) => Array.from({ length: STREAMS_AN_ORDER }, () => order))
    const openings = await open(server, wanted, onEvent)
    await until(() => beginnings === STREAMS)
    await tellCost(server, before)
    await pay(sandbox, orders.slice(0, PAID))
    await until(() => late.length === PAID * STREAMS_AN_ORDER)
    tellLateness(late)
    for (const one of openings) one.destroy()
  } finally {
    await server.stop()
  }
})
process.exit(0)

async function createOrders({ service, account }: Sandbox): Promise<readonly CreatedOrder[]> {
  const { baseUrl } = service
  const credentials = { apiKey: account.api_key, apiSecret: account.api_secret }
  const client = createClient({ baseUrl, ...credentials, retries: 0 })
  const destination = await sandboxRemote(baseUrl).freshAddress(pair.to_network)
  const orders: CreatedOrder[] = []
  const create = () => client.createOrder({ ...pair, rate_type: 'float', destination })
  while (orders.length < ORDERS) {
    const some = await Promise.allSettled(Array.from({ length: LINES_AT_ONCE }, create))
    orders.push(...some.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : [])))
    // As many addresses are made ahead as are kept ready, and no more.
    if (some.some(({ status }) => status === 'rejected')) await delay(500)
  }
  return orders.slice(0, ORDERS)
}

async function open(
  { url }: ServerProcess,
  orders: readonly CreatedOrder[],
  onEvent: (event: OrderEvent) => void,
): Promise<readonly IncomingMessage[]> {
  const opened: IncomingMessage[] = []
  for (let from = 0; from < orders.length; from += LINES_AT_ONCE) {
    const some = orders.slice(from, from + LINES_AT_ONCE).map((order) => openOne(url, order, onEvent))
    opened.push(...(await Promise.all(some)))
  }
  return opened
}

function openOne(
  url: string,
  { order_id: id, token }: CreatedOrder,
  onEvent: (event: OrderEvent) => void,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const headers = { 'X-ORDER-TOKEN': token }
    get(`${url}/v1/order/${id}/events`, { agent: false, headers }, (response) => {
      if (response.statusCode !== 200)
        return reject(new Error(`a stream was refused: ${response.statusCode}`))
      let rest = ''
      response.setEncoding('utf8').on('data', (chunk: string) => {
        const messages = (rest + chunk).split('\n\n')
        rest = messages.pop() ?? ''
        for (const message of messages) {
          const data = message.split('\n').find((line) => line.startsWith('data: '))
          if (data !== undefined) onEvent(JSON.parse(data.slice('data: '.length)) as OrderEvent)
        }
      })
      // Cut at the end of the measurement.
      response.on('error', () => {})
      resolve(response)
    }).on('error', reject)
  })
}

async function tellCost(server: ServerProcess, before: number): Promise<void> {
  const cpuBefore = await server.cpuMicroseconds()
  await delay(IDLE_SECONDS * 1_000)
  const cpu = ((await server.cpuMicroseconds()) - cpuBefore) / 1e6 / IDLE_SECONDS
  const grown = kibibytes(server.pid, 'status', 'VmRSS') - before
  tell({
    name: 'memory of an open stream',
    value: grown / STREAMS,
    unit: 'kB in the process that keeps it',
    detail: `${STREAMS} streams; the process has grown by ${(grown / 1_024).toFixed(0)} MB`,
  })
  tell({
    name: `${STREAMS} open streams in which nothing happens`,
    value: cpu * 100,
    unit: '% of a processor in that process',
  })
}

async function pay({ service }: Sandbox, orders: readonly CreatedOrder[]): Promise<void> {
  const remote = sandboxRemote(service.baseUrl)
  for (const { order_id: id } of orders) await remote.pay(id)
}

function tellLateness(lateMs: number[]): void {
  const sorted = lateMs.toSorted((one, other) => one - other)
  const at = (share: number) => sorted[Math.floor(sorted.length * share)] ?? 0
  tell({
    name: 'from a transition to its event at the other end of a stream, p95',
    value: at(0.95),
    unit: 'ms',
    detail: `p50 ${at(0.5)} ms, the latest ${at(0.999)} ms; the event log is read twice a second`,
  })
}

async function until(isDone: () => boolean): Promise<void> {
  for (const untilMs = performance.now() + 120_000; !isDone(); await delay(50)) {
    if (performance.now() > untilMs) throw new Error('not everything that should have been told was told')
  }
}
