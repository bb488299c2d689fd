import type { KeyObject } from 'node:crypto'
import { type ChainSettings, isMainnet, readChains } from './chain_settings.ts'
import { type Env, readDatabaseUrl, readEnvironment } from './environment.ts'
import { keepNetworksApart } from './networks_apart.ts'
import { type KeystoreSettings, readKeystore } from './signer_settings.ts'

/** What the commands that only need the database read: `migrate`, `order`. */
export type DatabaseConfig = { readonly databaseUrl: string }

/** What `cambist keys` reads. The first key encrypts; all decrypt. */
export type AccountsConfig = DatabaseConfig & { readonly accountKeys: readonly KeyObject[] }

/** What `cambist ledger` reads: the books, and the chains to compare them with. */
export type LedgerConfig = DatabaseConfig & { readonly chains: ChainSettings }

/** What `cambist addresses` reads: where addresses are stored, and all that they follow from. */
export type AddressesConfig = LedgerConfig & {
  readonly isMainnet: boolean
  readonly keystore: KeystoreSettings
}

/** Throws ConfigError naming every problem. */
export function readDatabaseConfig(env: Env): DatabaseConfig {
  const from = readEnvironment(env, 'serve')
  from.required('DATABASE_URL', 'by this command')
  return from.finish({ databaseUrl: readDatabaseUrl(from, 'DATABASE_URL') ?? '' })
}

/** Throws ConfigError naming every problem. */
export function readAccountsConfig(env: Env): AccountsConfig {
  const from = readEnvironment(env, 'serve')
  from.required('DATABASE_URL', 'by this command')
  from.required('CAMBIST_ACCOUNT_KEY_FILE', 'by this command')
  return from.finish({
    databaseUrl: readDatabaseUrl(from, 'DATABASE_URL') ?? '',
    accountKeys: from.keys('CAMBIST_ACCOUNT_KEY_FILE'),
  })
}

/** Throws ConfigError naming every problem. */
export function readLedgerConfig(env: Env): LedgerConfig {
  const from = readEnvironment(env, 'serve')
  from.required('DATABASE_URL', 'by this command')
  const chains = readChains(from)
  return from.finish({ databaseUrl: readDatabaseUrl(from, 'DATABASE_URL') ?? '', chains })
}

/** Throws ConfigError naming every problem. */
export function readAddressesConfig(env: Env): AddressesConfig {
  const from = readEnvironment(env, 'serve')
  from.required('DATABASE_URL', 'by this command')
  const chains = readChains(from)
  keepNetworksApart(from, chains)
  const isReal = isMainnet(chains)
  return from.finish({
    databaseUrl: readDatabaseUrl(from, 'DATABASE_URL') ?? '',
    chains,
    isMainnet: isReal,
    keystore: readKeystore(from, isReal, 'this command'),
  })
}
