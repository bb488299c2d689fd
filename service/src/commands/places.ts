import { readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { Devnet } from '@cambist/devnet'
import type { KeysPlace } from '../accounts/keys.ts'
import { createSecretBox } from '../accounts/secret_box.ts'
import { findUnopenable } from '../accounts/unopenable_secrets.ts'
import { systemClock } from '../clock.ts'
import { CommandRefused } from '../command_refused.ts'
import {
  readAccountsConfig,
  readAddressesConfig,
  readDatabaseConfig,
  readLedgerConfig,
} from '../config/admin_config.ts'
import { activeChains } from '../config/chain_settings.ts'
import type { Env } from '../config/environment.ts'
import { readSandboxConfig } from '../config/sandbox_config.ts'
import { sandboxKey } from '../config/sandbox_secrets.ts'
import { type Database, limitsOfAudits, openDatabase } from '../db/database.ts'
import { findMissing, refuseLaterSchema } from '../db/migrate.ts'
import { chainFacts } from '../domain/catalog/networks.ts'
import { connectChains } from '../main.ts'
import { sandboxChains } from '../sandbox/chains.ts'

/** Which service a command works on: the one that the environment configures, or the sandbox that runs here. */
export type Place = { readonly env: Env; readonly isSandbox: boolean }

/** What `cambist keys` works with. */
export async function openAccounts({ env, isSandbox }: Place) {
  const { databaseUrl, accountKeys } = isSandbox
    ? { databaseUrl: (await readSandbox(env)).database_url, accountKeys: [sandboxKey('account')] }
    : readAccountsConfig(env)
  const db = await openPresent(databaseUrl)
  const { wallMs, nowMs } = systemClock()
  const place = { db, box: createSecretBox(accountKeys), wallMs, nowMs }
  await warnOfOtherKeys(place)
  return { place, close: db.close }
}

/** A warning, because whoever has lost an account key has to make new secrets with another. Not where answers are printed. */
async function warnOfOtherKeys(place: KeysPlace): Promise<void> {
  for (const { accountKey, apiSecrets, webhookSecrets } of await findUnopenable(place)) {
    const count = apiSecrets + webhookSecrets
    console.error(
      `Warning: ${count} secret${count === 1 ? '' : 's'} in the database cannot be opened without account key ${accountKey}, which is not in CAMBIST_ACCOUNT_KEY_FILE. Use the file that the service has: it cannot open what is made here with another.`,
    )
  }
}

/** What `cambist order`, `cambist audit`, and those of `cambist ledger` work with that ask no node. They may have to read all orders or deposits there are. */
export async function openOrders({ env, isSandbox }: Place) {
  const db = await openPresent(
    isSandbox ? (await readSandbox(env)).database_url : readDatabaseConfig(env).databaseUrl,
    { limits: limitsOfAudits },
  )
  return { db, clock: systemClock(), close: db.close }
}

/** What `cambist ledger` works with. */
export async function openLedger({ env, isSandbox }: Place) {
  const { databaseUrl, chains } = isSandbox ? await readSandboxLedger(env) : readLedgerConfig(env)
  const db = await openPresent(databaseUrl, { limits: limitsOfAudits })
  return { db, chains: await connectChains(chains, db), clock: systemClock(), close: db.close }
}

/** What `cambist addresses` works with. It derives by itself: no signer has to run. */
export async function openAddresses(env: Env) {
  const config = readAddressesConfig(env)
  const { openSeed, signerSettings } = await import('../serve.ts')
  const { addressesOf, keysOf } = await import('../signer/derive_addresses.ts')
  const settings = signerSettings(config, [])
  const keys = keysOf(await openSeed(config.keystore, config.isMainnet), settings)
  const families = new Set(activeChains(config.chains).map((chain) => chainFacts[chain].family))
  const db = await openPresent(config.databaseUrl)
  return {
    db,
    clock: systemClock(),
    signer: { addresses: addressesOf(keys, settings) },
    families: [...families],
    close: db.close,
  }
}

/** Changes no schema: whoever only looks must not change the tables under a service of an earlier release. */
async function openPresent(
  databaseUrl: string,
  options: Pick<Parameters<typeof openDatabase>[0], 'limits'> = {},
): Promise<Database> {
  const missing = await findMissing(databaseUrl)
  if (missing.length > 0) {
    throw new CommandRefused(
      `The database does not have the schema of this release (missing: ${missing.join(', ')}). ` +
        'Stop what still runs of an earlier one; then start this one, or run: cambist migrate',
    )
  }
  await refuseLaterSchema(databaseUrl)
  return openDatabase({
    ...options,
    url: databaseUrl,
    connectionsMax: 2,
    applicationName: 'cambist command',
    onConnectionLost: console.error,
  })
}

/** The part of sandbox.json that commands need. */
type RunningSandbox = { readonly database_url: string; readonly networks: Devnet['networks'] }

async function readSandbox(env: Env): Promise<RunningSandbox> {
  const { dataDir } = readSandboxConfig(env)
  const path = join(resolve(dataDir), 'sandbox.json')
  try {
    return JSON.parse(await readFile(path, 'utf8')) as RunningSandbox
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    throw new CommandRefused(
      `No sandbox runs in ${dataDir}. Start one with: npm start (CAMBIST_DATA_DIR names another folder)`,
    )
  }
}

async function readSandboxLedger(env: Env) {
  const { database_url: databaseUrl, networks } = await readSandbox(env)
  return { databaseUrl, chains: await sandboxChains(networks) }
}
