import { isChainId } from '../domain/catalog/networks.ts'
import { BUCKETS, bucketOf, isOrderId, readPayoutId } from '../domain/orders/identifiers.ts'
import type { Sql } from './database.ts'
import { bucketOfPayout } from './outflows.ts'

/** Whether an order, a deposit, an outflow or what an operator has closed goes by just this name. */
export async function isKnownName(sql: Sql, name: string): Promise<boolean> {
  const [chain = ''] = name.split(':')
  const [row] = await sql.query<{ is_known: boolean }>(
    `SELECT EXISTS (SELECT FROM operator_words WHERE about = $1)
       OR EXISTS (SELECT FROM orders WHERE bucket = $2 AND order_id = $1)
       OR EXISTS (SELECT FROM outflows WHERE bucket = $3 AND payout_id = $1)
       OR EXISTS (SELECT FROM house_deposits WHERE chain = $4 AND deposit_key = $1)
       OR EXISTS (SELECT FROM deposits WHERE bucket = ANY ($5) AND deposit_key = $1) AS is_known`,
    [
      name,
      isOrderId(name) ? bucketOf(name) : null,
      mayBeOutflow(name) ? bucketOfPayout(name) : null,
      chain,
      isChainId(chain) ? ALL_BUCKETS : [],
    ],
  )
  return row?.is_known === true
}

const ALL_BUCKETS = Array.from({ length: BUCKETS }, (_, bucket) => bucket)

/** Those of orders lie in the bucket of theirs, all others in that of the house. */
function mayBeOutflow(name: string): boolean {
  return !name.startsWith('CB') || isOrderId(readPayoutId(name).orderId)
}

/** What was closed under a name that has this in it, or is in this, in whatever letter case; a few of them. */
export async function closedNamesLike(sql: Sql, text: string): Promise<readonly string[]> {
  const rows = await sql.query<{ about: string }>(
    `SELECT DISTINCT about FROM operator_words
     WHERE act IN ('closed_unclaimed', 'closed_owed')
       AND (strpos(lower(about), lower($1)) > 0 OR strpos(lower($1), lower(about)) > 0)
     ORDER BY about LIMIT 5`,
    [text],
  )
  return rows.map(({ about }) => about)
}
