import pino from 'pino'
import { Registry } from 'prom-client'
import { systemClock } from '../src/clock.ts'
import { defaultLimits } from '../src/http/parts.ts'
import { buildServer } from '../src/http/server.ts'
import { fakeDesk, quietFeed, rateView } from '../src/http/testing/fake_desk.ts'
import { fakeWebhooks } from '../src/http/testing/fake_webhooks.ts'
import { noAccounts } from '../src/http/testing/no_accounts.ts'
import { answerBench } from './server_process.ts'

/** The whole of http — limits, log line, measures — over a desk that costs nothing. */
const outcome = { ok: true as const, value: rateView }
const { webhooks, endpoints } = fakeWebhooks()
const app = buildServer({
  desk: { ...fakeDesk(), rate: async () => outcome },
  webhooks,
  endpoints,
  feed: quietFeed,
  apiKeys: { find: async () => null, noteUse: () => {} },
  unsubscribing: { tokenOf: () => '', read: () => null, unsubscribe: async () => {} },
  owners: noAccounts,
  clock: systemClock(),
  baseUrl: () => 'http://127.0.0.1',
  limits: { ...defaultLimits, unitsPerMinute: 1e9, burstPerSecond: 1e9 },
  readiness: async () => ({ ready: true, checks: {} }),
  metrics: new Registry(),
  logger: pino(pino.destination({ dest: '/dev/null', sync: true })),
})
answerBench(await app.listen({ host: '127.0.0.1', port: 0 }))
