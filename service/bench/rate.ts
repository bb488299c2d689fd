import { type ChildProcess, fork } from 'node:child_process'
import { createServer } from 'node:http'
import { fileURLToPath } from 'node:url'
import autocannon from 'autocannon'
import pino from 'pino'
import { Registry } from 'prom-client'
import { systemClock } from '../src/clock.ts'
import { defaultLimits } from '../src/http/parts.ts'
import { buildServer } from '../src/http/server.ts'
import { fakeDesk, rateView } from '../src/http/testing/fake_desk.ts'

/**
 * What a rate costs: processor time per request of `GET /v1/rate`, as a ratio to a bare node:http server that sends
 * as many static bytes, which is the least Node can do. Both servers are processes of their own and are loaded in
 * turns, so that whatever else the machine does meets both.
 */
export type RateBench = {
  /** 1 would be free; the higher the better. */
  readonly ratio: number
  readonly microsecondsPerRequest: number
  readonly bareMicrosecondsPerRequest: number
  readonly requestsPerSecond: number
}

export type RateServer = {
  /** A file that starts a server and then calls `answerBench`. */
  readonly file: string
  readonly args: readonly string[]
}

const TARGET = '/v1/rate?from=BTC&to=USDT&to_network=ERC20&amount=0.1'
const ROUNDS = 6
const ROUND_SECONDS = 2
const CONNECTIONS = 20

/** Measures any server that speaks the interface: over a stub, or the real one. */
export async function benchRate(server: RateServer, target = TARGET): Promise<RateBench> {
  const subject = await start(server)
  try {
    const response = await fetch(subject.url + target)
    const body = await response.text()
    if (response.status !== 200) throw new Error(`GET ${target} answered ${response.status}: ${body}`)
    const bare = await start({ file: thisFile, args: ['bare', body] })
    try {
      return await compare(subject, bare, target)
    } finally {
      bare.child.kill()
    }
  } finally {
    subject.child.kill()
  }
}

type Running = { readonly child: ChildProcess; readonly url: string }
type Cost = { microseconds: number; requests: number; seconds: number }

async function compare(subject: Running, bare: Running, target: string): Promise<RateBench> {
  await load(subject, target)
  await load(bare, target)
  const costs = { subject: zero(), bare: zero() }
  for (let round = 0; round < ROUNDS; round += 1) {
    add(costs.bare, await load(bare, target))
    add(costs.subject, await load(subject, target))
  }
  const microsecondsPerRequest = costs.subject.microseconds / costs.subject.requests
  const bareMicrosecondsPerRequest = costs.bare.microseconds / costs.bare.requests
  return {
    ratio: bareMicrosecondsPerRequest / microsecondsPerRequest,
    microsecondsPerRequest,
    bareMicrosecondsPerRequest,
    requestsPerSecond: costs.subject.requests / costs.subject.seconds,
  }
}

function zero(): Cost {
  return { microseconds: 0, requests: 0, seconds: 0 }
}

function add(sum: Cost, cost: Cost): void {
  sum.microseconds += cost.microseconds
  sum.requests += cost.requests
  sum.seconds += cost.seconds
}

async function load(server: Running, target: string): Promise<Cost> {
  const before = await cpuMicroseconds(server.child)
  const result = await autocannon({
    url: server.url + target,
    connections: CONNECTIONS,
    duration: ROUND_SECONDS,
  })
  if (result.non2xx > 0 || result.errors > 0) {
    throw new Error(`${result.non2xx} refusals and ${result.errors} errors: nothing was measured`)
  }
  const microseconds = (await cpuMicroseconds(server.child)) - before
  return { microseconds, requests: result.requests.total, seconds: result.duration }
}

function start({ file, args }: RateServer): Promise<Running> {
  const child = fork(file, args, { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
  return new Promise((resolve, reject) => {
    child.once('message', (message) => resolve({ child, url: (message as { url: string }).url }))
    child.once('exit', (code) => reject(new Error(`the server under test ended with ${code}`)))
  })
}

function cpuMicroseconds(child: ChildProcess): Promise<number> {
  return new Promise((resolve) => {
    child.once('message', (message) => resolve((message as { cpu: number }).cpu))
    child.send('cpu')
  })
}

/** To be called in the process of the server under test, once it listens. */
export function answerBench(url: string): void {
  process.on('message', () => {
    const { user, system } = process.cpuUsage()
    process.send?.({ cpu: user + system })
  })
  process.send?.({ url })
}

const thisFile = fileURLToPath(import.meta.url)

function serveBare(body: string): void {
  const bytes = Buffer.from(body)
  const headers = { 'Content-Type': 'application/json', 'Content-Length': bytes.length }
  const server = createServer((_request, response) => {
    response.writeHead(200, headers)
    response.end(bytes)
  })
  server.listen(0, '127.0.0.1', () => {
    const address = server.address()
    if (address !== null && typeof address === 'object') answerBench(`http://127.0.0.1:${address.port}`)
  })
}

/** The whole of http — limits, log line, measures — over a desk that costs nothing. */
async function serveStub(): Promise<void> {
  const outcome = { ok: true as const, value: rateView }
  const app = buildServer({
    desk: { ...fakeDesk(), rate: async () => outcome },
    apiKeys: { find: async () => null },
    clock: systemClock(),
    baseUrl: () => 'http://127.0.0.1',
    limits: { ...defaultLimits, unitsPerMinute: 1e9, burstPerSecond: 1e9 },
    readiness: async () => ({ ready: true, checks: {} }),
    metrics: new Registry(),
    logger: pino(pino.destination({ dest: '/dev/null', sync: true })),
  })
  answerBench(await app.listen({ host: '127.0.0.1', port: 0 }))
}

if (process.argv[1] === thisFile) {
  const [role, body = ''] = process.argv.slice(2)
  if (role === 'bare') serveBare(body)
  else if (role === 'stub') await serveStub()
  else {
    const { ratio, ...rest } = await benchRate({ file: thisFile, args: ['stub'] })
    console.log(`GET /v1/rate over a stub: ${ratio.toFixed(3)} of bare node:http (at least 0.70)`)
    console.log(
      `${rest.microsecondsPerRequest.toFixed(1)} µs of processor a request, bare ${rest.bareMicrosecondsPerRequest.toFixed(1)} µs; ${Math.round(rest.requestsPerSecond)} requests a second`,
    )
    process.exit(0)
  }
}
