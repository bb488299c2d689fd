#!/usr/bin/env node
import { Command, CommanderError } from 'commander'
import { CommandRefused, registerKeysCommands } from './accounts/keys_command.ts'
import { createSecretBox } from './accounts/secret_box.ts'
import { systemClock } from './clock.ts'
import { registerKeystoreCommands } from './commands/keystore.ts'
import { printOpenApi } from './commands/openapi.ts'
import { runSandbox } from './commands/sandbox.ts'
import { readAccountsConfig, readDatabaseConfig } from './config/admin_config.ts'
import { ConfigError } from './config/problems.ts'
import { readServeConfig } from './config/serve_config.ts'
import { openDatabase } from './db/database.ts'
import { migrate } from './db/migrate.ts'
import { createLogger } from './log.ts'
import { serve } from './serve.ts'

const program = new Command('cambist')
  .description('A self-hosted crypto exchange order service')
  .showHelpAfterError()
  .exitOverride()

program
  .command('sandbox')
  .description('everything on this machine: database, chains, service, a demo account')
  .option('--reset', 'delete what an earlier sandbox kept, and begin anew')
  .action(({ reset }: { reset?: boolean }) =>
    runSandbox(process.env, { reset: reset === true }, untilStopped),
  )

program
  .command('serve')
  .description('the service, configured by the environment (docs/operating/configuration.md)')
  .option('--roles <list>', 'what this process does: api,watcher,engine,notifier,signer')
  .action(async ({ roles }: { roles?: string }) => {
    const config = readServeConfig(process.env, roles)
    const logger = createLogger(config.logLevel)
    const service = await serve(config, logger)
    await untilStopped(service.stop)
  })

program
  .command('migrate')
  .description('bring the database to the present schema; serve does so by itself')
  .action(() => migrate(readDatabaseConfig(process.env).databaseUrl, console.log))

program.command('openapi').description('print the OpenAPI document').action(printOpenApi)

registerKeysCommands(program.command('keys'), {
  print: console.log,
  open: async () => {
    const { databaseUrl, accountKeys } = readAccountsConfig(process.env)
    await migrate(databaseUrl, () => {})
    const db = openDatabase({
      url: databaseUrl,
      connectionsMax: 2,
      applicationName: 'cambist keys',
      onConnectionLost: console.error,
    })
    const place = { db, box: createSecretBox(accountKeys), wallMs: systemClock().wallMs }
    return { place, close: db.close }
  },
})

registerKeystoreCommands(program.command('keystore'))

/** Resolves when a signal asked to stop and everything has; a second signal does not wait. */
function untilStopped(stop: () => Promise<void>): Promise<void> {
  return new Promise((resolve, reject) => {
    let isStopping = false
    const onSignal = () => {
      if (isStopping) process.exit(130)
      isStopping = true
      stop().then(resolve, reject)
    }
    process.on('SIGINT', onSignal)
    process.on('SIGTERM', onSignal)
  })
}

try {
  await program.parseAsync()
  process.exit()
} catch (error) {
  // Usage mistakes have been told by commander; the rest is told here, and only the unexpected with its stack.
  if (error instanceof CommanderError) process.exit(error.exitCode)
  const isExpected = error instanceof ConfigError || error instanceof CommandRefused
  console.error(isExpected ? error.message : error)
  process.exit(1)
}
