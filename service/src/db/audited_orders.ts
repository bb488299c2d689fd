import type { AssetId } from '../domain/catalog/assets.ts'
import type { LedgerAccount } from '../domain/ledger/accounts.ts'
import type { OrderId } from '../domain/orders/identifiers.ts'
import type { DepositRole, OrderStatus } from '../domain/orders/order.ts'
import type { OutflowKind, PayoutId } from '../domain/payouts/intent.ts'
import { DEPOSIT_ENTRY, HOUSE } from './books.ts'
import type { Sql } from './database.ts'
import type { OrderRow } from './order_row.ts'
import type { OutflowState } from './outflows.ts'

/** Everything about one order that must fit together. Units are ledger units. */
export type AuditedOrder = {
  readonly orderId: OrderId
  readonly status: OrderStatus
  readonly sequence: number
  readonly from: AssetId
  readonly to: AssetId
  readonly settlement: {
    readonly received: bigint
    readonly paid: bigint
    readonly charged: bigint
    readonly fee: bigint
  } | null
  readonly refund: { readonly units: bigint; readonly charged: bigint } | null
  /** What an operator has written off of what is missing of its deposits. */
  readonly writtenOff: bigint
  readonly payoutId: PayoutId | null
  readonly payoutTxHash: string | null
  readonly deposits: readonly AuditedDeposit[]
  readonly balances: readonly AuditedBalance[]
  readonly events: AuditedEvents | null
  readonly outflows: readonly AuditedOutflow[]
}

export type AuditedDeposit = {
  readonly orderId: OrderId
  readonly key: string
  readonly asset: AssetId
  readonly units: bigint
  readonly role: DepositRole
  readonly state: 'seen' | 'mined' | 'confirmed' | 'vanished'
  /** What the journal says the wallet got for it, net, and in how many entries. */
  readonly booked: bigint
}

export type AuditedBalance = {
  readonly owner: string
  readonly asset: AssetId
  readonly account: LedgerAccount
  readonly units: bigint
}

export type AuditedEvents = {
  readonly orderId: OrderId
  readonly count: number
  readonly first: number
  readonly last: number
  readonly lastStatus: OrderStatus
  /** Sequences whose `previous_status` is not the status before it. */
  readonly broken: readonly number[]
  /** Sequences whose fact is not in the log as one that changed something. */
  readonly unexplained: readonly number[]
}

export type AuditedOutflow = {
  readonly orderId: OrderId
  readonly payoutId: PayoutId
  readonly kind: OutflowKind
  readonly asset: AssetId
  readonly units: bigint
  readonly state: OutflowState
  readonly txHashes: readonly string[]
  /** Entries of the journal that book its confirmation, and the units of its asset they took from the wallet. */
  readonly bookings: number
  readonly booked: bigint
  /** Of that, what the wallet was given back because a reorganisation took its block, and has not left again. */
  readonly owedAgain: bigint
  /** Of that, what an operator has closed, because it is paid by hand. */
  readonly closed: bigint
  /** It paid ourselves and the network took nothing for it: there is nothing to book. */
  readonly isFree: boolean
}

/** The orders of a bucket and all that belongs to them, as they are at the moment of the transaction. */
export async function readAuditedOrders(tx: Sql, bucket: number): Promise<AuditedOrder[]> {
  const orders = await tx.query<AuditedRow>(
    `SELECT order_id, status, sequence, from_asset, to_asset, settled_received, settled_paid, settled_fee,
       settled_network_fee, refund_units, refund_network_fee, payout_id, payout_tx_hash,
       coalesce(w.units, 0)::numeric(78,0) AS written_off
     FROM orders LEFT JOIN (
       SELECT owner, sum(units) AS units FROM operator_words WHERE act = 'written_off' GROUP BY owner) AS w ON w.owner = order_id
     WHERE bucket = $1 ORDER BY order_id`,
    [bucket],
  )
  const deposits = groupBy(await readDeposits(tx, bucket), ({ orderId }) => orderId)
  const balances = groupBy(await readOwnerBalances(tx, bucket), ({ owner }) => owner)
  const events = groupBy(await readEvents(tx, bucket), ({ orderId }) => orderId)
  const outflows = groupBy(await readOutflows(tx, bucket), ({ orderId }) => orderId)
  return orders.map((row) => ({
    orderId: row.order_id,
    status: row.status,
    sequence: row.sequence,
    from: row.from_asset,
    to: row.to_asset,
    settlement:
      row.settled_received === null
        ? null
        : {
            received: row.settled_received,
            paid: row.settled_paid ?? 0n,
            fee: row.settled_fee ?? 0n,
            charged: row.settled_network_fee ?? 0n,
          },
    refund:
      row.refund_units === null ? null : { units: row.refund_units, charged: row.refund_network_fee ?? 0n },
    writtenOff: row.written_off,
    payoutId: row.payout_id,
    payoutTxHash: row.payout_tx_hash,
    deposits: deposits.get(row.order_id) ?? [],
    balances: balances.get(row.order_id) ?? [],
    events: events.get(row.order_id)?.[0] ?? null,
    outflows: outflows.get(row.order_id) ?? [],
  }))
}

type AuditedRow = Pick<
  OrderRow,
  | 'order_id'
  | 'status'
  | 'sequence'
  | 'from_asset'
  | 'to_asset'
  | 'settled_received'
  | 'settled_paid'
  | 'settled_fee'
  | 'settled_network_fee'
  | 'refund_units'
  | 'refund_network_fee'
  | 'payout_id'
  | 'payout_tx_hash'
> & { readonly written_off: bigint }

function groupBy<Item>(items: readonly Item[], keyOf: (item: Item) => string): Map<string, Item[]> {
  const groups = new Map<string, Item[]>()
  for (const item of items) {
    const group = groups.get(keyOf(item))
    if (group === undefined) groups.set(keyOf(item), [item])
    else group.push(item)
  }
  return groups
}

/** What the journal of bucket $1 has of each deposit, net. */
export const DEPOSIT_BOOKINGS = `
  SELECT owner, regexp_replace(entry_key, '${DEPOSIT_ENTRY}', '') AS deposit_key, asset,
    sum(CASE WHEN debit = 'wallet' THEN units ELSE -units END)::numeric(78,0) AS booked
  FROM journal
  WHERE bucket = $1 AND entry_key ~ '${DEPOSIT_ENTRY}' AND (debit = 'wallet' OR credit = 'wallet')
  GROUP BY 1, 2, 3`

async function readDeposits(tx: Sql, bucket: number): Promise<AuditedDeposit[]> {
  return tx.query<AuditedDeposit>(
    `SELECT d.order_id AS "orderId", d.deposit_key AS key, d.asset, d.units, d.role, d.state,
       coalesce(b.booked, 0)::numeric(78,0) AS booked
     FROM deposits d LEFT JOIN (${DEPOSIT_BOOKINGS}) b
       ON b.owner = d.order_id AND b.deposit_key = d.deposit_key AND b.asset = d.asset
     WHERE d.bucket = $1 ORDER BY d.deposit_key`,
    [bucket],
  )
}

/** Debits less credits of every account of every owner in the bucket. */
async function readOwnerBalances(tx: Sql, bucket: number): Promise<AuditedBalance[]> {
  return tx.query<AuditedBalance>(
    `SELECT owner, asset, account, sum(units)::numeric(78,0) AS units FROM (
       SELECT owner, asset, debit AS account, units FROM journal WHERE bucket = $1
       UNION ALL
       SELECT owner, asset, credit, -units FROM journal WHERE bucket = $1
     ) AS sides GROUP BY owner, asset, account`,
    [bucket],
  )
}

async function readEvents(tx: Sql, bucket: number): Promise<AuditedEvents[]> {
  return tx.query<AuditedEvents>(
    `SELECT order_id AS "orderId", count(*)::int AS count, min(sequence) AS first, max(sequence) AS last,
       (array_agg(status ORDER BY sequence DESC))[1] AS "lastStatus",
       coalesce(array_agg(sequence ORDER BY sequence) FILTER (WHERE previous_status IS DISTINCT FROM before), '{}')
         AS broken,
       coalesce(array_agg(sequence ORDER BY sequence) FILTER (WHERE NOT is_explained), '{}') AS unexplained
     FROM (
       SELECT e.order_id, e.sequence, e.status, e.previous_status,
         lag(e.status) OVER (PARTITION BY e.order_id ORDER BY e.sequence) AS before,
         EXISTS (SELECT 1 FROM facts f WHERE f.bucket = e.bucket AND f.order_id = e.order_id
           AND f.fact_key = e.fact_key AND f.outcome = 'changed') AS is_explained
       FROM events e WHERE e.bucket = $1
     ) AS chained GROUP BY order_id`,
    [bucket],
  )
}

/** Whose entries book the end of an outflow. The journal is found by it; without it every outflow would read its whole bucket. */
const OWNER_OF_O = `(CASE WHEN o.kind IN ('filler', 'sweep') THEN '${HOUSE}' ELSE o.order_id END)`

/** An outflow's entries are `<payout id>:block_lost:<block>` and `<payout id>:block_found:<block>`; there are few. */
const ORPHAN_BOOKINGS = `
  SELECT regexp_replace(entry_key, ':block_(lost|found):.*$', '') AS payout_id, asset,
    sum(CASE WHEN debit = 'wallet' THEN units ELSE -units END) AS owed
  FROM journal WHERE debit = 'orphaned_payouts' OR credit = 'orphaned_payouts' GROUP BY 1, 2`

/** What goes from us to us and failed in a block that was lost is sent again, and may be confirmed then. */
const FAILED_FIRST_OF_O = `(CASE WHEN o.kind IN ('filler', 'sweep') THEN o.payout_id || ':failed' END)`

/** Outflows and what the journal has of them: rows of `AuditedOutflow`, of all that a condition on `o` leaves. */
export const AUDITED_OUTFLOWS = `
  SELECT o.order_id AS "orderId", o.payout_id AS "payoutId", o.kind, o.asset, o.units, o.state,
    coalesce(o.kind IN ('filler', 'sweep') AND o.mined_cost = 0, false) AS "isFree",
    coalesce((SELECT array_agg(a.tx_hash ORDER BY a.attempt) FROM attempts a
      WHERE a.bucket = o.bucket AND a.payout_id = o.payout_id AND a.tx_hash IS NOT NULL), '{}') AS "txHashes",
    (SELECT count(*) FROM journal j
      WHERE j.bucket = o.bucket AND j.owner = ${OWNER_OF_O}
      AND j.entry_key IN (o.payout_id || ':confirmed', ${FAILED_FIRST_OF_O})
      AND j.debit IN ('payouts_owed', 'refunds_owed', 'network_costs') AND j.credit = 'wallet')::int AS bookings,
    coalesce((SELECT sum(j.units) FROM journal j
      WHERE j.bucket = o.bucket AND j.owner = ${OWNER_OF_O} AND j.entry_key = o.payout_id || ':confirmed'
      AND j.asset = o.asset AND j.debit IN ('payouts_owed', 'refunds_owed') AND j.credit = 'wallet'), 0)::numeric(78,0) AS booked,
    coalesce(b.owed, 0)::numeric(78,0) AS "owedAgain",
    coalesce((SELECT sum(w.units) FROM operator_words w WHERE w.act = 'closed_owed' AND w.owner = o.order_id
      AND w.about = o.payout_id AND w.asset = o.asset), 0)::numeric(78,0) AS closed
  FROM outflows o LEFT JOIN (${ORPHAN_BOOKINGS}) b ON b.payout_id = o.payout_id AND b.asset = o.asset`

async function readOutflows(tx: Sql, bucket: number): Promise<AuditedOutflow[]> {
  return tx.query<AuditedOutflow>(
    `${AUDITED_OUTFLOWS} WHERE o.bucket = $1 AND o.kind IN ('payout', 'refund') ORDER BY o.payout_id`,
    [bucket],
  )
}
