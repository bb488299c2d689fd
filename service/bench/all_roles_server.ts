import type { Devnet } from '@cambist/devnet'
import { systemClock } from '../src/clock.ts'
import { sandboxKey } from '../src/config/sandbox_secrets.ts'
import { defaultPolicy } from '../src/engine/default_policy.ts'
import { defaultLimits } from '../src/http/parts.ts'
import { createLogger } from '../src/log.ts'
import { startService } from '../src/main.ts'
import { sandboxPrices } from '../src/prices/index.ts'
import { sandboxChains, sandboxSignerSettings } from '../src/sandbox/chains.ts'
import { openSandboxSeed } from '../src/sandbox/keys.ts'
import { answerBench } from './server_process.ts'

/** The service with all its roles and nothing else in the process: nodes and PostgreSQL belong to whoever measures. */
const [databaseUrl = '', networks = '{}', keysFolder = ''] = process.argv.slice(2)
const chains = await sandboxChains(JSON.parse(networks) as Devnet['networks'])
const clock = systemClock()
const seed = await openSandboxSeed(keysFolder, clock.wallMs())
const orderSeal = sandboxKey('order-seal')
const service = await startService({
  roles: {
    api: {
      accountKeys: [sandboxKey('account')],
      orderSeal,
      orderToken: sandboxKey('order-token'),
      baseUrl: null,
    },
    watcher: true,
    engine: { orderSeal, signerSocket: null },
    notifier: { accountKeys: [sandboxKey('account')], mail: null },
    signer: { orderSeal, seed, settings: sandboxSignerSettings(chains), databaseUrl, socket: null },
  },
  databaseUrl,
  databaseConnections: 20,
  chains,
  prices: { usd: sandboxPrices().usd, start: () => {}, stop: () => {} },
  policy: defaultPolicy,
  http: { port: 0, host: '127.0.0.1', limits: defaultLimits },
  clock,
  logger: createLogger('warn', '/dev/null'),
})
answerBench(service.origin)
