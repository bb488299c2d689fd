import { mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type Postgres, startPostgres } from '@cambist/devnet'
import { migrate } from '../../src/db/migrate.ts'
import { byFile } from './by_file.ts'
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
  await copyMadeOnce(
    { runFolder: inject('runFolder'), name: 'migrated_postgres', make, leftOut: ['server.json'] },
    dataDir,
  )
  const { settings: apart, reach } = byFile(join(dirname(dataDir), 'sockets'))
  const server = await start(dataDir, apart)
  return { ...server, url: reach(server.url) }
}

async function make(dataDir: string): Promise<void> {
  const server = await start(dataDir)
  await server.stop()
}

/** Migrations that were done in the copy are not done again. */
async function start(dataDir: string, apart: Readonly<Record<string, string>> = {}): Promise<Postgres> {
  const server = await startPostgres({ dataDir, settings: { ...settings, ...apart } })
  await migrate(server.url, () => {})
  return server
}
