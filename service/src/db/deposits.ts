import type { AssetId } from '../domain/catalog/assets.ts'
import { assetOf } from '../domain/catalog/assets.ts'
import type { ChainId } from '../domain/catalog/networks.ts'
import { type Amount, amountOf } from '../domain/money/amount.ts'
import { bucketOf, type OrderId } from '../domain/orders/identifiers.ts'
import type { Deposit, DepositRole, Order } from '../domain/orders/order.ts'
import type { Sql } from './database.ts'
import { sweptOfU } from './unswept.ts'

type DepositRow = {
  deposit_key: string
  tx_hash: string
  asset: AssetId
  units: bigint
  role: DepositRole
  is_late: boolean
  state: Deposit['state']
  seen_at_ms: number
  block_height: number | null
  block_hash: string | null
}

/** Every deposit of an order, the earliest first. */
export async function depositsOf(sql: Sql, orderId: OrderId): Promise<readonly Deposit[]> {
  const rows = await sql.query<DepositRow>(
    'SELECT * FROM deposits WHERE bucket = $1 AND order_id = $2 ORDER BY seen_at_ms, deposit_key',
    [bucketOf(orderId), orderId],
  )
  return rows.map(toDeposit)
}

/**
 * Of each order that has any: how many deposits are in another block or in none, and the keys of those that are to be told by themselves again,
 * because they are in this one or count.
 */
export async function readTold(
  sql: Sql,
  orderIds: readonly OrderId[],
  blockHash: string,
): Promise<ReadonlyMap<OrderId, { readonly elsewhere: number; readonly kept: ReadonlySet<string> }>> {
  if (orderIds.length === 0) return new Map()
  const rows = await sql.query<{ order_id: string; elsewhere: number; kept: string[] }>(
    `SELECT order_id, count(*) FILTER (WHERE block_hash IS DISTINCT FROM $3)::int AS elsewhere,
       coalesce(array_agg(deposit_key ORDER BY deposit_key) FILTER (WHERE block_hash = $3 OR role = 'counted'), '{}') AS kept
     FROM deposits JOIN unnest($1::smallint[], $2::text[]) AS asked (bucket, order_id) USING (bucket, order_id)
     GROUP BY order_id`,
    [orderIds.map(bucketOf), orderIds, blockHash],
  )
  return new Map(rows.map(({ order_id, elsewhere, kept }) => [order_id, { elsewhere, kept: new Set(kept) }]))
}

/** What an order knows of its deposits, without reading each. */
export type KnownDeposits = {
  /** How many are in no block: they wait to be mined, or have vanished. */
  readonly unmined: number
  /** How many are in a block or wait to be. */
  readonly present: number
  /** Those of them that are no dust. */
  readonly presentOfValue: number
  /** Those that were asked about and that it knows. */
  readonly keys: ReadonlySet<string>
}

export const NONE_KNOWN: KnownDeposits = { unmined: 0, present: 0, presentOfValue: 0, keys: new Set() }

/** Of each order that has any deposits; `keys` are of whatever orders. */
export async function readKnownDeposits(
  sql: Sql,
  orderIds: readonly OrderId[],
  keys: readonly string[],
): Promise<ReadonlyMap<OrderId, KnownDeposits>> {
  if (orderIds.length === 0) return new Map()
  const rows = await sql.query<Omit<KnownDeposits, 'keys'> & { order_id: string; keys: string[] }>(
    `SELECT order_id, count(*) FILTER (WHERE block_hash IS NULL)::int AS unmined,
       count(*) FILTER (WHERE state <> 'vanished')::int AS present,
       count(*) FILTER (WHERE state <> 'vanished' AND role <> 'dust')::int AS "presentOfValue",
       coalesce(array_agg(deposit_key ORDER BY deposit_key) FILTER (WHERE deposit_key = ANY($3)), '{}') AS keys
     FROM deposits JOIN unnest($1::smallint[], $2::text[]) AS asked (bucket, order_id) USING (bucket, order_id)
     GROUP BY order_id`,
    [orderIds.map(bucketOf), orderIds, keys],
  )
  return new Map(rows.map(({ order_id, keys, ...counts }) => [order_id, { ...counts, keys: new Set(keys) }]))
}

/** Deposits that pay an order whole, each by itself. */
export type WholePayments = {
  /** From so much on, in what the order asks for. */
  readonly least: Amount
  /** How many are in no block. */
  readonly unmined: number
}

/** Of each of these orders. */
export async function readWholePayments(
  sql: Sql,
  orderIds: readonly OrderId[],
): Promise<ReadonlyMap<OrderId, WholePayments>> {
  if (orderIds.length === 0) return new Map()
  const rows = await sql.query<{ order_id: string; asset: AssetId; least: bigint; unmined: number }>(
    `SELECT o.order_id, o.from_asset AS asset, o.asks - o.tolerance AS least,
       (SELECT count(*)::int FROM deposits AS d
        WHERE d.bucket = o.bucket AND d.order_id = o.order_id AND d.block_hash IS NULL AND d.asset = o.from_asset
          AND d.units >= o.asks - o.tolerance) AS unmined
     FROM orders AS o JOIN unnest($1::smallint[], $2::text[]) AS asked (bucket, order_id) USING (bucket, order_id)`,
    [orderIds.map(bucketOf), orderIds],
  )
  return new Map(
    rows.map(({ order_id, asset, least, unmined }) => [order_id, { least: amountOf(asset, least), unmined }]),
  )
}

/** As JSON, whose numbers would lose digits of an amount. */
export type DepositJson = Omit<DepositRow, 'units'> & { readonly units: string }

/** In a statement on `orders AS o`: the same as `depositsOf` in the same look; null when there are none. */
export const DEPOSITS_OF_O = `(
  SELECT jsonb_agg(to_jsonb(d) || jsonb_build_object('units', d.units::text) ORDER BY d.seen_at_ms, d.deposit_key)
  FROM deposits AS d WHERE d.bucket = o.bucket AND d.order_id = o.order_id)`

export function depositsFromJson(rows: readonly DepositJson[] | null): readonly Deposit[] {
  return (rows ?? []).map((row) => toDeposit({ ...row, units: BigInt(row.units) }))
}

function toDeposit(row: DepositRow): Deposit {
  return {
    key: row.deposit_key,
    txHash: row.tx_hash,
    amount: amountOf(row.asset, row.units),
    seenAtMs: row.seen_at_ms,
    role: row.role,
    isLate: row.is_late,
    state: row.state,
    block: row.block_hash === null ? null : { height: row.block_height ?? 0, hash: row.block_hash },
  }
}

/** Writes the deposits that differ. An order may have thousands: anybody can send crumbs. */
export async function saveDeposits(tx: Sql, before: Order, after: Order): Promise<void> {
  const unchanged = new Set(before.deposits)
  for (const deposit of after.deposits) {
    if (unchanged.has(deposit)) continue
    await tx.query(
      `INSERT INTO deposits (bucket, order_id, deposit_key, chain, tx_hash, asset, units, role, is_late, state,
         seen_at_ms, block_height, block_hash)
       VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
       ON CONFLICT (bucket, order_id, deposit_key) DO UPDATE SET asset = excluded.asset, units = excluded.units,
         role = excluded.role, is_late = excluded.is_late, state = excluded.state, block_height = excluded.block_height,
         block_hash = excluded.block_hash`,
      [
        bucketOf(after.terms.id),
        after.terms.id,
        deposit.key,
        assetOf(deposit.amount.asset).chain,
        deposit.txHash,
        deposit.amount.asset,
        deposit.amount.units,
        deposit.role,
        deposit.isLate,
        deposit.state,
        deposit.seenAtMs,
        deposit.block?.height ?? null,
        deposit.block?.hash ?? null,
      ],
    )
  }
}

export type WatchedDeposit = {
  readonly orderId: OrderId
  readonly key: string
  readonly txHash: string
  readonly seenAtMs: number
  readonly blockHash: string | null
}

function toWatched(row: {
  order_id: string
  deposit_key: string
  tx_hash: string
  seen_at_ms: number
  block_hash: string | null
}): WatchedDeposit {
  return {
    orderId: row.order_id,
    key: row.deposit_key,
    txHash: row.tx_hash,
    seenAtMs: row.seen_at_ms,
    blockHash: row.block_hash,
  }
}

const WATCHED = 'd.order_id, d.deposit_key, d.tx_hash, d.seen_at_ms, d.block_hash'

/** Mined deposits that are as deep as their order asks, with confirmations counted up to `height`. */
export async function findDeepDeposits(sql: Sql, chain: ChainId, height: number): Promise<WatchedDeposit[]> {
  const rows = await sql.query<Parameters<typeof toWatched>[0]>(
    `SELECT ${WATCHED} FROM deposits d JOIN orders o USING (bucket, order_id)
     WHERE d.chain = $1 AND d.state = 'mined' AND d.block_height <= $2 + 1 - o.required_confirmations
     ORDER BY d.block_height`,
    [chain, height],
  )
  return rows.map(toWatched)
}

/**
 * Deposits that were seen and are in no block: those of the `transactionsMax` transactions whose hashes come next after
 * `afterTxHash`, beginning again at the end.
 */
export async function findWaitingDeposits(
  sql: Sql,
  chain: ChainId,
  afterTxHash: string,
  transactionsMax: number,
): Promise<WatchedDeposit[]> {
  const rows = await sql.query<Parameters<typeof toWatched>[0]>(
    `WITH turn AS (
       SELECT tx_hash FROM deposits WHERE chain = $1 AND state = 'seen'
       GROUP BY tx_hash ORDER BY tx_hash <= $2, tx_hash LIMIT $3)
     SELECT ${WATCHED} FROM deposits d JOIN turn ON turn.tx_hash = d.tx_hash
     WHERE d.chain = $1 AND d.state = 'seen'
     ORDER BY d.tx_hash <= $2, d.tx_hash, d.deposit_key, d.order_id`,
    [chain, afterTxHash, transactionsMax],
  )
  return rows.map(toWatched)
}

/**
 * Deposits of these assets that are booked and still their customers' (the ledger's `customer_deposits`): they will be
 * exchanged or go back, out of the reserve in either case. An order that has expired, or is about to, has any only while it waits
 * for another one that came late and is in a block, so it is found by that one, and not among all that have ever expired. Where deposits
 * lie on addresses of their own, it is no more than sweeps have taken away or are taking, because the reserve does not have the rest. Where
 * they lie as coins, those up to `spendableHeight` are theirs already, though large ones are booked some blocks later.
 */
export async function sumCustomerDeposits(
  sql: Sql,
  chain: ChainId,
  assets: readonly AssetId[],
  spendableHeight: number | null,
): Promise<ReadonlyMap<AssetId, bigint>> {
  const rows = await sql.query<{ asset: AssetId; units: bigint }>(
    `WITH open AS (
       SELECT bucket, order_id, deposit_address FROM orders
       WHERE status IN ('PENDING', 'EMERGENCY') AND from_asset = ANY($2)
       UNION ALL
       SELECT bucket, order_id, deposit_address FROM orders
       WHERE status = 'EXCHANGE' AND payout_id IS NULL AND from_asset = ANY($2)
       UNION ALL
       SELECT bucket, order_id, deposit_address
       FROM (SELECT DISTINCT bucket, order_id FROM deposits
             WHERE chain = $1 AND state = 'mined' AND role = 'counted' AND is_late) AS waiting
         JOIN orders USING (bucket, order_id)
       WHERE status IN ('NEW', 'EXPIRED') AND from_asset = ANY($2)
     ), booked AS (
       SELECT o.deposit_address, d.asset, sum(d.units) AS units FROM open o JOIN deposits d USING (bucket, order_id)
       WHERE d.role = 'counted' AND (d.state = 'confirmed' OR d.state = 'mined' AND d.block_height <= $3)
       GROUP BY bucket, order_id, o.deposit_address, d.asset)
     SELECT booked.asset, sum(CASE WHEN u.address IS NULL THEN booked.units
       ELSE least(booked.units, ${sweptOfU('booked.asset')}) END)::numeric(78,0) AS units
     FROM booked LEFT JOIN unswept_addresses u ON u.chain = $1 AND u.address = booked.deposit_address
     GROUP BY booked.asset`,
    [chain, assets, spendableHeight],
  )
  return new Map(rows.map(({ asset, units }) => [asset, units]))
}

/** Deposits in a block that is no longer on the best chain. */
export async function findDepositsInBlock(
  sql: Sql,
  chain: ChainId,
  blockHash: string,
): Promise<WatchedDeposit[]> {
  const rows = await sql.query<Parameters<typeof toWatched>[0]>(
    `SELECT ${WATCHED} FROM deposits d WHERE d.chain = $1 AND d.block_hash = $2`,
    [chain, blockHash],
  )
  return rows.map(toWatched)
}
