import pg from 'pg'

/** Who waits for whom in the locks of a database: asked from a connection of its own, which never waits. */
export type LockWatch = {
  /** How many statements wait for a lock at this moment. */
  waiting(): Promise<number>
  /** If statements wait for each other in a circle, the one that began to wait last gives up. False: none do. */
  breakCircle(): Promise<boolean>
  close(): Promise<void>
}

/** Nothing but us runs here, so a lock that is asked for and not granted is one of ours. */
const WAITING = `
  SELECT l.pid, pg_blocking_pids(l.pid) AS holders, min(l.waitstart) AS since
  FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
  WHERE NOT l.granted AND a.datname = current_database() GROUP BY l.pid`

type Waiter = { readonly pid: number; readonly holders: readonly number[]; readonly since: Date | null }

export async function openLockWatch(url: string): Promise<LockWatch> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const read = async () => (await client.query<Waiter>({ name: 'waiting', text: WAITING })).rows
  return {
    waiting: async () => (await read()).length,
    breakCircle: async () => {
      const inCircle = findCircle(await read())
      const last = inCircle.toSorted((left, right) => begunMs(left) - begunMs(right)).at(-1)
      if (last === undefined) return false
      await client.query('SELECT pg_cancel_backend($1)', [last.pid])
      return true
    },
    close: () => client.end(),
  }
}

/** One that has only just begun to wait has no time yet. */
function begunMs({ since }: Waiter): number {
  return since?.getTime() ?? Number.POSITIVE_INFINITY
}

/** Those that can be reached from themselves. */
function findCircle(waiters: readonly Waiter[]): readonly Waiter[] {
  const holdersOf = new Map(waiters.map(({ pid, holders }) => [pid, holders]))
  const reaches = (from: number, to: number, seen: Set<number>): boolean =>
    (holdersOf.get(from) ?? []).some((next) => {
      if (next === to) return true
      if (seen.has(next)) return false
      return reaches(next, to, seen.add(next))
    })
  return waiters.filter(({ pid }) => reaches(pid, pid, new Set()))
}
