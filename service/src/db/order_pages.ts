import type { OrderId } from '../domain/orders/identifiers.ts'
import { type Order, type OrderStatus, orderStatuses } from '../domain/orders/order.ts'
import type { InstantMs } from '../domain/time.ts'
import type { Sql } from './database.ts'
import { DEPOSITS_OF_O, type DepositJson, depositsFromJson } from './deposits.ts'
import { type OrderRow, toOrder } from './orders.ts'

type Filter = {
  readonly statuses: readonly OrderStatus[] | null
  readonly createdFromMs: InstantMs | null
  readonly createdBeforeMs: InstantMs | null
  readonly updatedFromMs: InstantMs | null
}

type Position = { readonly createdAtMs: InstantMs; readonly orderId: OrderId }

/** After every order there can be. */
const END_OF_TIME: Position = { createdAtMs: Number.MAX_SAFE_INTEGER, orderId: '' }

/**
 * An account's orders that fit the filter, the newest first, from the first that comes after the position on. What they
 * are ordered by never changes, so an order that was there when somebody began to turn pages is met once, whatever is
 * created meanwhile. No parameter is ever null: so the one plan that PostgreSQL keeps finds the page by its index.
 */
export async function findOrderPage(
  sql: Sql,
  accountId: string,
  filter: Filter,
  after: Position | null,
  limit: number,
): Promise<readonly Order[]> {
  const { createdAtMs, orderId } = earlier(after, filter.createdBeforeMs)
  const rows = await sql.query<OrderRow & { deposits: DepositJson[] | null }>(
    `SELECT o.*, ${DEPOSITS_OF_O} AS deposits FROM orders AS o
     WHERE account_id = $1 AND (created_at_ms, order_id) < ($2, $3) AND created_at_ms >= $4
       AND status = ANY ($5) AND updated_at_ms >= $6
     ORDER BY created_at_ms DESC, order_id DESC LIMIT $7`,
    [
      accountId,
      createdAtMs,
      orderId,
      filter.createdFromMs ?? 0,
      filter.statuses ?? orderStatuses,
      filter.updatedFromMs ?? 0,
      limit,
    ],
  )
  return rows.map((row) => toOrder(row, depositsFromJson(row.deposits)))
}

/** No id is smaller than an empty one: with it, a time is the place before everything that was created then. */
function earlier(after: Position | null, beforeMs: InstantMs | null): Position {
  const before = beforeMs === null ? END_OF_TIME : { createdAtMs: beforeMs, orderId: '' }
  return after === null || before.createdAtMs <= after.createdAtMs ? before : after
}
