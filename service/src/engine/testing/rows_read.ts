import type { Database, Sql } from '../../db/database.ts'

/**
 * How many rows of these tables are read to answer `ask`, by the plans that a connection keeps: those know of no value that is asked
 * for. A row that is known from an index alone is none.
 */
export async function rowsRead(
  db: Database,
  tables: readonly string[],
  ask: (sql: Sql) => Promise<unknown>,
): Promise<number> {
  const read = async (tx: Sql) => {
    const [row] = await tx.query<{ rows: number }>(
      `SELECT sum(pg_stat_get_xact_tuples_returned(oid) + pg_stat_get_xact_tuples_fetched(oid))::float AS rows
       FROM pg_class WHERE oid = ANY ($1::regclass[])`,
      [tables],
    )
    return row?.rows ?? Number.NaN
  }
  return db.transaction(async (tx) => {
    await tx.query('SET LOCAL plan_cache_mode = force_generic_plan')
    const before = await read(tx)
    await ask(tx)
    return (await read(tx)) - before
  })
}
