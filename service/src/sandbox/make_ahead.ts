import { readdirSync } from 'node:fs'
import type { Filling } from '@cambist/devnet'
import { migrate } from '../db/migrate.ts'
import { nameOfSchema } from '../db/migrations_done.ts'
import { useLinkedLibraries } from './linked_libraries.ts'

/**
 * Run once after an installation, so that the first start does not have to: libraries are linked into a few files, Node strips the
 * types of everything that the sandbox loads and keeps it where `npm start` looks for it, a PostgreSQL with the service's tables is made that every
 * new one is a copy of, and the contracts of the local chains are compiled. The installation goes on when it fails: the sandbox will say
 * what is wrong, to somebody who is looking.
 */
await import('./link_libraries.ts')
  .then(({ linkLibraries }) => linkLibraries())
  .catch((error: unknown) => console.error('Libraries are loaded as they came:', error))
useLinkedLibraries()
const schema: Filling = { name: await nameOfSchema(), fill: (url) => migrate(url, () => {}) }
const chains = new URL('../chains/', import.meta.url)
const connectors = readdirSync(chains, { withFileTypes: true }).filter((entry) => entry.isDirectory())
await import('@cambist/devnet').then(({ loadNetworks }) => loadNetworks())
await import('../commands/sandbox.ts')
await import('../main.ts').then(({ loadRoles }) => loadRoles())
for (const { name } of connectors) await import(new URL(`${name}/index.ts`, chains).href)
await import('../signer/transactions/stellar_transaction.ts')
await import('../signer/transactions/eos_transaction.ts')
await import('@cambist/devnet').then(({ makeClusterTemplates }) => makeClusterTemplates(schema))
await import('@cambist/devnet').then(({ compileAhead }) => compileAhead())
process.exit()
