import { join, resolve } from 'node:path'
import type { Env } from '../config/environment.ts'
import { readSandboxConfig } from '../config/sandbox_config.ts'
import { createLogger } from '../log.ts'
import { greet } from '../sandbox/greeting.ts'
import { refuseForeignFolder } from '../sandbox/own_folder.ts'
import { resetSandbox } from '../sandbox/reset_sandbox.ts'
import { startSandbox } from '../sandbox/start_sandbox.ts'
import { loadTronSigning } from '../signer/transactions/tron_transaction.ts'
import { untilStopped } from './until_stopped.ts'

/** `cambist sandbox`: everything on this machine, until Ctrl-C. */
export async function runSandbox(env: Env, options: { readonly reset: boolean }): Promise<void> {
  const config = readSandboxConfig(env)
  const dataDir = resolve(config.dataDir)
  // Before the log is opened there.
  await refuseForeignFolder(dataDir)
  const say = (line: string) => console.log(`  ${line}`)
  if (options.reset) {
    console.log(`Deleting the sandbox in ${config.dataDir} …`)
    await resetSandbox(config)
  }
  console.log('Starting PostgreSQL, the local chains and the service …')
  const logFile = join(dataDir, 'service.log')
  // Ctrl-C is heard from now on: whatever has started by then is stopped, too.
  const interrupt = new AbortController()
  const logger = createLogger(config.logLevel, logFile)
  const starting = startSandbox({
    config,
    logger,
    say,
    signal: interrupt.signal,
  }).catch((error: unknown) => {
    if (error === interrupt.signal.reason) return null
    throw error
  })
  const stopped = untilStopped(async () => {
    console.log('\nStopping …')
    interrupt.abort()
    await (await starting)?.stop()
    console.log(
      'Everything has stopped. `npm start` continues where you left off; add `-- --reset` to begin anew.',
    )
  }, STOP_SECONDS_MAX)
  const sandbox = await Promise.race([starting, stopped])
  if (sandbox && !interrupt.signal.aborted) {
    console.log(greet(sandbox, logFile))
    await loadTronSigning()
    logger.info({}, 'what signing needs is loaded')
  }
  await stopped
}

/** A person waits, not a supervisor, and can press Ctrl-C again: nodes left running are worse than a slow end. */
const STOP_SECONDS_MAX = 60
