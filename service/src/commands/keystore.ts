import { readFileSync } from 'node:fs'
import type { Command } from 'commander'
import { systemClock } from '../clock.ts'
import { CommandRefused } from '../command_refused.ts'
import { readFirstLine } from '../config/environment.ts'
import { deriveKeys } from '../signer/derivation.ts'
import { createKeystore, newMnemonic, openKeystore } from '../signer/keystore.ts'

type Print = (text: string) => void

/**
 * `cambist keystore create`: new keys, encrypted; the words are shown once, to be written down on paper.
 * `cambist keystore eos-key`: the one public key that has to be known before anything runs.
 */
export function registerKeystoreCommands(keystore: Command, { print }: { readonly print: Print }): void {
  keystore.description('the signer’s encrypted keys')
  keystore
    .command('create')
    .argument('<file>', 'where to write it; nothing is overwritten')
    .requiredOption('--passphrase-file <file>', 'its first line is the passphrase')
    .option('--mnemonic-file <file>', 'restore from these words instead of making new ones')
    .option('--test', 'for test networks; a production service refuses it')
    .description('make or restore a keystore')
    .action((path: string, options: Options) => create(path, options, print))
  keystore
    .command('eos-key')
    .argument('<file>', 'the keystore')
    .requiredOption('--passphrase-file <file>', 'its first line is the passphrase')
    .option('--test', 'a keystore for test networks')
    .description('the public key that our account on EOS has to obey')
    .action((path: string, options: Options) => showEosKey(path, options, print))
}

type Options = { readonly passphraseFile: string; readonly mnemonicFile?: string; readonly test?: boolean }

function environmentOf({ test }: Options) {
  return test === true ? ('sandbox' as const) : ('production' as const)
}

async function showEosKey(path: string, options: Options, print: Print): Promise<void> {
  const passphrase = readFirstLine(options.passphraseFile)
  const opened = await openKeystore({ path, passphrase, environment: environmentOf(options) })
  if (!opened.ok) throw new CommandRefused(opened.rejection.message)
  const { eosPublicKey } = await import('../signer/transactions/eos_transaction.ts')
  print(eosPublicKey(deriveKeys(opened.value.seed, { bitcoin: 'mainnet', xrpNetworkId: 0 })))
}

async function create(path: string, options: Options, print: Print): Promise<void> {
  const passphrase = readFirstLine(options.passphraseFile)
  if (passphrase === '') throw new CommandRefused(`the first line of ${options.passphraseFile} is empty`)
  const mnemonic = options.mnemonicFile === undefined ? newMnemonic() : readWords(options.mnemonicFile)
  const environment = environmentOf(options)
  const nowMs = systemClock().wallMs()
  const made = await createKeystore({ path, passphrase, mnemonic, environment, nowMs })
  if (!made.ok) throw new CommandRefused(made.rejection.message)
  print(`${path} is written.`)
  if (options.mnemonicFile !== undefined) return
  print('Write these words on paper and keep them safe; they are not shown again:\n')
  print(`  ${mnemonic}`)
}

/** However they were written down: on lines, with capitals. */
function readWords(path: string): string {
  return readFileSync(path, 'utf8').toLowerCase().split(/\s+/).filter(Boolean).join(' ')
}
