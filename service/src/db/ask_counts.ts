import type { InstantMs } from '../domain/time.ts'
import type { Sql } from './database.ts'

/**
 * Counts one more, and answers its number (1 is the first) in the present window of `windowMs`. In the database, because a process
 * that is asked does not know what the others were.
 */
export async function countAsk(
  sql: Sql,
  asked: string,
  nowMs: InstantMs,
  windowMs: number,
): Promise<{ readonly count: number; readonly untilMs: InstantMs }> {
  const fromMs = nowMs - (nowMs % windowMs)
  const [row] = await sql.query<{ count: number }>(
    `INSERT INTO ask_counts (asked, from_ms, count) VALUES ($1, $2, 1)
     ON CONFLICT (asked, from_ms) DO UPDATE SET count = ask_counts.count + 1 RETURNING count`,
    [asked, fromMs],
  )
  return { count: row?.count ?? 1, untilMs: fromMs + windowMs }
}
