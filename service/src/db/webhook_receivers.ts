import type { InstantMs } from '../domain/time.ts'
import type { Sql } from './database.ts'

/** The receiver that is the order's own `callback_url`; every other one is an endpoint. */
export const CALLBACK = 'callback'

export type Endpoint = { readonly endpointId: string; readonly accountId: string; readonly url: string }

/**
 * As SQL: whether anything is told to the receiver that `column` names. To an order's `callback_url` always, because its owner asks
 * for it.
 */
export function isEnabled(column: string): string {
  return `(${column} = '${CALLBACK}' OR EXISTS (
    SELECT 1 FROM webhook_endpoints e WHERE e.endpoint_id = ${column} AND e.disabled_at_ms IS NULL))`
}

/** Whether anything would be told to it: what `isEnabled` says. */
export async function isReceiverEnabled(sql: Sql, receiver: string): Promise<boolean> {
  const rows = await sql.query(`SELECT 1 AS one WHERE ${isEnabled('$1::text')}`, [receiver])
  return rows.length > 0
}

/**
 * Whose deliveries are written down: of what an endpoint misses that answered 410, too. They end as cancelled when they are
 * claimed, and are there to be delivered again once its owner has mended it.
 */
export function findLoggedEndpoints(sql: Sql, accountIds: readonly string[]): Promise<Endpoint[]> {
  return sql.query<Endpoint>(
    `SELECT endpoint_id AS "endpointId", account_id AS "accountId", url FROM webhook_endpoints
     WHERE account_id = ANY($1) AND disabled_by IS DISTINCT FROM 'owner'`,
    [accountIds],
  )
}

/** By its own word (410) the endpoint wants no more of any order. False: it is disabled already, or gone. */
export async function disableGoneEndpoint(tx: Sql, endpointId: string, wallMs: InstantMs): Promise<boolean> {
  const disabled = await tx.query(
    `UPDATE webhook_endpoints SET disabled_at_ms = $2, disabled_by = 'receiver'
     WHERE endpoint_id = $1 AND disabled_at_ms IS NULL RETURNING endpoint_id`,
    [endpointId, wallMs],
  )
  return disabled.length > 0
}
