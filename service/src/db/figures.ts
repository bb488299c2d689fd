import type { AssetId } from '../domain/catalog/assets.ts'
import { assets } from '../domain/catalog/assets.ts'
import { type AddressFamily, type ChainId, chainFacts } from '../domain/catalog/networks.ts'
import type { OrderStatus } from '../domain/orders/order.ts'
import type { KeyPath, OutflowKind } from '../domain/payouts/intent.ts'
import { CLOCKS_APART_MS, type InstantMs } from '../domain/time.ts'
import type { Sql } from './database.ts'
import { FINISHED } from './orders.ts'
import { endedStates, LIVE, type OutflowState } from './outflows.ts'
import { textList } from './text_list.ts'

/** What metrics show. Money is a float here and nowhere else: a gauge has nothing better, and nothing is decided by it. */

export type OrderFigure = {
  readonly status: OrderStatus
  readonly count: number
  readonly oldestAtMs: InstantMs
}

/** Orders that are not finished, by state, and since when the one that waits longest has not changed; an index holds just this. */
export function countUnfinishedOrders(sql: Sql): Promise<OrderFigure[]> {
  return sql.query(
    `SELECT status, count(*) AS count, min(updated_at_ms) AS "oldestAtMs" FROM orders
     WHERE status NOT IN ${FINISHED} GROUP BY status`,
  )
}

/** Reads them all: not to be asked often. */
export function countFinishedOrders(
  sql: Sql,
): Promise<{ readonly status: OrderStatus; readonly count: number }[]> {
  return sql.query(`SELECT status, count(*) AS count FROM orders WHERE status IN ${FINISHED} GROUP BY status`)
}

export type OutflowFigure = {
  readonly chain: ChainId
  readonly kind: OutflowKind
  readonly state: OutflowState
  readonly count: number
}

/** With the age of the oldest, and how many have something in their way. */
export function countLiveOutflows(
  sql: Sql,
): Promise<(OutflowFigure & { readonly oldestAtMs: InstantMs; readonly inTrouble: number })[]> {
  return sql.query(
    `SELECT chain, kind, state, count(*) AS count, min(planned_at_ms) AS "oldestAtMs",
       count(trouble_since_ms) AS "inTrouble"
     FROM outflows WHERE state IN ${LIVE} GROUP BY chain, kind, state`,
  )
}

/** Reads them all: not to be asked often. */
export function countEndedOutflows(sql: Sql): Promise<OutflowFigure[]> {
  return sql.query(
    `SELECT chain, kind, state, count(*) AS count FROM outflows
     WHERE state IN ${textList(endedStates)} GROUP BY chain, kind, state`,
  )
}

/** Addresses that wait for an order or for change. */
export function countFreeAddresses(
  sql: Sql,
): Promise<
  { readonly family: AddressFamily; readonly purpose: KeyPath['purpose']; readonly count: number }[]
> {
  return sql.query(
    // In order and not EXISTS, for which all that were ever given may be read at once.
    `SELECT family, purpose, (SELECT count(*) FROM addresses a
       WHERE a.family = families.family AND a.purpose = purposes.purpose AND a.assigned_at_ms IS NULL) AS count
     FROM unnest($1::text[]) AS families (family) CROSS JOIN (VALUES ('deposit'), ('change')) AS purposes (purpose)
     WHERE (SELECT key_index FROM addresses a WHERE a.family = families.family AND a.purpose = purposes.purpose
       ORDER BY key_index LIMIT 1) IS NOT NULL`,
    [[...new Set(Object.values(chainFacts).map(({ family }) => family))]],
  )
}

/** Mails that are not sent yet or never will be; what is sent is many, and no news. */
export function countMails(
  sql: Sql,
): Promise<{ readonly state: string; readonly count: number; readonly oldestAtMs: InstantMs }[]> {
  return sql.query(
    `SELECT state, count(*) AS count, min(queued_at_ms) AS "oldestAtMs" FROM mails WHERE state <> 'sent' GROUP BY state`,
  )
}

/**
 * When a mail server took a mail last; null: of none is that known any more. Those that it did not take since are gone through. What it
 * took at a time that is still to come was noted before a clock was set back, and would hide for as long that it takes none.
 */
export async function readMailAcceptance(
  sql: Sql,
  nowMs: InstantMs,
): Promise<{ readonly lastAtMs: InstantMs | null }> {
  const [last] = await sql.query<{ over_at_ms: InstantMs }>(
    `SELECT over_at_ms FROM mails WHERE state <> 'waiting' AND state = 'sent' AND over_at_ms <= $1
     ORDER BY over_at_ms DESC LIMIT 1`,
    [nowMs + CLOCKS_APART_MS],
  )
  return { lastAtMs: last?.over_at_ms ?? null }
}

/** Powers of ten that make whole units of a currency out of ledger units. */
const SCALES = [assets.map(({ id }) => id), assets.map(({ decimals }) => decimals)] as const
const WHOLE = `JOIN unnest($1::text[], $2::int[]) AS s (asset, decimals) USING (asset)`

export type ReserveFigure = {
  readonly asset: AssetId
  readonly spendable: number
  readonly isUnpayable: boolean
  readonly atMs: InstantMs
}

export function readReserveFigures(sql: Sql): Promise<ReserveFigure[]> {
  return sql.query(
    `SELECT asset, (spendable / power(10::numeric, decimals))::float8 AS spendable,
       is_unpayable AS "isUnpayable", at_ms AS "atMs"
     FROM reserves ${WHOLE}`,
    SCALES,
  )
}

export type LedgerFigure = {
  readonly asset: AssetId
  readonly chain: ChainId
  readonly difference: number
  readonly differingCount: number
  readonly atMs: InstantMs
}

export function readLedgerFigures(sql: Sql): Promise<LedgerFigure[]> {
  return sql.query(
    `SELECT asset, chain, (difference / power(10::numeric, decimals))::float8 AS difference,
       differing_count AS "differingCount", at_ms AS "atMs"
     FROM reconciliations ${WHOLE}`,
    SCALES,
  )
}

export type OrphanedFigure = { readonly asset: AssetId; readonly amount: number }

/** What is owed again to those who were paid, of each asset of which anything ever was. */
export function readOrphanedPayouts(sql: Sql): Promise<OrphanedFigure[]> {
  return readOrphans(sql, 'orphaned_payouts', 'credit')
}

/** What is missing of what orders were paid for, of each asset of which anything ever was. */
export function readOrphanedDeposits(sql: Sql): Promise<OrphanedFigure[]> {
  return readOrphans(sql, 'orphaned_deposits', 'debit')
}

/** Of each account an index holds just its entries, which are few. */
function readOrphans(
  sql: Sql,
  account: 'orphaned_payouts' | 'orphaned_deposits',
  side: 'debit' | 'credit',
): Promise<OrphanedFigure[]> {
  return sql.query(
    `SELECT asset, (amount / power(10::numeric, decimals))::float8 AS amount FROM (
       SELECT asset, sum(CASE WHEN ${side} = '${account}' THEN units ELSE -units END) AS amount FROM journal
       WHERE debit = '${account}' OR credit = '${account}' GROUP BY asset) AS account ${WHOLE}`,
    SCALES,
  )
}

/**
 * Orders of which something has not been handed on to webhooks and mails, an index holds just these; and when the first of what is
 * to be handed on happened. What else changes an order, such as dust that comes to it, says nothing of that.
 */
export async function readUntoldOrders(
  sql: Sql,
): Promise<{ readonly count: number; readonly oldestAtMs: InstantMs | null }> {
  const [row] = await sql.query<{ count: number; oldestAtMs: InstantMs | null }>(
    // Looked up order by order and not joined, for which all events there ever were may be read at once.
    `SELECT count(*) AS count, min((
       SELECT at_ms FROM events e
       WHERE e.bucket = o.bucket AND e.order_id = o.order_id AND e.sequence = o.relayed_sequence + 1)) AS "oldestAtMs"
     FROM orders o WHERE sequence > relayed_sequence`,
  )
  return row ?? { count: 0, oldestAtMs: null }
}

/** What receivers of webhooks wait for; an index holds just these. */
export async function readWaitingWebhooks(
  sql: Sql,
): Promise<{ readonly count: number; readonly oldestAtMs: InstantMs | null }> {
  const [row] = await sql.query<{ count: number; oldestAtMs: InstantMs | null }>(
    `SELECT count(*) AS count, min(event_at_ms) AS "oldestAtMs" FROM webhook_deliveries WHERE state = 'waiting'`,
  )
  return row ?? { count: 0, oldestAtMs: null }
}
