import { SESSION_IDLE_MS } from '../domain/session_lifetimes.ts'
import { DAY_MS, type InstantMs } from '../domain/time.ts'
import type { Sql } from './database.ts'

/** After its end a link still says for a day why it does not sign in. */
const enders: readonly { readonly table: string; readonly key: string; readonly over: string }[] = [
  { table: 'sign_in_links', key: 'link_id', over: `expires_at_ms < $1::bigint - ${DAY_MS}` },
  {
    table: 'sessions',
    key: 'session_id',
    over: `ends_at_ms < $1::bigint OR last_used_at_ms < $1::bigint - ${SESSION_IDLE_MS}`,
  },
  { table: 'email_changes', key: 'account_id', over: 'expires_at_ms < $1::bigint' },
  { table: 'ask_counts', key: 'asked', over: `from_ms < $1::bigint - ${DAY_MS}` },
]

/**
 * Links, sessions and changes of addresses that are over; what was done with them is in the audit log. Answers how many
 * rows went in the table where most did.
 */
export async function deleteEndedSignIns(sql: Sql, wallMs: InstantMs, limit: number): Promise<number> {
  let most = 0
  for (const { table, key, over } of enders) {
    const gone = await sql.query(
      `DELETE FROM ${table} WHERE ctid = ANY (ARRAY(SELECT ctid FROM ${table} WHERE ${over} LIMIT $2)) RETURNING ${key}`,
      [wallMs, limit],
    )
    most = Math.max(most, gone.length)
  }
  return most
}
