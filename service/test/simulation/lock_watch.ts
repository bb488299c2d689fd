import pg from 'pg'

/** Who waits for a lock in a database: asked from a connection of its own, which never waits. */
export type LockWatch = {
  /** How many statements wait for a lock at this moment. */
  waiting(): Promise<number>
  /** The statement that began to wait last gives up. */
  cancelLast(): Promise<void>
  close(): Promise<void>
}

/**
 * Nothing but us runs here, so a lock that is asked for and not granted is one of ours. One that has only just begun to
 * wait has no time yet.
 */
const WAITING = `
  SELECT l.pid FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
  WHERE NOT l.granted AND a.datname = current_database() GROUP BY l.pid ORDER BY min(l.waitstart) NULLS LAST`

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
