import type { AssetId } from '../domain/catalog/assets.ts'
import type { ChainId } from '../domain/catalog/networks.ts'
import type { LedgerAccount } from '../domain/ledger/accounts.ts'
import type { OrderId } from '../domain/orders/identifiers.ts'
import type { PayoutId } from '../domain/payouts/intent.ts'
import { AUDITED_OUTFLOWS, type AuditedOutflow, DEPOSIT_BOOKINGS } from './audited_orders.ts'
import { HOUSE, HOUSE_BUCKET, IS_OF_HOUSE, OPERATOR, OUTFLOW_ENTRY } from './books.ts'
import type { Sql } from './database.ts'
import type { HouseDepositKind } from './house_deposits.ts'
import type { OutflowState } from './outflows.ts'

/** Owners of entries in a bucket that are neither the house nor an order of it. */
export async function readStrayOwners(tx: Sql, bucket: number): Promise<string[]> {
  const rows = await tx.query<{ owner: string }>(
    `SELECT DISTINCT owner FROM journal j WHERE bucket = $1 AND NOT (${IS_OF_HOUSE})
       AND NOT EXISTS (SELECT 1 FROM orders o WHERE o.bucket = j.bucket AND o.order_id = j.owner) ORDER BY owner`,
    [bucket],
  )
  return rows.map(({ owner }) => owner)
}

/** Whatever is booked for an order is what a fact made of it: entries of which no fact says so. */
export async function readUnexplainedEntries(
  tx: Sql,
  bucket: number,
): Promise<{ readonly owner: string; readonly key: string }[]> {
  return tx.query(
    `SELECT DISTINCT owner, entry_key AS key FROM journal j
     WHERE bucket = $1 AND EXISTS (SELECT 1 FROM orders o WHERE o.bucket = j.bucket AND o.order_id = j.owner)
       AND NOT EXISTS (SELECT 1 FROM facts f WHERE f.bucket = j.bucket AND f.order_id = j.owner
         AND f.fact_key = j.entry_key AND f.outcome = 'changed')
     ORDER BY owner, key`,
    [bucket],
  )
}

/** Payouts and refunds of orders that do not exist. */
export async function readStrayOutflows(
  tx: Sql,
  bucket: number,
): Promise<{ readonly orderId: OrderId; readonly payoutId: PayoutId }[]> {
  return tx.query(
    `SELECT order_id AS "orderId", payout_id AS "payoutId" FROM outflows f
     WHERE bucket = $1 AND kind IN ('payout', 'refund')
       AND NOT EXISTS (SELECT 1 FROM orders o WHERE o.bucket = f.bucket AND o.order_id = f.order_id) ORDER BY payout_id`,
    [bucket],
  )
}

/** Deposits that are in a block for more than one owner. */
export async function readSharedDeposits(
  tx: Sql,
): Promise<{ readonly key: string; readonly owners: string[] }[]> {
  return tx.query(
    `SELECT deposit_key AS key, array_agg(owner ORDER BY owner) AS owners FROM (
       SELECT deposit_key, order_id AS owner FROM deposits WHERE state IN ('mined', 'confirmed')
       UNION ALL SELECT deposit_key, '${HOUSE}' FROM house_deposits WHERE state IN ('mined', 'confirmed')
     ) AS all_deposits GROUP BY deposit_key HAVING count(*) > 1 ORDER BY deposit_key`,
  )
}

/**
 * Entries about deposits that no table knows. Of one that is mined again as another asset, the table knows what it is
 * now; what it was is turned round.
 */
export async function readUnknownBookings(
  tx: Sql,
  bucket: number,
): Promise<{ readonly owner: string; readonly key: string }[]> {
  return tx.query(
    `SELECT b.owner, b.deposit_key AS key FROM (${DEPOSIT_BOOKINGS}) b
     WHERE NOT EXISTS (SELECT 1 FROM deposits d
         WHERE d.bucket = $1 AND d.order_id = b.owner AND d.deposit_key = b.deposit_key
           AND (d.asset = b.asset OR b.booked = 0))
       AND NOT EXISTS (SELECT 1 FROM house_deposits h
         WHERE b.owner = '${HOUSE}' AND h.deposit_key = b.deposit_key
           AND (h.asset = b.asset OR b.booked = 0))
     ORDER BY 1, 2`,
    [bucket],
  )
}

export type AuditedHouseDeposit = {
  readonly key: string
  readonly kind: HouseDepositKind
  readonly asset: string
  readonly units: bigint
  readonly state: 'mined' | 'confirmed' | 'orphaned'
  readonly booked: bigint
}

export async function readAuditedHouseDeposits(tx: Sql): Promise<readonly AuditedHouseDeposit[]> {
  return tx.query<AuditedHouseDeposit>(
    `SELECT h.deposit_key AS key, h.kind, h.asset, h.units, h.state, coalesce(b.booked, 0)::numeric(78,0) AS booked
     FROM house_deposits h LEFT JOIN (${DEPOSIT_BOOKINGS}) b
       ON b.owner = '${HOUSE}' AND b.deposit_key = h.deposit_key AND b.asset = h.asset
     ORDER BY h.deposit_key`,
    [HOUSE_BUCKET],
  )
}

/** So many of the house's outflows, which are as many as deposits, those that come after `afterPayoutId`. */
export async function readAuditedHouseOutflows(
  tx: Sql,
  afterPayoutId: PayoutId,
  limit: number,
): Promise<readonly AuditedOutflow[]> {
  return tx.query<AuditedOutflow>(
    `${AUDITED_OUTFLOWS} WHERE o.bucket = ${HOUSE_BUCKET} AND o.kind IN ('filler', 'sweep') AND o.payout_id > $1 ORDER BY o.payout_id LIMIT $2`,
    [afterPayoutId, limit],
  )
}

/** A balance of the house that is not what its deposits come to. */
export type FalseHouseBalance = {
  readonly asset: AssetId
  readonly account: LedgerAccount
  readonly units: bigint
  readonly deposits: bigint
}

/**
 * What the house owes to somebody is what came to it, less what an operator has closed; of orders' accounts it has nothing but what an
 * operator has written off. What it paid in, what networks took, and what of outflows came back are looked at elsewhere, or are its own.
 */
export async function readFalseHouseBalances(
  tx: Sql,
  listed: readonly AssetId[],
): Promise<FalseHouseBalance[]> {
  return tx.query<FalseHouseBalance>(
    `SELECT asset, account, coalesce(b.units, 0)::numeric(78,0) AS units, coalesce(d.units, 0)::numeric(78,0) AS deposits
     FROM (
       SELECT asset, account, sum(units) AS units FROM (
         SELECT asset, debit AS account, units FROM journal WHERE ${IS_OF_HOUSE}
         UNION ALL
         SELECT asset, credit, -units FROM journal WHERE ${IS_OF_HOUSE}
       ) AS sides
       WHERE account NOT IN ('wallet', 'network_costs', 'capital', 'orphaned_payouts') GROUP BY asset, account
     ) b FULL JOIN (
       SELECT asset, account, sum(units) AS units FROM (
         SELECT asset, 'unclaimed' AS account, -units AS units FROM house_deposits WHERE kind = 'stray' AND state = 'confirmed'
         UNION ALL
         SELECT asset, 'unclaimed', units FROM operator_words WHERE act = 'closed_unclaimed' AND asset = ANY($1)
         UNION ALL
         SELECT asset, 'orphaned_deposits', -units FROM operator_words WHERE act = 'written_off'
       ) AS parts GROUP BY asset, account
     ) d USING (asset, account)
     WHERE coalesce(b.units, 0) <> coalesce(d.units, 0) ORDER BY asset, account`,
    [listed],
  )
}

/** A word of an operator and the entry that books it, where they are not the same; null where there is none. */
export type FalseWord = {
  readonly entryKey: string
  readonly said: string | null
  readonly booked: string | null
}

/** Of what is not listed the journal has nothing. */
export function readFalseWords(tx: Sql, listed: readonly AssetId[]): Promise<FalseWord[]> {
  return tx.query<FalseWord>(
    `SELECT entry_key AS "entryKey", said, booked FROM (
       SELECT '${OPERATOR}' || act || ':' || owner || ':' || about || ':' || number AS entry_key,
         concat_ws(' ', sides[CASE WHEN units < 0 THEN 2 ELSE 1 END], abs(units), asset) AS said
       FROM operator_words JOIN (VALUES
         ('closed_unclaimed', ARRAY['unclaimed capital', 'capital unclaimed']),
         ('written_off', ARRAY['capital orphaned_deposits', 'orphaned_deposits capital']),
         ('closed_owed', ARRAY['orphaned_payouts capital', 'capital orphaned_payouts'])) AS booking (act, sides) USING (act)
       WHERE units <> 0 AND asset = ANY($1)
     ) AS words FULL JOIN (
       SELECT entry_key, string_agg(concat_ws(' ', debit, credit, units, asset), ', ' ORDER BY line) AS booked FROM journal
       WHERE ${IS_OF_HOUSE} AND entry_key ~ '^${OPERATOR}(closed_unclaimed|written_off|closed_owed):' GROUP BY entry_key
     ) AS entries USING (entry_key)
     WHERE said IS DISTINCT FROM booked ORDER BY entry_key`,
    [listed],
  )
}

/** What was closed, and is confirmed no more, or as something else. */
export type LostClosing = { readonly about: string; readonly asset: string; readonly units: bigint }

export function readLostClosings(tx: Sql): Promise<LostClosing[]> {
  return tx.query<LostClosing>(
    `SELECT about, asset, units FROM (
       SELECT DISTINCT ON (owner, about) owner, about, number, asset, units FROM operator_words
       WHERE act = 'closed_unclaimed' ORDER BY owner, about, number DESC) AS w
     WHERE number % 2 = 1 AND NOT EXISTS (
         SELECT FROM house_deposits d WHERE w.owner = '${HOUSE}' AND d.chain = split_part(about, ':', 1) AND d.deposit_key = about
           AND d.kind <> 'reserve' AND d.state = 'confirmed' AND (d.asset, d.units) = (w.asset, w.units))
       AND NOT EXISTS (
         SELECT FROM deposits d WHERE d.order_id = w.owner AND d.chain = split_part(about, ':', 1) AND d.deposit_key = about
           AND d.role <> 'counted' AND d.state = 'confirmed' AND (d.asset, d.units) = (w.asset, w.units))
     ORDER BY about`,
  )
}

/** What is booked as the network's cost of an outflow, and is not what was noted when it ended. */
export type FalseCost = {
  readonly payoutId: PayoutId
  readonly booked: bigint
  /** Null: nothing at all is booked. */
  readonly asset: string | null
  /** Null: there is no such outflow. */
  readonly outflow:
    | (Pick<AuditedOutflow, 'orderId' | 'kind' | 'state'> & {
        readonly chain: ChainId
        readonly cost: bigint
      })
    | null
}

type FalseCostRow = {
  payout_id: PayoutId
  booked: bigint
  asset: string | null
  order_id: OrderId | null
  kind: AuditedOutflow['kind']
  state: OutflowState
  chain: ChainId
  cost: bigint
}

/**
 * One that lost its block after it was final costs nothing until it has ended anew, and then as much as it did there; one that then
 * never does, nothing. `mined_cost` is null of those that were confirmed before it was noted, and of those that failed in no block, which
 * cost nothing.
 */
export async function readFalseCosts(tx: Sql): Promise<readonly FalseCost[]> {
  const rows = await tx.query<FalseCostRow>(
    `WITH costs AS (
       SELECT regexp_replace(entry_key, '${OUTFLOW_ENTRY}', '') AS payout_id, asset,
         sum(CASE WHEN credit = 'wallet' THEN units ELSE -units END)::numeric(78,0) AS booked,
         bool_or(entry_key ~ ':(failed|block_found:.*)$') AS may_have_failed
       FROM journal
       WHERE (debit = 'network_costs' AND credit = 'wallet') OR (debit = 'wallet' AND credit = 'network_costs')
       GROUP BY 1, 2
     ), compared AS (
       SELECT payout_id, coalesce(booked, 0) AS booked, c.asset, order_id, kind, state, chain,
         CASE WHEN state = 'confirmed' THEN mined_cost
           WHEN state = 'failed' AND booked IS DISTINCT FROM 0 AND may_have_failed IS DISTINCT FROM false
             THEN coalesce(mined_cost, 0)
           ELSE 0 END AS cost
       FROM costs c FULL JOIN outflows o USING (payout_id)
     )
     SELECT payout_id, booked::numeric(78,0) AS booked, asset, order_id, kind, state, chain, cost::numeric(78,0) AS cost
     FROM compared WHERE booked <> cost ORDER BY payout_id, asset`,
  )
  return rows.map(({ payout_id, booked, asset, order_id, ...outflow }) => ({
    payoutId: payout_id,
    booked,
    asset,
    outflow: order_id === null ? null : { orderId: order_id, ...outflow },
  }))
}
