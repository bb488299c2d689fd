import { readFileSync } from 'node:fs'
import type { Command } from 'commander'
import { CommandRefused } from '../accounts/keys_command.ts'
import { systemClock } from '../clock.ts'
import { createKeystore, newMnemonic } from '../signer/keystore.ts'

/** `cambist keystore create`: new keys, encrypted; the words are shown once, to be written down on paper. */
export function registerKeystoreCommands(keystore: Command): void {
  keystore.description('the signer’s encrypted keys')
  keystore
    .command('create')
    .argument('<file>', 'where to write it; nothing is overwritten')
    .requiredOption('--passphrase-file <file>', 'its first line is the passphrase')
    .option('--mnemonic-file <file>', 'restore from these words instead of making new ones')
    .option('--test', 'for test networks; a production service refuses it')
    .description('make or restore a keystore')
    .action(create)
}

type Options = { readonly passphraseFile: string; readonly mnemonicFile?: string; readonly test?: boolean }

async function create(path: string, options: Options): Promise<void> {
  const passphrase = firstLine(options.passphraseFile)
  const mnemonic = options.mnemonicFile === undefined ? newMnemonic() : firstLine(options.mnemonicFile)
  const environment = options.test === true ? ('sandbox' as const) : ('production' as const)
  const made = await createKeystore({
    path,
    passphrase,
    mnemonic,
    environment,
    nowMs: systemClock().wallMs(),
  })
  if (!made.ok) throw new CommandRefused(made.rejection.message)
  console.log(`${path} is written.`)
  if (options.mnemonicFile !== undefined) return
  console.log('Write these words on paper and keep them safe; they are not shown again:\n')
  console.log(`  ${mnemonic}`)
}

function firstLine(path: string): string {
  const line = readFileSync(path, 'utf8').split(/\r?\n/, 1)[0]?.trim() ?? ''
  if (line === '') throw new CommandRefused(`the first line of ${path} is empty`)
  return line
}
