import type { AssetId } from '../domain/catalog/assets.ts'
import type { LedgerAccount } from '../domain/ledger/accounts.ts'
import { bucketOf, type OrderId } from '../domain/orders/identifiers.ts'
import type { Order } from '../domain/orders/order.ts'
import { DEPOSIT_ENTRY } from './books.ts'
import type { Sql } from './database.ts'
import { DEPOSITS_OF_O, type DepositJson, depositsFromJson } from './deposits.ts'
import { type OrderRow, toOrder } from './order_row.ts'

/** An order, and what the journal says of it at the same moment. */
export type BookedOrder = {
  readonly order: Order
  /** Units of an asset that the wallet got for a deposit, net. */
  booked(depositKey: string, asset: AssetId): bigint
  /** Credits less debits of the account that was asked about. */
  readonly owed: bigint
}

/** Of `owes`: what of an asset stands in an account that says what an order is to be paid. Null: there is no such order. */
export async function findBookedOrder(
  sql: Sql,
  orderId: OrderId,
  owes: { readonly account: LedgerAccount; readonly asset: AssetId },
): Promise<BookedOrder | null> {
  const [row] = await sql.query<BookedRow>(
    // Materialised, so that they are found by their owner: what filters them would else have the index of the whole wallet read.
    `WITH entries AS MATERIALIZED (
       SELECT entry_key, asset, debit, credit, units FROM journal WHERE bucket = $1 AND owner = $2)
     SELECT o.*,
       (SELECT jsonb_agg(jsonb_build_object('key', key, 'asset', asset, 'units', units::text) ORDER BY key, asset) FROM (
          SELECT regexp_replace(entry_key, '${DEPOSIT_ENTRY}', '') AS key, asset,
            sum(CASE WHEN debit = 'wallet' THEN units ELSE -units END) AS units
          FROM entries WHERE entry_key ~ '${DEPOSIT_ENTRY}' AND (debit = 'wallet' OR credit = 'wallet') GROUP BY 1, 2
        ) AS by_deposit) AS booked,
       (SELECT coalesce(sum(CASE WHEN credit = $3 THEN units ELSE -units END), 0)::numeric(78,0)
          FROM entries WHERE asset = $4 AND (debit = $3 OR credit = $3)) AS owed,
       ${DEPOSITS_OF_O} AS deposits FROM orders AS o WHERE o.bucket = $1 AND o.order_id = $2`,
    [bucketOf(orderId), orderId, owes.account, owes.asset],
  )
  if (row === undefined) return null
  const { owed } = row
  const units = new Map(row.booked?.map((one) => [`${one.key} ${one.asset}`, BigInt(one.units)]))
  return {
    order: toOrder(row, depositsFromJson(row.deposits)),
    booked: (key, asset) => units.get(`${key} ${asset}`) ?? 0n,
    owed,
  }
}

type BookedRow = OrderRow & {
  readonly deposits: DepositJson[] | null
  /** As JSON, whose numbers would lose digits of an amount. */
  readonly booked: { readonly key: string; readonly asset: string; readonly units: string }[] | null
  readonly owed: bigint
}
