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

/** $1 account, $2 and $3 position, $4 created from, $5 updated from, $6 limit. */
const FITS =
  'account_id = $1 AND (created_at_ms, order_id) < ($2, $3) AND created_at_ms >= $4 AND updated_at_ms >= $5'
const PAGE = 'ORDER BY created_at_ms DESC, order_id DESC LIMIT $6'
const pageOf = (orders: string) => `SELECT o.*, ${DEPOSITS_OF_O} AS deposits FROM ${orders} ${PAGE}`

const OF_ALL = pageOf(`orders AS o WHERE ${FITS}`)
/** $7 statuses, each once. A page of each, and of those the newest: a walk through all would read the whole past for a rare one. */
const OF_STATUSES = pageOf(
  `unnest($7::text[]) AS wanted (status)
   CROSS JOIN LATERAL (SELECT * FROM orders WHERE ${FITS} AND status = wanted.status ${PAGE}) AS o`,
)
/** $7 statuses, $8 and $9 orders. */
const OF_CHANGED = pageOf(
  `unnest($8::smallint[], $9::text[]) AS changed (bucket, order_id) JOIN orders AS o USING (bucket, order_id)
   WHERE ${FITS} AND status = ANY ($7)`,
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
  const changed =
    filter.updatedFromMs === null ? null : await findFewChanged(sql, accountId, filter.updatedFromMs)
  const [text, values] = questionOf(filter, changed)
  const { createdAtMs, orderId } = earlier(after, filter.createdBeforeMs)
  const place = [accountId, createdAtMs, orderId, filter.createdFromMs ?? 0, filter.updatedFromMs ?? 0, limit]
  const rows = await sql.query<Row>(text, [...place, ...values])
  return rows.map((row) => toOrder(row, depositsFromJson(row.deposits)))
}

/** The statement, and its values from $7 on. */
function questionOf(
  { statuses }: Filter,
  changed: readonly OrderId[] | null,
): readonly [string, readonly unknown[]] {
  if (changed !== null) {
    const ids = [arrayText(changed, bucketOf), arrayText(changed, (id) => id)]
    return [OF_CHANGED, [statuses ?? orderStatuses, ...ids]]
  }
  return statuses === null ? [OF_ALL, []] : [OF_STATUSES, [[...new Set(statuses)]]]
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
