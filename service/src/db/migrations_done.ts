import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Sql } from './database.ts'

export const MIGRATIONS_FOLDER = join(import.meta.dirname, 'migrations')

/**
 * Migrations that this code has, by name, the first one first. Read once: an update lays the files of the next release where a
 * process of this one may still run, and they say nothing of its code.
 */
export const ownMigrations: readonly string[] = migrationsIn(MIGRATIONS_FOLDER)

function migrationsIn(folder: string): string[] {
  return readdirSync(folder)
    .filter((file) => file.endsWith('.sql'))
    .map((file) => file.slice(0, -'.sql'.length))
    .sort()
}

/** Of the tables that the migrations make, and nothing else: another text of one of them is another name. */
export async function nameOfSchema(folder = MIGRATIONS_FOLDER): Promise<string> {
  const hash = createHash('sha256')
  for (const name of migrationsIn(folder)) {
    hash.update(`${name}\n`).update(readFileSync(join(folder, `${name}.sql`)))
  }
  return `schema-${hash.digest('hex').slice(0, 16)}`
}

type Comparison = {
  /** Those that the database has not. */
  readonly missing: readonly string[]
  /** Those that the database has and this code does not know: a later release has been there. */
  readonly unknown: readonly string[]
}

/** The migrations of this code and those of the database, in one look at each. */
export async function compareMigrations(sql: Sql): Promise<Comparison> {
  const rows = await sql.query<{ name: string }>('SELECT name FROM schema_migrations ORDER BY name')
  const done = rows.map(({ name }) => name)
  return {
    missing: ownMigrations.filter((name) => !done.includes(name)),
    unknown: done.filter((name) => !ownMigrations.includes(name)),
  }
}
