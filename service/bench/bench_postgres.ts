import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Postgres, removePostgres, startPostgres } from '@cambist/devnet'
import pg from 'pg'
import { type Database, openDatabase } from '../src/db/database.ts'
import { migrate } from '../src/db/migrate.ts'

/** A PostgreSQL of its own, fsync on, that is gone afterwards. */
export async function inPostgres(
  settings: Readonly<Record<string, string>>,
  use: (postgres: Postgres) => Promise<void>,
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'cambist-bench-'))
  const postgres = await startPostgres({ dataDir: join(folder, 'postgres'), settings })
  try {
    await use(postgres)
  } finally {
    await postgres.stop()
    removePostgres(join(folder, 'postgres'))
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Makes a database with the service's schema on the server; answers its URL, as a superuser. */
export async function createDatabase({ url }: Postgres, name: string): Promise<string> {
  await asSuperuser(url, (admin) => admin.query(`CREATE DATABASE ${name}`))
  const own = new URL(url)
  own.pathname = `/${name}`
  await migrate(own.href, () => {})
  return own.href
}

export async function asSuperuser<Value>(
  url: string,
  use: (admin: pg.Client) => Promise<Value>,
): Promise<Value> {
  const admin = new pg.Client({ connectionString: url })
  await admin.connect()
  try {
    return await use(admin)
  } finally {
    await admin.end()
  }
}

/** As the service opens it. */
export function openBenchDatabase(url: string, connectionsMax = 12): Database {
  return openDatabase({ url, connectionsMax, applicationName: 'cambist bench', onConnectionLost: () => {} })
}
