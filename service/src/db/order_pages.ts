import { bucketOf, type OrderId } from '../domain/orders/identifiers.ts'
import { type Order, type OrderStatus, orderStatuses } from '../domain/orders/order.ts'
import type { InstantMs } from '../domain/time.ts'
import { arrayText } from './array_text.ts'
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

/** $1 account, $2 and $3 position, $4 created from, $5 statuses, $6 updated from, $7 limit. */
const pageOf = (orders: string) => `
  SELECT o.*, ${DEPOSITS_OF_O} AS deposits FROM ${orders}
  WHERE account_id = $1 AND (created_at_ms, order_id) < ($2, $3) AND created_at_ms >= $4
    AND status = ANY ($5) AND updated_at_ms >= $6
  ORDER BY created_at_ms DESC, order_id DESC LIMIT $7`

const OF_ALL = pageOf('orders AS o')
const OF_CHANGED = pageOf(
  'unnest($8::smallint[], $9::text[]) AS changed (bucket, order_id) JOIN orders AS o USING (bucket, order_id)',
)

/**
 * An account's orders that fit the filter, the newest first, from the first that comes after the position on. What they
 * are ordered by never changes, so an order that was there when somebody began to turn pages is met once, whatever is
 * created meanwhile. No parameter is ever null: so the one plan that PostgreSQL keeps finds the page by its index.
 *
 * Whoever follows changes asks again and again for few of many: those are found without a walk through all that the account
 * ever had.
 */
export async function findOrderPage(
  sql: Sql,
  accountId: string,
  filter: Filter,
  after: Position | null,
  limit: number,
): Promise<readonly Order[]> {
  const { createdAtMs, orderId } = earlier(after, filter.createdBeforeMs)
  const statuses = filter.statuses ?? orderStatuses
  const updatedFromMs = filter.updatedFromMs ?? 0
  const values = [accountId, createdAtMs, orderId, filter.createdFromMs ?? 0, statuses, updatedFromMs, limit]
  const changed = filter.updatedFromMs === null ? null : await findFewChanged(sql, accountId, updatedFromMs)
  const rows =
    changed === null
      ? await sql.query<Row>(OF_ALL, values)
      : await sql.query<Row>(OF_CHANGED, [
          ...values,
          arrayText(changed, bucketOf),
          arrayText(changed, (id) => id),
        ])
  return rows.map((row) => toOrder(row, depositsFromJson(row.deposits)))
}

/** Where more have changed, walking back from the newest soon meets enough of them. */
const FEW_MAX = 1_000

async function findFewChanged(sql: Sql, accountId: string, fromMs: InstantMs): Promise<OrderId[] | null> {
  // In order, because of what need not be PostgreSQL would rather read the whole table than an index.
  const rows = await sql.query<{ order_id: OrderId }>(
    `SELECT order_id FROM orders WHERE account_id = $1 AND updated_at_ms >= $2
     ORDER BY updated_at_ms DESC LIMIT ${FEW_MAX + 1}`,
    [accountId, fromMs],
  )
  return rows.length > FEW_MAX ? null : rows.map(({ order_id }) => order_id)
}

/** No id is smaller than an empty one: with it, a time is the place before everything that was created then. */
function earlier(after: Position | null, beforeMs: InstantMs | null): Position {
  const before = beforeMs === null ? END_OF_TIME : { createdAtMs: beforeMs, orderId: '' }
  return after === null || before.createdAtMs <= after.createdAtMs ? before : after
}
