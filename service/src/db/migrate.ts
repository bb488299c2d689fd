import { runner } from 'node-pg-migrate'

export const MIGRATIONS_FOLDER = new URL('./migrations', import.meta.url).pathname

/**
 * Brings the database to the present schema; does nothing when it is there. Several processes may start at once:
 * one works, the others wait.
 */
export async function migrate(url: string, log: (line: string) => void): Promise<void> {
  await runner({
    databaseUrl: url,
    dir: MIGRATIONS_FOLDER,
    migrationsTable: 'schema_migrations',
    direction: 'up',
    advisoryLockMode: 'wait',
    checkOrder: true,
    // What fails is thrown, and told by whoever catches it.
    logger: { debug: log, info: log, warn: log, error: () => {} },
  })
}
