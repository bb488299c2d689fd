import pg from 'pg'

/** Who waits for a lock in a database: asked from a connection of its own, which never waits. */
export type LockWatch = {
  /** How many statements wait for a lock at this moment. */
  waiting(): Promise<number>
  /** Of the statements that wait, the one that began last gives up. */
  cancelLast(): Promise<void>
  close(): Promise<void>
}

/**
 * Nothing but us runs here, so a lock that is asked for and not granted is one of ours. In the order in which the statements began,
 * which the scheduler decides: of several that wait for one row each begins to wait anew when another gives up or goes on, in
 * whatever order the server comes to them.
 */
const WAITING = `
  SELECT pid FROM pg_stat_activity
  WHERE datname = current_database() AND pid IN (SELECT pid FROM pg_locks WHERE NOT granted) ORDER BY query_start`

export async function openLockWatch(url: string): Promise<LockWatch> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const read = async () => (await client.query<{ pid: number }>({ name: 'waiting', text: WAITING })).rows
  return {
    waiting: async () => (await read()).length,
    cancelLast: async () => {
      await client.query('SELECT pg_cancel_backend($1)', [(await read()).at(-1)?.pid])
    },
    close: () => client.end(),
  }
}
