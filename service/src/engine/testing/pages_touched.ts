import type { Sql } from '../../db/database.ts'

/** How many pages of the database the statements of `ask` touch; they are answered with no rows. */
export async function pagesTouched(db: Sql, ask: (sql: Sql) => Promise<unknown>): Promise<number> {
  let pages = 0
  await ask({
    query: async (text, values) => {
      const [row] = await db.query<{ 'QUERY PLAN': [{ Plan: Record<string, number> }] }>(
        `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${text}`,
        values,
      )
      const plan = row?.['QUERY PLAN'][0].Plan ?? {}
      pages += (plan['Shared Hit Blocks'] ?? 0) + (plan['Shared Read Blocks'] ?? 0)
      return []
    },
  })
  return pages
}
