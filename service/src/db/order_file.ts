import { type AssetId, assetOf } from '../domain/catalog/assets.ts'
import type { ChainId } from '../domain/catalog/networks.ts'
import { bucketOf, type OrderId, SHORT_ID_DIGITS } from '../domain/orders/identifiers.ts'
import type { OrderStatus } from '../domain/orders/order.ts'
import type { OutflowKind } from '../domain/payouts/intent.ts'
import type { InstantMs } from '../domain/time.ts'
import { HOUSE, HOUSE_BUCKET } from './books.ts'
import type { Sql } from './database.ts'
import { type AtAddress, listAtAddressOf } from './house_deposits.ts'
import { type Note, readNotesAbout } from './operator_acts.ts'
import { type OperatorWord, readWordsOfOrder } from './operator_words.ts'
import { LIVE, type OutflowState } from './outflows.ts'
import { readVerdicts, type ToldVerdict } from './verdicts.ts'

/** An order in a list for the operator. */
export type ListedOrder = {
  readonly order_id: OrderId
  readonly status: OrderStatus
  readonly rate_type: string
  readonly from_asset: string
  readonly asks: bigint
  readonly to_asset: string
  readonly promises: bigint
  readonly emergency_reasons: readonly string[]
  readonly created_at_ms: InstantMs
  readonly updated_at_ms: InstantMs
}

/** Of one account, or of all; the newest first. */
export async function listOrders(
  sql: Sql,
  statuses: readonly OrderStatus[],
  accountId: string | null,
  limit: number,
): Promise<ListedOrder[]> {
  const [ofAccount, account] = accountId === null ? ['', []] : ['AND account_id = $3', [accountId]]
  return sql.query(
    `SELECT order_id, status, rate_type, from_asset, asks, to_asset, promises, emergency_reasons, created_at_ms,
       updated_at_ms
     FROM orders WHERE status = ANY($1) ${ofAccount} ORDER BY created_at_ms DESC, order_id LIMIT $2`,
    [statuses, limit, ...account],
  )
}

type ListedOutflow = {
  readonly payout_id: string
  readonly order_id: string
  readonly chain: ChainId
  readonly kind: OutflowKind
  readonly state: OutflowState
  readonly asset: string
  readonly units: bigint
}

/** For an exchange that has to wait, which has no outflow yet. */
type WaitingExchange = Omit<ListedOutflow, 'payout_id' | 'kind' | 'state'> & {
  readonly payout_id: null
  readonly kind: 'exchange'
  readonly state: 'waiting'
}

/** Something that something is in the way of, for the operator. */
export type Troubled = (ListedOutflow | WaitingExchange) & {
  readonly trouble: string
  readonly trouble_since_ms: InstantMs
}

/**
 * The outflows that `cambist_payouts_in_trouble` counts, whatever they are for, and the exchanges that have to wait; the longest in trouble
 * first.
 */
export async function listTroubled(sql: Sql, limit: number): Promise<Troubled[]> {
  const outflows = await sql.query<Troubled>(
    `SELECT payout_id, order_id, chain, kind, state, asset, units, trouble, trouble_since_ms FROM outflows
     WHERE state IN ${LIVE} AND trouble_since_ms IS NOT NULL ORDER BY trouble_since_ms, payout_id LIMIT $1`,
    [limit],
  )
  const exchanges = await sql.query<Troubled & { asset: AssetId }>(
    `SELECT NULL AS payout_id, order_id, 'exchange' AS kind, 'waiting' AS state, to_asset AS asset, promises AS units,
       coalesce(exchange_trouble, '-') AS trouble, exchange_trouble_since_ms AS trouble_since_ms FROM orders
     WHERE status = 'EXCHANGE' AND payout_id IS NULL AND exchange_trouble_since_ms IS NOT NULL
     ORDER BY exchange_trouble_since_ms, order_id LIMIT $1`,
    [limit],
  )
  const waiting = exchanges.map((one) => ({ ...one, chain: assetOf(one.asset).chain }))
  return [...outflows, ...waiting]
    .toSorted((one, other) => one.trouble_since_ms - other.trouble_since_ms)
    .slice(0, limit)
}

/** An outflow that has not ended, for the operator. */
export type UnendedOutflow = ListedOutflow & {
  readonly planned_at_ms: InstantMs
  /** Of the attempt that was signed last; null before. */
  readonly tx_hash: string | null
  readonly trouble: string | null
}

/** Those that `cambist_payout_oldest_age_seconds` is of, whatever they are for; the oldest first. */
export async function listUnended(sql: Sql, limit: number): Promise<UnendedOutflow[]> {
  return sql.query(
    `SELECT o.payout_id, order_id, chain, kind, state, asset, units, planned_at_ms, signed.tx_hash, trouble
     FROM (SELECT * FROM outflows WHERE state IN ${LIVE} ORDER BY planned_at_ms, payout_id LIMIT $1) AS o
     LEFT JOIN LATERAL (SELECT tx_hash FROM attempts a
       WHERE (a.bucket, a.payout_id) = (o.bucket, o.payout_id) AND a.tx_hash IS NOT NULL
       ORDER BY attempt DESC LIMIT 1) AS signed ON true
     ORDER BY planned_at_ms, o.payout_id`,
    [limit],
  )
}

/** Orders whose id ends with these digits. */
export async function findByShortId(sql: Sql, shortId: string): Promise<OrderId[]> {
  const rows = await sql.query<{ order_id: string }>(
    `SELECT order_id FROM orders WHERE bucket = $1 AND right(order_id, ${SHORT_ID_DIGITS}) = $2 ORDER BY order_id`,
    [bucketOf(shortId), shortId],
  )
  return rows.map(({ order_id }) => order_id)
}

type Happened = { readonly at_ms: InstantMs }

/** Everything that is written down about an order besides itself. Signed bytes and secrets are left out. */
export type OrderFile = {
  /** Why its exchange had to wait the last time, and since when it does where it does. Null: it never had to. */
  readonly exchange: { readonly trouble: string; readonly trouble_since_ms: InstantMs | null } | null
  readonly at_address: readonly AtAddress[]
  /** What an operator has closed of its deposits and payouts, or written off. */
  readonly words: readonly OperatorWord[]
  /** What operators have judged its payouts to be. */
  readonly verdicts: readonly ToldVerdict[]
  /** What they have noted about it, its deposits, its payouts and their transactions. */
  readonly notes: readonly Note[]
  readonly facts: readonly (Happened & { fact_key: string; kind: string; outcome: string })[]
  readonly events: readonly (Happened & {
    sequence: number
    previous_status: string | null
    status: string
    fact_key: string
  })[]
  readonly postings: readonly (Happened & {
    entry_key: string
    line: number
    asset: string
    debit: string
    credit: string
    units: bigint
  })[]
  readonly outflows: readonly {
    payout_id: string
    kind: string
    asset: string
    units: bigint
    address: string
    tag: string | null
    state: string
    nonce: number | null
    trouble: string | null
    planned_at_ms: InstantMs
  }[]
  readonly attempts: readonly {
    payout_id: string
    attempt: number
    tx_hash: string | null
    answer: string | null
    drafted_at_ms: InstantMs
    broadcast_at_ms: InstantMs | null
  }[]
}

/**
 * What was booked for the house when an outflow of an order lost its block, or was mined again: `<order id>:<number>:block_…`. Its entries
 * lie among all of the house, and are looked up between two keys: a digit comes behind the colon, and before an a, whatever the
 * database sorts by.
 */
const OF_LOST_BLOCKS = `
  SELECT at_ms, entry_key, line, asset, debit, credit, units FROM journal
  WHERE bucket = ${HOUSE_BUCKET} AND owner = '${HOUSE}' AND entry_key > $2 || ':0' AND entry_key < $2 || ':a'
    AND starts_with(entry_key, $2 || ':')`

/** By what an operator may name something of an order. */
const NAMES = `
  SELECT name FROM (
    SELECT $2::text AS name
    UNION SELECT unnest(ARRAY[deposit_key, tx_hash]) FROM deposits WHERE bucket = $1 AND order_id = $2
    UNION SELECT unnest(ARRAY[deposit_key, tx_hash]) FROM house_deposits WHERE order_id = $2
    UNION SELECT unnest(ARRAY[payout_id, tx_hash]) FROM outflows LEFT JOIN attempts USING (bucket, payout_id)
      WHERE bucket = $1 AND order_id = $2) AS named
  WHERE name IS NOT NULL`

export async function readOrderFile(sql: Sql, orderId: OrderId): Promise<OrderFile> {
  const of: [number, string] = [bucketOf(orderId), orderId]
  const outflows = await sql.query<OrderFile['outflows'][number]>(
    `SELECT payout_id, kind, asset, units, address, tag, state, nonce, trouble, planned_at_ms FROM outflows
     WHERE bucket = $1 AND order_id = $2 ORDER BY planned_at_ms, payout_id`,
    of,
  )
  const names = (await sql.query<{ name: string }>(NAMES, of)).map(({ name }) => name)
  const [exchange] = await sql.query<NonNullable<OrderFile['exchange']>>(
    `SELECT exchange_trouble AS trouble, CASE WHEN status = 'EXCHANGE' AND payout_id IS NULL
       THEN exchange_trouble_since_ms END AS trouble_since_ms
     FROM orders WHERE bucket = $1 AND order_id = $2 AND exchange_trouble IS NOT NULL`,
    of,
  )
  return {
    exchange: exchange ?? null,
    at_address: await listAtAddressOf(sql, orderId),
    words: await readWordsOfOrder(sql, orderId),
    verdicts: await readVerdicts(
      sql,
      outflows.map(({ payout_id }) => payout_id),
    ),
    notes: await readNotesAbout(sql, names),
    facts: await sql.query(
      `SELECT at_ms, fact_key, kind, outcome FROM facts WHERE bucket = $1 AND order_id = $2
       ORDER BY at_ms, fact_key`,
      of,
    ),
    events: await sql.query(
      `SELECT at_ms, sequence, previous_status, status, fact_key FROM events WHERE bucket = $1 AND order_id = $2
       ORDER BY sequence`,
      of,
    ),
    postings: await sql.query(
      `SELECT at_ms, entry_key, line, asset, debit, credit, units FROM journal WHERE bucket = $1 AND owner = $2
       UNION ALL ${OF_LOST_BLOCKS}
       ORDER BY at_ms, entry_key, line`,
      of,
    ),
    outflows,
    attempts: await sql.query(
      `SELECT a.payout_id, a.attempt, a.tx_hash, a.answer, a.drafted_at_ms, a.broadcast_at_ms
       FROM attempts a JOIN outflows o USING (bucket, payout_id) WHERE a.bucket = $1 AND o.order_id = $2
       ORDER BY a.payout_id, a.attempt`,
      of,
    ),
  }
}
