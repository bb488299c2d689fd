import type { Database } from '../../db/database.ts'

/** The same database, in which `before` is asked before each statement of a transaction: what it throws the statement ends with. */
export function failingDatabase(
  database: Database,
  before: (text: string, values: readonly unknown[] | undefined) => void,
): Database {
  return {
    ...database,
    transaction: (work) =>
      database.transaction((tx) =>
        work({
          query: async (text, values) => {
            before(text, values)
            return tx.query(text, values)
          },
        }),
      ),
  }
}
