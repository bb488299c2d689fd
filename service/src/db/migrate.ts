import { runner } from 'node-pg-migrate'
import pg from 'pg'

export const MIGRATIONS_FOLDER = new URL('./migrations', import.meta.url).pathname

/**
 * Brings the database to the present schema; does nothing when it is there. Several processes may start at once:
 * one works, the others wait.
 */
export async function migrate(url: string, log: (line: string) => void): Promise<void> {
  // Our own: the runner does not wait until one of its is closed, and a server that is stopped meanwhile ends the process.
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {})
  try {
    await client.connect()
    await runMissing(client, log)
  } finally {
    await client.end()
  }
}

async function runMissing(dbClient: pg.Client, log: (line: string) => void): Promise<void> {
  await runner({
    dbClient,
    dir: MIGRATIONS_FOLDER,
    migrationsTable: 'schema_migrations',
    direction: 'up',
    advisoryLockMode: 'wait',
    checkOrder: true,
    // What fails is thrown, and told by whoever catches it.
    logger: { debug: log, info: log, warn: log, error: () => {} },
  })
}
