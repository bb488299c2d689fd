import type { Sql } from './database.ts'

const PREFIX = 'cambist '

/** What the connections of a process of the service are called; the server shows it to everybody. */
export function connectionName(roles: readonly string[]): string {
  return `${PREFIX}${roles.join(',')}`
}

/** Of a connection to this database, by the name that it has at the server. */
export type ConnectedRoles = { readonly serverPid: number; readonly roles: readonly string[] }

/**
 * Processes that are connected now, but for whoever asks. None is no proof that none runs: one may be between two connections, a URL
 * may give them another name, and so may what stands between.
 */
export async function readConnectedRoles(sql: Sql): Promise<readonly ConnectedRoles[]> {
  const rows = await sql.query<{ pid: number; name: string }>(
    `SELECT pid, application_name AS name FROM pg_stat_activity
     WHERE datname = current_database() AND starts_with(application_name, $1)
       AND pid <> pg_backend_pid() ORDER BY backend_start`,
    [PREFIX],
  )
  return rows.map(({ pid, name }) => ({ serverPid: pid, roles: name.slice(PREFIX.length).split(',') }))
}
