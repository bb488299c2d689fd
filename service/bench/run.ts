import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { removePostgres } from '@cambist/devnet'
import { createLogger } from '../src/log.ts'
import { startSandbox } from '../src/sandbox/start_sandbox.ts'
import { benchRate } from './rate.ts'

/**
 * `npm run bench`: every figure is a ratio to a named limit that is measured in the same run, in turns, by processor
 * time, so that it means the same on another machine. docs/benchmarks.md says what each one means.
 */
const here = (file: string) => fileURLToPath(new URL(file, import.meta.url))
const RATE = '/v1/rate?from=BTC&to=USDT&to_network=ERC20&amount=0.1'

async function benchRealRate(): Promise<void> {
  const dataDir = mkdtempSync(join(tmpdir(), 'cambist-bench-'))
  const sandbox = await startSandbox({
    config: {
      kind: 'sandbox',
      port: 0,
      host: '127.0.0.1',
      dataDir,
      databaseUrl: null,
      logLevel: 'warn',
      rateLimits: { unitsPerMinute: 1e9, burstPerSecond: 1e9, createUnits: 1 },
    },
    logger: createLogger('warn', join(dataDir, 'service.log')),
    mining: 'manual',
  })
  try {
    const args = [sandbox.databaseUrl, JSON.stringify(sandbox.devnet.networks)]
    const server = { file: here('real_rate_server.ts'), args }
    const float = await benchRate(server, `${RATE}&rate_type=float`)
    const fixed = await benchRate(server, `${RATE}&rate_type=fixed`)
    console.log(
      `GET /v1/rate float, real service: ${float.ratio.toFixed(2)} of bare node:http (limit: at least 0.70)`,
    )
    tell(float)
    const times = fixed.microsecondsPerRequest / float.microsecondsPerRequest
    console.log(`GET /v1/rate fixed, lock stored first: ${times.toFixed(2)} times float (limit: at most 2)`)
    tell(fixed)
  } finally {
    await sandbox.stop()
    removePostgres(join(dataDir, 'postgres'))
    rmSync(dataDir, { recursive: true, force: true })
  }
}

function tell({
  microsecondsPerRequest,
  bareMicrosecondsPerRequest,
  requestsPerSecond,
}: Awaited<ReturnType<typeof benchRate>>): void {
  const [ours, bare] = [microsecondsPerRequest, bareMicrosecondsPerRequest].map((time) => time.toFixed(1))
  console.log(
    `  ${ours} µs of processor a request, bare ${bare} µs; ${Math.round(requestsPerSecond)} requests a second`,
  )
}

await benchRealRate()
for (const file of ['rate.ts', 'qr.ts']) execFileSync(process.execPath, [here(file)], { stdio: 'inherit' })
process.exit(0)
