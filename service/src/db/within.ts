import type { Database, Sql } from './database.ts'

/** A transaction, for what makes one of its own: what it does is part of this one, and stands or falls with it. */
export function within(tx: Sql): Database {
  return {
    query: tx.query,
    transaction: (work) => work(tx),
    close: async () => {
      throw new Error('a transaction is not closed by what is done in it')
    },
  }
}
