import pg from 'pg'

export type ReadOnlyDatabase = {
  /** A query as the superuser that can change nothing; numeric comes as bigint, bigint columns as number. */
  query<Row extends object>(text: string, values?: readonly unknown[]): Promise<Row[]>
  close(): Promise<void>
}

const NUMERIC = 1700
const INT8 = 20

/** For looking: what a test reads in the tables it must not be able to put there. */
export function openReadOnly(url: string): ReadOnlyDatabase {
  const pool = new pg.Pool({
    connectionString: url,
    max: 4,
    application_name: 'cambist test',
    options: '-c default_transaction_read_only=on',
    types: {
      getTypeParser: ((oid: number, format?: 'text') => {
        if (oid === NUMERIC) return BigInt
        return oid === INT8 ? Number : pg.types.getTypeParser(oid, format)
      }) as typeof pg.types.getTypeParser,
    },
  })
  // The sandbox stops its server at the end; an idle connection that breaks then is no failure.
  pool.on('error', () => {})
  return {
    query: async <Row extends object>(text: string, values: readonly unknown[] = []) =>
      (await pool.query<Row>(text, [...values])).rows,
    close: () => pool.end(),
  }
}
