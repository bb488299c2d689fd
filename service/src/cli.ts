#!/usr/bin/env node
import { Command, CommanderError } from 'commander'
import { registerAddressesCommands } from './commands/addresses.ts'
import { registerAuditCommands } from './commands/audit.ts'
import { explainFailure } from './commands/explain_failure.ts'
import { registerKeysCommands } from './commands/keys.ts'
import { registerKeystoreCommands } from './commands/keystore.ts'
import { registerLedgerCommands } from './commands/ledger.ts'
import { registerLedgerBalances } from './commands/ledger_balances.ts'
import { registerLedgerEntries } from './commands/ledger_entries.ts'
import { registerOrderCommands } from './commands/order.ts'
import { watchOutput } from './commands/standard_output.ts'
import { toTerminal } from './commands/table.ts'
import { readDatabaseConfig } from './config/admin_config.ts'
import { migrate } from './db/migrate.ts'

// What only one command needs is loaded when it is given: the sandbox has a database to start meanwhile.
const places = () => import('./commands/places.ts')

const { env } = process
const output = watchOutput()
const print = (text: string) => console.log(toTerminal(text))
const note = (text: string) => console.error(toTerminal(text))

const program = new Command('cambist')
  .description('A self-hosted crypto exchange order service')
  .showHelpAfterError()
  .exitOverride()

program
  .command('sandbox')
  .description('everything on this machine: database, chains, service, a demo account')
  .option('--reset', 'delete what an earlier sandbox kept, and begin anew')
  .action(async ({ reset }: { reset?: boolean }) => {
    const { useLinkedLibraries } = await import('./sandbox/linked_libraries.ts')
    useLinkedLibraries()
    const { runSandbox } = await import('./commands/sandbox.ts')
    await runSandbox(env, { reset: reset === true })
  })

program
  .command('serve')
  .description('the service, configured by the environment (docs/operating/configuration.md)')
  .option('--roles <list>', 'what this process does: api,watcher,engine,notifier,signer (default: all)')
  .action(async ({ roles }: { roles?: string }) => {
    const { runServe } = await import('./commands/serve.ts')
    await runServe(env, roles)
  })

program
  .command('migrate')
  .description('bring the database to the present schema; serve does so by itself')
  .action(async () => {
    await migrate(readDatabaseConfig(env).databaseUrl, print, print)
    print('The database has the present schema.')
  })

const keys = onEitherPlace(program.command('keys'))
registerKeysCommands(keys, { print, open: async () => (await places()).openAccounts(placeOf(keys)) })

const order = onEitherPlace(program.command('order'))
registerOrderCommands(order, { print, note, open: async () => (await places()).openOrders(placeOf(order)) })

const ledger = onEitherPlace(program.command('ledger'))
registerLedgerCommands(ledger, { print, open: async () => (await places()).openLedger(placeOf(ledger)) })
// These ask no node, and so need none to be configured.
const openBooks = async () => (await places()).openOrders(placeOf(ledger))
registerLedgerBalances(ledger, { print, open: openBooks })
registerLedgerEntries(ledger, { print, write: output.write, open: openBooks })

const audit = onEitherPlace(program.command('audit'))
registerAuditCommands(audit, { print, note, open: async () => (await places()).openOrders(placeOf(audit)) })

registerKeystoreCommands(program.command('keystore'), { print })

registerAddressesCommands(program.command('addresses'), {
  print,
  open: async () => (await places()).openAddresses(env),
})

program
  .command('openapi')
  .description('print the OpenAPI document')
  .action(async () => {
    const { describeInterface } = await import('./commands/openapi.ts')
    print(await describeInterface())
  })

/** Without the option, commands work on the service that the environment configures. */
function onEitherPlace(command: Command): Command {
  return command.option('--sandbox', 'on the sandbox that runs in CAMBIST_DATA_DIR (default: .cambist)')
}

function placeOf(command: Command) {
  return { env, isSandbox: command.opts<{ sandbox?: boolean }>().sandbox === true }
}

try {
  await program.parseAsync()
  await output.refuseLoss()
  process.exit()
} catch (error) {
  // Usage mistakes have been told by commander; the rest is told here, and only what is a fault of ours with its stack.
  if (error instanceof CommanderError) process.exit(error.exitCode)
  console.error(explainFailure(error) ?? error)
  process.exit(1)
}
