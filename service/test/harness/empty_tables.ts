import type pg from 'pg'

/**
 * Empties tables between two tests, as a superuser: to delete a handful of rows takes half a millisecond where TRUNCATE takes
 * thirty, because it makes new files for all of them and has every connection plan its statements anew.
 * Foreign keys need no looking after when all that refer to each other are named.
 */
export async function emptyTables(superuser: pg.Client, tables: readonly string[]): Promise<void> {
  await superuser.query(
    [
      'BEGIN',
      'SET LOCAL session_replication_role = replica',
      ...tables.map((table) => `DELETE FROM ${table}`),
      'COMMIT',
    ].join(';'),
  )
}
