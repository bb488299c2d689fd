import type { OrderId } from '../domain/orders/identifiers.ts'
import { type Order, type OrderStatus, orderStatuses } from '../domain/orders/order.ts'
import type { InstantMs } from '../domain/time.ts'
import type { Sql } from './database.ts'
import { DEPOSITS_OF_O, type DepositJson, depositsFromJson } from './deposits.ts'
import { type OrderRow, toOrder } from './order_row.ts'

type Filter = {
  readonly statuses: readonly OrderStatus[] | null
  readonly createdFromMs: InstantMs | null
  readonly createdBeforeMs: InstantMs | null
  readonly updatedFromMs: InstantMs | null
}

type Position = { readonly createdAtMs: InstantMs; readonly orderId: OrderId }

/** After every order there can be. */
const END_OF_TIME: Position = { createdAtMs: Number.MAX_SAFE_INTEGER, orderId: '' }

type Row = OrderRow & { deposits: DepositJson[] | null }

/** $1 account, $2 and $3 position, $4 created from. */
const LISTED = 'account_id = $1 AND (created_at_ms, order_id) < ($2, $3) AND created_at_ms >= $4'
/** $5 limit. */
const PAGE = 'ORDER BY created_at_ms DESC, order_id DESC LIMIT $5'
const pageOf = (orders: string) => `SELECT o.*, ${DEPOSITS_OF_O} AS deposits FROM ${orders} ${PAGE}`

const OF_ALL = pageOf(`orders AS o WHERE ${LISTED}`)
/** $6 statuses, each once. A page of each, and of those the newest: a walk through all would read the whole past for a rare one. */
const OF_STATUSES = pageOf(
  `unnest($6::text[]) AS wanted (status)
   CROSS JOIN LATERAL (SELECT * FROM orders WHERE ${LISTED} AND status = wanted.status ${PAGE}) AS o`,
)
/**
 * $6 statuses, $7 updated from, which nothing here was created after. `changed` is read apart and by `updated_at_ms`, because on the
 * way to a page in its order PostgreSQL would rather walk through all that is older; and only if anything is. The end of time leaves
 * nothing out: between two times the plan that is kept expects few, as there are, and takes the index for them.
 */
const OF_CHANGED = `
  WITH changed AS MATERIALIZED (
    SELECT created_at_ms, order_id FROM orders
    WHERE ${LISTED} AND updated_at_ms BETWEEN $7 AND ${END_OF_TIME.createdAtMs}
      AND (SELECT order_id FROM orders WHERE ${LISTED} ORDER BY created_at_ms DESC, order_id DESC LIMIT 1) IS NOT NULL
    ORDER BY updated_at_ms)
  SELECT o.*, ${DEPOSITS_OF_O} AS deposits
  FROM (SELECT * FROM changed ORDER BY created_at_ms DESC, order_id DESC) AS c
    CROSS JOIN LATERAL (
      SELECT * FROM orders
      WHERE bucket = right(c.order_id, 2)::smallint AND order_id = c.order_id AND status = ANY ($6) OFFSET 0) AS o
  ORDER BY c.created_at_ms DESC, c.order_id DESC LIMIT $5`

/**
 * An account's orders that fit the filter, the newest first, from the first that comes after the position on. What they
 * are ordered by never changes, so an order that was there when somebody began to turn pages is met once, whatever is
 * created meanwhile. No parameter is ever null: so the one plan that PostgreSQL keeps finds the page by its index.
 *
 * No order changes before it is created, so all that were created since a time have changed since, and a page of them costs what a
 * page costs. The older ones that have changed, those that lived at that time, come after them. They are picked out of the index of what
 * has changed since the time: a page of them costs an entry of it for each change since, and a row for each that is found, however
 * many there are that have not changed.
 */
export async function findOrderPage(
  sql: Sql,
  accountId: string,
  filter: Filter,
  after: Position | null,
  limit: number,
): Promise<readonly Order[]> {
  const { statuses, updatedFromMs } = filter
  const before = earlier(after, filter.createdBeforeMs)
  const createdFromMs = filter.createdFromMs ?? 0
  const read = async (text: string, before: Position, fromMs: InstantMs, count: number, more: unknown[]) => {
    const values = [accountId, before.createdAtMs, before.orderId, fromMs, count, ...more]
    const rows = await sql.query<Row>(text, values)
    return rows.map((row) => toOrder(row, depositsFromJson(row.deposits)))
  }
  const listed = (fromMs: InstantMs) =>
    statuses === null
      ? read(OF_ALL, before, fromMs, limit, [])
      : read(OF_STATUSES, before, fromMs, limit, [[...new Set(statuses)]])
  if (updatedFromMs === null || updatedFromMs <= createdFromMs) return listed(createdFromMs)
  const young = await listed(updatedFromMs)
  if (young.length === limit) return young
  const changed = [statuses ?? orderStatuses, updatedFromMs]
  const end = earlier(before, updatedFromMs)
  return [...young, ...(await read(OF_CHANGED, end, createdFromMs, limit - young.length, changed))]
}

/** No id is smaller than an empty one: with it, a time is the place before everything that was created then. */
function earlier(after: Position | null, beforeMs: InstantMs | null): Position {
  const before = beforeMs === null ? END_OF_TIME : { createdAtMs: beforeMs, orderId: '' }
  return after === null || before.createdAtMs <= after.createdAtMs ? before : after
}
