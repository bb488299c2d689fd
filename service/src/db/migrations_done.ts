import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Sql } from './database.ts'

export const MIGRATIONS_FOLDER = join(import.meta.dirname, 'migrations')

/** Migrations that this code has, by name, the first one first. */
export async function allMigrations(folder = MIGRATIONS_FOLDER): Promise<string[]> {
  const files = await readdir(folder)
  return files
    .filter((file) => file.endsWith('.sql'))
    .map((file) => file.slice(0, -'.sql'.length))
    .sort()
}

/** Of the tables that the migrations make, and nothing else: another text of one of them is another name. */
export async function nameOfSchema(folder = MIGRATIONS_FOLDER): Promise<string> {
  const hash = createHash('sha256')
  for (const name of await allMigrations(folder)) {
    hash.update(`${name}\n`).update(readFileSync(join(folder, `${name}.sql`)))
  }
  return `schema-${hash.digest('hex').slice(0, 16)}`
}

/** Those of them that the database has not. */
export async function missingMigrations(sql: Sql): Promise<string[]> {
  const done = new Set(await migrationsDone(sql))
  return (await allMigrations()).filter((name) => !done.has(name))
}

/** Those that the database has and this code does not know: a later release has been there. */
export async function unknownMigrations(sql: Sql): Promise<string[]> {
  const known = new Set(await allMigrations())
  return (await migrationsDone(sql)).filter((name) => !known.has(name))
}

async function migrationsDone(sql: Sql): Promise<string[]> {
  const done = await sql.query<{ name: string }>('SELECT name FROM schema_migrations ORDER BY name')
  return done.map(({ name }) => name)
}
