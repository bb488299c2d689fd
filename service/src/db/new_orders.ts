import { assetOf } from '../domain/catalog/assets.ts'
import { type AddressFamily, chainFacts, depositsLie } from '../domain/catalog/networks.ts'
import { showRate } from '../domain/money/rate.ts'
import { bucketOf, type OrderId } from '../domain/orders/identifiers.ts'
import type { Order } from '../domain/orders/order.ts'
import type { InstantMs } from '../domain/time.ts'
import type { Sql } from './database.ts'

/** An order that is about to exist, with everything that comes into being with it. */
export type NewOrder = {
  /** In NEW, with its first sequence; which address is its deposit address is decided by the database. */
  readonly order: Order
  /** What only the row knows: proofs that are checked elsewhere and never shown. */
  readonly secrets: { readonly tokenHash: Buffer; readonly seal: string }
  /** The order as its client will see it; the deposit address is put in where it is stored. */
  readonly snapshot: object
  readonly retry: { readonly slot: string; readonly bodyHash: string; readonly atWallMs: InstantMs }
}

export type Created = {
  /** Where the deposit of each order that was created goes. */
  readonly deposits: ReadonlyMap<OrderId, DepositPlace>
  /** How many addresses were free, of as many as there are orders, and the key of the first. */
  readonly free: { readonly count: number; readonly firstIndex: number }
}

export type DepositPlace = { readonly address: string; readonly tag: string | null }

/**
 * Creates orders whose deposits are all of one address family: for each a deposit address for good, the order, its
 * first fact and event, and its retry slot. One statement, so all that belongs to an order is there, or nothing of it.
 * An order without an address in the answer was not created: its retry slot had been filled before, or none was free. None is
 * while a signer has another keystore, for nothing could be paid for what arrives.
 * Where tags tell deposits apart, the tag of an order is the index of its deposit key. Where an address cannot carry it, it stands
 * behind a slash, and the customer is shown the two apart.
 *
 * Addresses are given in the order of their keys, from `fromIndex` on: whoever knows where the free ones begin spares
 * PostgreSQL the index entries of all that were given since the last vacuum.
 */
export async function insertNewOrders(
  sql: Sql,
  family: AddressFamily,
  orders: readonly NewOrder[],
  fromIndex: number,
): Promise<Created> {
  const rows = await sql.query<CreatedRow>(INSERT_NEW_ORDERS, [
    family,
    JSON.stringify(orders.map(toRow)),
    fromIndex,
  ])
  const [{ free_count: count, first_index: firstIndex } = { free_count: 0, first_index: null }] = rows
  const created = rows.flatMap(({ order_id, address, deposit_tag: tag }) =>
    order_id === null ? [] : [[order_id, { address, tag }] as const],
  )
  return { deposits: new Map(created), free: { count, firstIndex: firstIndex ?? 0 } }
}

type CreatedRow = { free_count: number; first_index: number | null } & (
  | { order_id: OrderId; address: string; deposit_tag: string | null }
  | { order_id: null; address: null; deposit_tag: null }
)

/**
 * Slots are filled in the same order by everybody, so that no two batches wait for one another. The number of free
 * addresses is looked up, not passed, and the ones to update are named as an array: so the one plan that PostgreSQL
 * keeps for every size of batch finds both by their indexes.
 */
const INSERT_NEW_ORDERS = `
  WITH wanted AS MATERIALIZED (
    SELECT * FROM json_to_recordset($2) AS w (n integer, bucket smallint, order_id text, account_id text,
      created_at_ms bigint, expires_at_ms bigint, rate_type text, from_asset text, to_asset text, asks numeric,
      promises numeric, rate text, fee numeric, fee_share integer, network_fee numeric, destination text,
      destination_tag text, refund_address text, callback_url text, is_tagged boolean, required_confirmations smallint,
      tolerance numeric, slippage integer, token_hash bytea, seal text, chain text, snapshot jsonb, slot text,
      body_hash text, slot_at_ms bigint)
  ), ready AS MATERIALIZED (
    SELECT array_agg(address) AS addresses, array_agg(key_index) AS tags, min(key_index) AS first_index FROM (
      SELECT address, key_index FROM addresses
      WHERE family = $1 AND purpose = 'deposit' AND key_index >= $3 AND assigned_at_ms IS NULL
        AND NOT EXISTS (SELECT FROM keystore_differences)
      ORDER BY key_index LIMIT (SELECT count(*) FROM wanted) FOR UPDATE SKIP LOCKED
    ) AS free
  ), filled AS (
    INSERT INTO retry_slots (account_id, slot, body_hash, order_id, at_ms)
    SELECT account_id, slot, body_hash, order_id, slot_at_ms FROM wanted, ready
    WHERE n <= cardinality(addresses) ORDER BY account_id, slot
    ON CONFLICT DO NOTHING RETURNING order_id
  ), created AS MATERIALIZED (
    SELECT wanted.*, addresses[n] AS address, split_part(addresses[n], '/', 1) AS shown_address,
      CASE WHEN is_tagged THEN tags[n]::text END AS deposit_tag
    FROM filled JOIN wanted USING (order_id) CROSS JOIN ready
  ), given AS (
    UPDATE addresses SET order_id = created.order_id, chain = created.chain, assigned_at_ms = created.created_at_ms
    FROM created
    WHERE family = $1 AND addresses.address = created.address
      AND addresses.address = ANY (ARRAY(SELECT address FROM created))
  ), new_orders AS (
    INSERT INTO orders (bucket, order_id, account_id, created_at_ms, expires_at_ms, rate_type, from_asset, to_asset,
      asks, promises, rate, fee, fee_share, network_fee, destination, destination_tag, refund_address, callback_url,
      deposit_address, deposit_tag, required_confirmations, tolerance, slippage, token_hash, seal,
      status, sequence, updated_at_ms)
    SELECT bucket, order_id, account_id, created_at_ms, expires_at_ms, rate_type, from_asset, to_asset,
      asks, promises, rate, fee, fee_share, network_fee, destination, destination_tag, refund_address, callback_url,
      shown_address, deposit_tag, required_confirmations, tolerance, slippage, token_hash, seal,
      'NEW', 1, created_at_ms FROM created
  ), new_facts AS (
    INSERT INTO facts (bucket, order_id, fact_key, kind, outcome, at_ms)
    SELECT bucket, order_id, 'created', 'OrderCreated', 'changed', created_at_ms FROM created
  ), new_events AS (
    INSERT INTO events (bucket, order_id, sequence, previous_status, status, fact_key, snapshot, at_ms)
    SELECT bucket, order_id, 1, NULL, 'NEW', 'created',
      snapshot || jsonb_build_object('deposit_address', shown_address, 'deposit_tag', deposit_tag), created_at_ms FROM created
  )
  SELECT order_id, shown_address AS address, deposit_tag, first_index, coalesce(cardinality(addresses), 0) AS free_count
  FROM ready LEFT JOIN created ON true`

function toRow({ order, secrets, snapshot, retry }: NewOrder, index: number): object {
  const { terms, refundAddress } = order
  const { chain } = assetOf(terms.from)
  return {
    n: index + 1,
    bucket: bucketOf(terms.id),
    order_id: terms.id,
    account_id: terms.accountId,
    created_at_ms: terms.createdAtMs,
    expires_at_ms: terms.expiresAtMs,
    rate_type: terms.rateType,
    from_asset: terms.from,
    to_asset: terms.to,
    asks: String(terms.asks.units),
    promises: String(terms.promises.units),
    rate: showRate(terms.rate),
    fee: String(terms.fee.units),
    fee_share: String(terms.feeShare),
    network_fee: String(terms.networkFee.units),
    destination: terms.destination,
    destination_tag: terms.destinationTag,
    refund_address: refundAddress,
    callback_url: terms.callbackUrl,
    is_tagged: depositsLie[chainFacts[chain].family] === 'tags',
    required_confirmations: terms.requiredConfirmations,
    tolerance: String(terms.tolerance.units),
    slippage: String(terms.slippage),
    token_hash: `\\x${secrets.tokenHash.toString('hex')}`,
    seal: secrets.seal,
    chain,
    snapshot,
    slot: retry.slot,
    body_hash: retry.bodyHash,
    slot_at_ms: retry.atWallMs,
  }
}
