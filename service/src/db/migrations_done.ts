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
  const wanted = await allMigrations()
  const done = await sql.query<{ name: string }>('SELECT name FROM schema_migrations')
  const names = new Set(done.map(({ name }) => name))
  return wanted.filter((name) => !names.has(name))
}
