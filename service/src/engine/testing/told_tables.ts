import type { Sql } from '../../db/database.ts'

const SOURCE = /FROM (\w+)/

/** A database that is only read, one table in each statement, and of which these tables have these rows. */
export function databaseTelling(tables: Readonly<Record<string, readonly object[]>>): Sql {
  const known: typeof tables = { reserve_figures: [{ figure: 1 }], ...tables }
  return { query: async (text: string) => known[SOURCE.exec(text)?.[1] ?? ''] ?? [] } as unknown as Sql
}
