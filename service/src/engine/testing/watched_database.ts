import type { Database } from '../../db/database.ts'

/** A database that counts the statements outside transactions and can be cut off. */
export function watchedDatabase(database: Database) {
  let count = 0
  let isCut = false
  const db: Database = {
    ...database,
    query: (text, values) => {
      count += 1
      return isCut ? Promise.reject(new Error('the database is away')) : database.query(text, values)
    },
  }
  return {
    db,
    asked: () => count,
    cut: () => {
      isCut = true
    },
  }
}
