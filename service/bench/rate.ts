import { chanceFrom } from '../test/harness/chance.ts'
import { tell } from './figure.ts'
import { inSandbox } from './in_sandbox.ts'
import { type BenchRequest, compareWithBare } from './load.ts'
import { apiServerOf, startServerProcess } from './server_process.ts'

/**
 * What a rate costs: processor time a request of `GET /v1/rate`, against a bare node:http server that sends as many
 * static bytes, which is the least Node can do. Twice: one question over and over, and many that hardly repeat.
 */
const RATE = '/v1/rate?from=BTC&to=USDT&to_network=ERC20&amount=0.1'
const one = (rateType: string) => () => [{ path: `${RATE}&rate_type=${rateType}` }]

const pairs = [
  'from=BTC&to=USDT&to_network=ERC20',
  'from=ETH&to=BTC',
  'from=USDT&from_network=ERC20&to=BTC',
  'from=BNB&to=ETH',
  'from=BTC&to=ETH',
  'from=USDC&from_network=BEP20&to=BNB',
  'from=USDT&from_network=BEP20&to=USDC&to_network=ERC20',
  'from=ETH&to=USDT&to_network=BEP20',
]
/** From here on in the source currency, up to twice as much: inside the limits of every pair. */
const smallest: Readonly<Record<string, number>> = { BTC: 0.01, ETH: 0.2, BNB: 1, USDT: 500, USDC: 500 }
/** More than a round asks for. */
const QUESTIONS = 100_000
const chance = chanceFrom(1)

function many(rateType: string) {
  return (): readonly BenchRequest[] =>
    Array.from({ length: QUESTIONS }, (_, index) => {
      const pair = pairs[index % pairs.length] ?? ''
      const least = smallest[/from=(\w+)/.exec(pair)?.[1] ?? ''] ?? 1
      const amount = (least * (1 + chance.next())).toFixed(4)
      return { path: `/v1/rate?${pair}&amount=${amount}&rate_type=${rateType}` }
    })
}

const stub = await startServerProcess('stub_server.ts')
const { 'over a stub': http } = await compareWithBare(stub, { 'over a stub': one('float') })
await stub.stop()
tell({
  name: 'GET /v1/rate over a stub instead of the desk',
  value: http.ratio,
  unit: 'of bare node:http',
  detail: http.detail,
})

await inSandbox(async (sandbox) => {
  const server = await apiServerOf(sandbox)
  try {
    const { float, mixed, fixed, mixedFixed } = await compareWithBare(server, {
      float: one('float'),
      mixed: many('float'),
      fixed: one('fixed'),
      mixedFixed: many('fixed'),
    })
    for (const [name, { ratio, detail }] of [
      ['GET /v1/rate float, one question', float],
      ['GET /v1/rate float, many amounts and pairs', mixed],
    ] as const) {
      tell({ name, value: ratio, unit: 'of bare node:http', limit: { atLeast: 0.7 }, detail })
    }
    for (const [name, locked, plain] of [
      ['GET /v1/rate fixed, one question', fixed, float],
      ['GET /v1/rate fixed, many amounts and pairs', mixedFixed, mixed],
    ] as const) {
      const value = locked.microseconds / plain.microseconds
      tell({ name, value, unit: 'times float', limit: { atMost: 2 }, detail: locked.detail })
    }
  } finally {
    await server.stop()
  }
})
process.exit(0)
