import type { Database, Sql } from '../../db/database.ts'

/** The same database, and how many rows it has answered inside transactions since. */
export function countingRows(database: Database) {
  let rows = 0
  const counting = (sql: Sql): Sql => ({
    query: async (text, values) => {
      const answer = await sql.query(text, values)
      rows += answer.length
      return answer as never
    },
  })
  const db: Database = {
    ...database,
    transaction: (work) => database.transaction((tx) => work(counting(tx))),
  }
  return { db, rows: () => rows }
}
