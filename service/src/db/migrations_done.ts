import { readdir } from 'node:fs/promises'
import type { Sql } from './database.ts'

export const MIGRATIONS_FOLDER = new URL('./migrations', import.meta.url).pathname

/** Migrations that this code has and the database has not, by name. */
export async function missingMigrations(sql: Sql): Promise<string[]> {
  const files = await readdir(MIGRATIONS_FOLDER)
  const wanted = files.filter((file) => file.endsWith('.sql')).map((file) => file.slice(0, -'.sql'.length))
  const done = await sql.query<{ name: string }>('SELECT name FROM schema_migrations')
  const names = new Set(done.map(({ name }) => name))
  return wanted.filter((name) => !names.has(name)).sort()
}
