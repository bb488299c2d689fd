import pg from 'pg'
import { errorCode } from './database.ts'
import { MIGRATIONS_FOLDER, missingMigrations } from './migrations_done.ts'

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
    if (await isAnyMissing(client)) await runMissing(client, log)
  } finally {
    await client.end()
  }
}

const NO_SUCH_TABLE = '42P01'

async function isAnyMissing(client: pg.Client): Promise<boolean> {
  try {
    const missing = await missingMigrations({
      query: async (text, values = []) => (await client.query(text, [...values])).rows,
    })
    return missing.length > 0
  } catch (error) {
    if (errorCode(error) === NO_SUCH_TABLE) return true
    throw error
  }
}

async function runMissing(dbClient: pg.Client, log: (line: string) => void): Promise<void> {
  // Every process asks whether something is missing; few find that it is.
  const { runner } = await import('node-pg-migrate')
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
