import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { removePostgres } from '@cambist/devnet'
import { createLogger } from '../src/log.ts'
import { type Sandbox, startSandbox } from '../src/sandbox/start_sandbox.ts'

/** A whole sandbox with real nodes and PostgreSQL, fsync on, in a folder of its own that is gone afterwards. */
export async function inSandbox(use: (sandbox: Sandbox) => Promise<void>): Promise<void> {
  const dataDir = mkdtempSync(join(tmpdir(), 'cambist-bench-'))
  const sandbox = await startSandbox({
    config: {
      kind: 'sandbox',
      port: 0,
      host: '127.0.0.1',
      dataDir,
      databaseUrl: null,
      logLevel: 'warn',
      rateLimits: {
        unitsPerMinute: 1e9,
        burstPerSecond: 1e9,
        createUnits: 1,
        streamsMax: 1e6,
        streamsPerCaller: 1e6,
      },
    },
    logger: createLogger('warn', join(dataDir, 'service.log')),
    mining: 'manual',
  })
  try {
    await use(sandbox)
  } finally {
    await sandbox.stop()
    removePostgres(join(dataDir, 'postgres'))
    rmSync(dataDir, { recursive: true, force: true })
  }
}
