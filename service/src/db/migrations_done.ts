import { readdir } from 'node:fs/promises'
import type { Sql } from './database.ts'

export const MIGRATIONS_FOLDER = new URL('./migrations', import.meta.url).pathname

/** Migrations that this code has, by name, the first one first. */
export async function allMigrations(): Promise<string[]> {
  const files = await readdir(MIGRATIONS_FOLDER)
  return files
    .filter((file) => file.endsWith('.sql'))
    .map((file) => file.slice(0, -'.sql'.length))
    .sort()
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
