import { chmodSync, mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { type Postgres, startPostgres } from '@cambist/devnet'
import { migrate } from '../../src/db/migrate.ts'
import { copyMadeOnce } from './made_once.ts'

/** Servers and processes are killed in tests, the power is never cut. */
const settings = { fsync: 'off' }

/**
 * A PostgreSQL of a test's own with the service's tables, all of them empty: a copy of one that is made once a run, because
 * making a cluster takes longer than most tests. `dataDir` does not exist yet.
 */
export async function startMigratedPostgres(dataDir: string): Promise<Postgres> {
  // Loaded here, so that whoever takes something else from the same file can be a program of its own.
  const { inject } = await import('vitest')
  mkdirSync(dataDir)
  // The server may run as somebody else.
  chmodSync(dirname(dataDir), 0o755)
  await copyMadeOnce(
    { runFolder: inject('runFolder'), name: 'migrated_postgres', make, leftOut: ['server.json'] },
    dataDir,
  )
  return start(dataDir)
}

async function make(dataDir: string): Promise<void> {
  const server = await start(dataDir)
  await server.stop()
}

/** Migrations that were done in the copy are not done again. */
async function start(dataDir: string): Promise<Postgres> {
  const server = await startPostgres({ dataDir, settings })
  await migrate(server.url, () => {})
  return server
}
