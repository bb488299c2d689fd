import type { Devnet } from '@cambist/devnet'
import { systemClock } from '../src/clock.ts'
import { sandboxKey } from '../src/config/sandbox_secrets.ts'
import { defaultPolicy } from '../src/engine/default_policy.ts'
import { defaultLimits } from '../src/http/parts.ts'
import { createLogger } from '../src/log.ts'
import { startService } from '../src/main.ts'
import { sandboxPrices } from '../src/prices/index.ts'
import { sandboxChains } from '../src/sandbox/chains.ts'
import { answerBench } from './server_process.ts'

/**
 * The role api as a process of its own, as in production, on the database and chains of a running sandbox
 * (`apiServerOf`), with real prices, reserves and costs.
 */
const [databaseUrl = '', networks = '{}'] = process.argv.slice(2)
const service = await startService({
  roles: {
    api: {
      accountKeys: [sandboxKey('account')],
      orderSeal: sandboxKey('order-seal'),
      orderToken: sandboxKey('order-token'),
      baseUrl: null,
    },
    watcher: false,
    engine: null,
    notifier: null,
    signer: null,
  },
  databaseUrl,
  databaseConnections: 20,
  chains: await sandboxChains(JSON.parse(networks) as Devnet['networks']),
  prices: { usd: sandboxPrices().usd, start: () => {}, stop: () => {} },
  policy: defaultPolicy,
  http: {
    port: 0,
    host: '127.0.0.1',
    limits: { ...defaultLimits, unitsPerMinute: 1e9, burstPerSecond: 1e9, streamsPerCaller: 1e6 },
  },
  clock: systemClock(),
  logger: createLogger('info', '/dev/null'),
})
answerBench(service.origin)
