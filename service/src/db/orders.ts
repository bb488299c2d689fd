import { assert } from '../domain/assert.ts'
import type { Asset } from '../domain/catalog/assets.ts'
import type { ChainId } from '../domain/catalog/networks.ts'
import { showRate } from '../domain/money/rate.ts'
import { isAboutDeposits } from '../domain/orders/emergency.ts'
import { bucketOf, type OrderId, SHORT_ID_DIGITS } from '../domain/orders/identifiers.ts'
import { emergencyReasons, finishedStatuses, type Order } from '../domain/orders/order.ts'
import type { SealedTerms } from '../domain/orders/seal.ts'
import type { InstantMs } from '../domain/time.ts'
import { arrayText } from './array_text.ts'
import { isTime, sinceOf } from './clocks_set_back.ts'
import type { Sql } from './database.ts'
import { DEPOSITS_OF_O, type DepositJson, depositsFromJson, depositsOf, saveDeposits } from './deposits.ts'
import { keptText } from './kept_text.ts'
import { type OrderRow, toOrder } from './order_row.ts'
import { textList } from './text_list.ts'

export const FINISHED = textList(finishedStatuses)

/** The order as it is; for looking only. */
export async function findOrder(sql: Sql, orderId: OrderId): Promise<Order | null> {
  const found = await findOrders(sql, [orderId])
  return found.get(orderId)?.order ?? null
}

/** An order, and the version of its row that said so. */
export type VersionedOrder = { readonly order: Order; readonly version: string }

/**
 * In a statement on `orders AS o`: another one after every change of the order or its deposits, for whoever writes
 * deposits writes the order too (`saveOrder`). `xmin` is the transaction that wrote the row
 * (https://www.postgresql.org/docs/current/ddl-system-columns.html); a server that takes over from one whose last
 * transactions are lost gives their numbers again, so the time of the change stands beside it.
 */
const VERSION_OF_O = `o.xmin::text || '@' || o.updated_at_ms`

const ASKED_AND_O = `unnest($1::smallint[], $2::text[]) AS asked (bucket, order_id)
  JOIN orders AS o USING (bucket, order_id)`

/** Those of the orders that there are, each with its deposits as of the same moment. */
export async function findOrders(
  sql: Sql,
  orderIds: readonly OrderId[],
): Promise<ReadonlyMap<OrderId, VersionedOrder>> {
  const rows = await sql.query<OrderRow & { version: string; deposits: DepositJson[] | null }>(
    `SELECT o.*, ${VERSION_OF_O} AS version, ${DEPOSITS_OF_O} AS deposits FROM ${ASKED_AND_O}`,
    keysOf(orderIds),
  )
  return new Map(
    rows.map((row) => {
      const order = toOrder(row, depositsFromJson(row.deposits))
      return [row.order_id, { order, version: row.version }]
    }),
  )
}

/** The version that each of the orders is at now, in their order; null where there is none. In one row: it is cheaper. */
export async function findVersions(
  sql: Sql,
  orderIds: readonly OrderId[],
): Promise<readonly (string | null)[]> {
  const [row] = await sql.query<{ versions: string }>(
    `SELECT string_agg(coalesce(${VERSION_OF_O}, ''), ',' ORDER BY n) AS versions
     FROM unnest($1::smallint[], $2::text[]) WITH ORDINALITY AS asked (bucket, order_id, n)
     LEFT JOIN orders AS o USING (bucket, order_id)`,
    keysOf(orderIds),
  )
  return (row?.versions ?? '').split(',').map((version) => (version === '' ? null : version))
}

function keysOf(orderIds: readonly OrderId[]): readonly string[] {
  return [arrayText(orderIds, bucketOf), arrayText(orderIds, (orderId) => orderId)]
}

/** The row of an order that nobody else changes before the transaction ends. */
export type LockedRow = OrderRow

/** Keeps everybody else from changing the order until the transaction ends. Null: there is none. */
export async function lockOrder(tx: Sql, orderId: OrderId): Promise<LockedRow | null> {
  const [row] = await tx.query<OrderRow>(
    'SELECT * FROM orders WHERE bucket = $1 AND order_id = $2 FOR UPDATE',
    [bucketOf(orderId), orderId],
  )
  return row ?? null
}

/** Deposits are read after the lock is held: what the statement that waited for it saw of them is from before. */
export async function readLocked(tx: Sql, row: LockedRow): Promise<Order> {
  return toOrder(row, await depositsOf(tx, row.order_id))
}

/** By the hash of its token: whoever has the token and the last 8 digits sees the order, as of one moment. */
export async function findOrderByToken(sql: Sql, shortId: string, tokenHash: Buffer): Promise<Order | null> {
  const [row] = await sql.query<OrderRow & { deposits: DepositJson[] | null }>(
    `SELECT o.*, ${DEPOSITS_OF_O} AS deposits FROM orders AS o
     WHERE bucket = $1 AND right(order_id, ${SHORT_ID_DIGITS}) = $2 AND token_hash = $3`,
    [bucketOf(shortId), shortId, tokenHash],
  )
  return row === undefined ? null : toOrder(row, depositsFromJson(row.deposits))
}

export async function findSeal(sql: Sql, orderId: OrderId): Promise<string> {
  const [row] = await sql.query<{ seal: string }>(
    'SELECT seal FROM orders WHERE bucket = $1 AND order_id = $2',
    [bucketOf(orderId), orderId],
  )
  assert(row !== undefined, `order ${orderId} exists`)
  return row.seal
}

/** What was sealed of orders that have not ended, and the seal; those that changed last, `limit` at most. */
export async function findOpenSeals(
  sql: Sql,
  limit: number,
): Promise<readonly { readonly terms: SealedTerms; readonly seal: string }[]> {
  const rows = await sql.query<SealedTerms & { seal: string }>(
    `SELECT order_id AS "orderId", to_asset AS "payoutAsset", destination, destination_tag AS "destinationTag",
       from_asset AS "depositAsset", refund_address AS "refundAddress", seal
     FROM orders WHERE status NOT IN ${FINISHED} ORDER BY updated_at_ms DESC LIMIT $1`,
    [limit],
  )
  return rows.map(({ seal, ...terms }) => ({ terms, seal }))
}

/** Writes what `decide` changed. `engine/apply.ts` is the only caller. */
export async function saveOrder(tx: Sql, before: Order, after: Order): Promise<void> {
  const { terms, state } = after
  const settlement = 'settlement' in state ? state.settlement : null
  const refund = 'refund' in state ? state.refund : null
  await tx.query(
    `UPDATE orders SET status = $3, sequence = $4, updated_at_ms = $5, completed_at_ms = $6, emergency_reasons = $7,
       settled_received = $8, settled_paid = $9, settled_rate = $10, settled_fee = $11, settled_network_fee = $12,
       refund_units = $13, refund_network_fee = $14, refund_address = $15, payout_id = $16, payout_tx_hash = $17,
       outflow_count = $18, is_outflow_committed = $19, failed_payouts_cost = $20, failed_refunds_cost = $21,
       first_emergency_at_ms = $22,
       exchange_due_at_ms = CASE WHEN status = $3 THEN exchange_due_at_ms ELSE 0 END,
       exchange_trouble_since_ms = CASE WHEN status = $3 THEN exchange_trouble_since_ms END
     WHERE bucket = $1 AND order_id = $2`,
    [
      bucketOf(terms.id),
      terms.id,
      state.status,
      after.sequence,
      after.updatedAtMs,
      'completedAtMs' in state ? state.completedAtMs : null,
      state.status === 'EMERGENCY' ? state.reasons : [],
      settlement?.received.units ?? null,
      settlement?.paid.units ?? null,
      settlement === null ? null : showRate(settlement.rate),
      settlement?.fee.units ?? null,
      settlement?.networkFee.units ?? null,
      refund?.amount.units ?? null,
      refund?.networkFee.units ?? null,
      after.refundAddress,
      'payoutId' in state ? state.payoutId : null,
      'txHash' in state ? state.txHash : null,
      after.outflowCount,
      after.isOutflowCommitted,
      after.failedCosts.payouts.units,
      after.failedCosts.refunds.units,
      after.firstEmergencyAtMs,
    ],
  )
  await saveDeposits(tx, before, after)
}

/** From now on an exact transaction of the live outflow is written down; see Order.isOutflowCommitted. */
export async function markOutflowCommitted(tx: Sql, orderId: OrderId): Promise<void> {
  await tx.query('UPDATE orders SET is_outflow_committed = true WHERE bucket = $1 AND order_id = $2', [
    bucketOf(orderId),
    orderId,
  ])
}

/** A refund address that came with an action changes what the signer must obey. */
export async function saveSeal(tx: Sql, orderId: OrderId, seal: string): Promise<void> {
  await tx.query('UPDATE orders SET seal = $3 WHERE bucket = $1 AND order_id = $2', [
    bucketOf(orderId),
    orderId,
    seal,
  ])
}

/**
 * Orders whose time is up. Only where the chain was looked at since, so that a deposit sent in time is never missed
 * because we were not looking.
 */
export async function findExpired(
  sql: Sql,
  assets: readonly Pick<Asset, 'id' | 'chain'>[],
  nowMs: InstantMs,
  limit: number,
) {
  const rows = await sql.query<{ order_id: string; sequence: number }>(
    // Asset by asset: what lapsed on a chain that nobody can look at is not read again and again for the others.
    `SELECT lapsed.* FROM unnest($2::text[], $3::text[]) AS carried (asset, chain)
       JOIN chain_heads USING (chain)
       CROSS JOIN LATERAL (
         SELECT order_id, sequence, expires_at_ms FROM orders
         WHERE status = 'NEW' AND from_asset = carried.asset AND expires_at_ms <= least($1, looked_at_ms)
         ORDER BY expires_at_ms LIMIT $4) AS lapsed
     ORDER BY lapsed.expires_at_ms LIMIT $4`,
    [nowMs, assets.map(({ id }) => id), assets.map(({ chain }) => chain), limit],
  )
  return rows.map(({ order_id, sequence }) => ({ orderId: order_id, sequence }))
}

/** With `changes` behind it: under what key an order is told that it has waited long enough. */
export const AWAITED_KEY = 'awaited:'

const ABOUT_DEPOSITS = emergencyReasons.filter(isAboutDeposits)

/**
 * Orders that have received something and wait for nothing but what lies in a mempool, `awaitedMs` after their expiry: open ones, and
 * such whose customer is asked about nothing but deposits. As above, only where the chain was looked at since, and also since the order
 * changed: in the middle of a look what one block took may be in the next. `changes`, how many facts have changed the order, tells one
 * such wait of it from the next; its times need not, as those who tell it do so by clocks of their own. Each is found until its order was
 * told so by `AWAITED_KEY`, which may change nothing.
 */
export async function findKeptWaiting(
  sql: Sql,
  chains: readonly ChainId[],
  awaitedMs: number,
  nowMs: InstantMs,
  limit: number,
): Promise<readonly { orderId: OrderId; changes: number }[]> {
  const rows = await sql.query<{ order_id: string; changes: number }>(
    `SELECT orders.order_id, changes
     FROM (SELECT DISTINCT bucket, order_id, chain FROM deposits
           WHERE state = 'seen' AND role = 'counted' AND chain = ANY($1)) AS lying
       JOIN orders USING (bucket, order_id)
       JOIN chain_heads USING (chain)
       CROSS JOIN LATERAL (
         SELECT count(*) AS changes FROM facts
         WHERE (facts.bucket, facts.order_id) = (orders.bucket, orders.order_id) AND outcome = 'changed') AS counted
     WHERE (orders.status = 'PENDING' OR orders.status = 'EMERGENCY' AND emergency_reasons <@ $6::text[])
       AND expires_at_ms + $2 <= $3
       AND looked_at_ms >= greatest(expires_at_ms + $2, orders.updated_at_ms)
       AND EXISTS (SELECT FROM deposits AS deep WHERE (deep.bucket, deep.order_id) = (orders.bucket, orders.order_id)
                     AND deep.role = 'counted' AND deep.state = 'confirmed')
       AND NOT EXISTS (SELECT FROM deposits AS mined WHERE (mined.bucket, mined.order_id) = (orders.bucket, orders.order_id)
                         AND mined.role = 'counted' AND mined.state = 'mined')
       AND NOT EXISTS (SELECT FROM facts AS told WHERE (told.bucket, told.order_id) = (orders.bucket, orders.order_id)
                         AND told.fact_key = $5 || changes)
     LIMIT $4`,
    [chains, awaitedMs, nowMs, limit, AWAITED_KEY, ABOUT_DEPOSITS],
  )
  return rows.map(({ order_id, changes }) => ({ orderId: order_id, changes }))
}

export type DueExchange = {
  readonly orderId: OrderId
  readonly sequence: number
  readonly troubleSinceMs: InstantMs | null
}

/** Orders whose exchange is due; several engines may see the same one, and only one fact will count. */
export async function findDueExchanges(sql: Sql, nowMs: InstantMs, limit: number): Promise<DueExchange[]> {
  const rows = await sql.query<{
    order_id: string
    sequence: number
    exchange_trouble_since_ms: number | null
  }>(
    `SELECT order_id, sequence, exchange_trouble_since_ms FROM orders
     WHERE status = 'EXCHANGE' AND payout_id IS NULL AND ${isTime('exchange_due_at_ms', '$1')}
     ORDER BY exchange_due_at_ms LIMIT $2`,
    [nowMs, limit],
  )
  return rows.map((row) => ({
    orderId: row.order_id,
    sequence: row.sequence,
    troubleSinceMs: row.exchange_trouble_since_ms,
  }))
}

const TROUBLE_LENGTH_MAX = 500

/** Why the exchange was given up, in the transaction that does. */
export async function saveExchangeTrouble(tx: Sql, orderId: OrderId, trouble: string): Promise<void> {
  await tx.query('UPDATE orders SET exchange_trouble = $3 WHERE bucket = $1 AND order_id = $2', [
    bucketOf(orderId),
    orderId,
    keptText(trouble, TROUBLE_LENGTH_MAX),
  ])
}

/** The exchange could not be made now: why, and when it is tried again. */
export async function postponeExchange(
  sql: Sql,
  orderId: OrderId,
  trouble: string,
  nowMs: InstantMs,
  dueAtMs: InstantMs,
): Promise<void> {
  await sql.query(
    `UPDATE orders SET exchange_due_at_ms = $4, exchange_trouble = $5,
       exchange_trouble_since_ms = ${sinceOf('exchange_trouble_since_ms', '$3')}
     WHERE bucket = $1 AND order_id = $2 AND status = 'EXCHANGE'`,
    [bucketOf(orderId), orderId, nowMs, dueAtMs, keptText(trouble, TROUBLE_LENGTH_MAX)],
  )
}
