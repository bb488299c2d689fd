import { type ChainId, chainFacts, depositsLie } from '../domain/catalog/networks.ts'
import type { PayoutId } from '../domain/payouts/intent.ts'
import { DAY_MS, HOUR_MS, type InstantMs } from '../domain/time.ts'
import type { Sql } from './database.ts'
import { LIVE } from './outflows.ts'

/** A deposit address that may hold money, taken by one worker until `dueAtMs`. */
export type UnsweptAddress = {
  readonly chain: ChainId
  readonly address: string
  readonly keyIndex: number
  readonly bookedAtMs: InstantMs
  readonly dueAtMs: InstantMs
  /** Outflows that were ever planned for it. */
  readonly sweepCount: number
  /** The highest block that one of them was final in; 0: none. Below it the address held something else. */
  readonly sweptHeight: number
}

/** In a statement on `unswept_addresses AS u`: the names of all outflows that were ever planned for the address (`sweepIdOf`). */
const SWEEPS_OF_U = `ARRAY(
  SELECT 'sweep-' || u.chain || '-' || u.key_index || '-' || n || ':1' FROM generate_series(1, u.sweep_count) AS n)`

/**
 * In a statement on `unswept_addresses AS u`: ledger units of an asset that were swept from the address, by names, for no index has
 * them by address. From its signature on a sweep may be mined, and before it is deep the reserve's balance has it.
 */
export function sweptOfU(asset: string): string {
  return `(
    SELECT coalesce(sum(s.units), 0) FROM outflows AS s
    WHERE s.bucket = 0 AND s.payout_id = ANY (${SWEEPS_OF_U})
      AND s.from_address = u.address AND s.asset = ${asset}
      AND s.state IN ('signed', 'broadcast', 'orphaned', 'confirmed'))`
}

/** Something was booked at this address: it is looked at soon, where deposits lie on addresses of their own. */
export async function noteUnswept(tx: Sql, chain: ChainId, address: string, nowMs: InstantMs): Promise<void> {
  const { family } = chainFacts[chain]
  if (depositsLie[family] !== 'addresses') return
  await tx.query(
    `INSERT INTO unswept_addresses (chain, address, key_index, booked_at_ms, due_at_ms)
     SELECT $1, address, key_index, $4, $4 FROM addresses
     WHERE family = $2 AND address = $3 AND purpose = 'deposit'
     ON CONFLICT (chain, address) DO UPDATE SET booked_at_ms = excluded.booked_at_ms,
       due_at_ms = excluded.due_at_ms, is_resting = false`,
    [chain, family, address, nowMs],
  )
}

/** What was booked there is taken back: it is asked again what it holds. */
export async function wakeUnswept(tx: Sql, chain: ChainId, address: string): Promise<void> {
  await tx.query('UPDATE unswept_addresses SET is_resting = false WHERE chain = $1 AND address = $2', [
    chain,
    address,
  ])
}

/**
 * The transaction that swept it or brought it gas is on its way again: nothing else is planned before that has ended, and what was
 * planned after it.
 */
export async function resumeSweep(
  tx: Sql,
  chain: ChainId,
  addresses: readonly string[],
  payoutId: PayoutId,
): Promise<void> {
  await tx.query(
    `UPDATE unswept_addresses SET is_resting = false, sweeping = coalesce(sweeping, $3)
     WHERE chain = $1 AND address = ANY($2)`,
    [chain, addresses, payoutId],
  )
}

/** What has not ended by then waits for fees to fall, or for money that left the chain: perhaps for days, perhaps for ever. */
const UNDER_WAY_MS = HOUR_MS

/** Due addresses of chain $1 at $2 that nothing is on its way from or to: $3 of them, and so many that at most $4 are swept at once. */
const DUE = `
  SELECT chain, address FROM unswept_addresses
  WHERE chain = $1 AND sweeping IS NULL AND due_at_ms <= $2
  ORDER BY due_at_ms
  LIMIT greatest(0, least($3::bigint, $4 - (SELECT count(*) FROM outflows
    WHERE chain = $1 AND kind = 'sweep' AND state IN ${LIVE} AND planned_at_ms > $2 - ${UNDER_WAY_MS})))`

/** How many are taken in a step, and how many are swept at once at most. */
export type SweepLimits = { readonly step: number; readonly liveMax: number }

/** Whether `claimUnswept` would take any. */
export async function isAnyUnsweptDue(
  sql: Sql,
  chain: ChainId,
  nowMs: InstantMs,
  { step, liveMax }: SweepLimits,
): Promise<boolean> {
  const [row] = await sql.query<{ isAny: boolean }>(`SELECT EXISTS (${DUE}) AS "isAny"`, [
    chain,
    nowMs,
    step,
    liveMax,
  ])
  return row?.isAny ?? false
}

/**
 * Takes due addresses that nothing is on its way from or to, `step` of them and so many that at most `liveMax` are swept at
 * once; those that wait keep no others from it. They are due again at `dueAtMs`, should the worker die meanwhile.
 */
export function claimUnswept(
  sql: Sql,
  chain: ChainId,
  time: { readonly nowMs: InstantMs; readonly dueAtMs: InstantMs },
  { step, liveMax }: SweepLimits,
): Promise<UnsweptAddress[]> {
  return sql.query<UnsweptAddress>(
    `UPDATE unswept_addresses AS u SET due_at_ms = $5
     WHERE (chain, address) IN (${DUE} FOR UPDATE SKIP LOCKED)
     RETURNING chain, address, key_index AS "keyIndex", booked_at_ms AS "bookedAtMs", due_at_ms AS "dueAtMs",
       sweep_count AS "sweepCount", (
         SELECT coalesce(max(s.mined_height), 0) FROM outflows AS s
         WHERE s.bucket = 0 AND s.payout_id = ANY (${SWEEPS_OF_U})) AS "sweptHeight"`,
    [chain, time.nowMs, step, liveMax, time.dueAtMs],
  )
}

/**
 * Whether the coin at the address is hardly more than gas that was brought: no sweep has come of anything since, and nothing was booked
 * there. What was there before did not pay for the gas, or none would have been brought.
 */
export async function holdsOnlyGas(sql: Sql, { chain, address }: UnsweptAddress): Promise<boolean> {
  const [row] = await sql.query<{ isGas: boolean | null }>(
    `SELECT (
       SELECT s.from_address IS NULL AND s.state = 'confirmed' AND s.planned_at_ms >= u.booked_at_ms FROM outflows AS s
       WHERE s.bucket = 0 AND s.payout_id = ANY (${SWEEPS_OF_U}) AND s.state <> 'cancelled'
       ORDER BY s.planned_at_ms DESC LIMIT 1) AS "isGas"
     FROM unswept_addresses AS u WHERE u.chain = $1 AND u.address = $2`,
    [chain, address],
  )
  return row?.isGas ?? false
}

/** Lets an address rest, unless something was booked there since it was taken. */
export async function restUnswept(sql: Sql, taken: UnsweptAddress, dueAtMs: InstantMs): Promise<void> {
  await sql.query(
    'UPDATE unswept_addresses SET due_at_ms = $4 WHERE chain = $1 AND address = $2 AND due_at_ms = $3',
    [taken.chain, taken.address, taken.dueAtMs, dueAtMs],
  )
}

/** The address has a live outflow now. False: somebody else was first. */
export async function beginSweep(tx: Sql, taken: UnsweptAddress, payoutId: PayoutId): Promise<boolean> {
  const rows = await tx.query(
    `UPDATE unswept_addresses SET sweeping = $3, sweep_count = sweep_count + 1, is_resting = false
     WHERE chain = $1 AND address = $2 AND sweeping IS NULL AND sweep_count = $4 RETURNING address`,
    [taken.chain, taken.address, payoutId, taken.sweepCount],
  )
  return rows.length > 0
}

/** Rare enough that looking at everything that was ever left somewhere costs next to nothing. */
export const REST_MAX_MS = 180 * DAY_MS

/**
 * In a statement on `unswept_addresses AS u`: what was final, has lost its block and may be mined again, the one that was planned last.
 * Nothing else is planned before it has ended.
 */
const ORPHAN_OF_U = `(
  SELECT s.payout_id FROM outflows AS s
  WHERE s.bucket = 0 AND s.payout_id = ANY (${SWEEPS_OF_U}) AND s.state = 'orphaned'
  ORDER BY s.planned_at_ms DESC LIMIT 1)`

/** The outflow has ended: the address is looked at again at `dueAtMs`, unless an earlier one is on its way again. */
export async function leaveUnswept(
  tx: Sql,
  chain: ChainId,
  payoutId: PayoutId,
  dueAtMs: InstantMs,
): Promise<void> {
  await lockSwept(tx, chain, payoutId)
  await tx.query(
    `UPDATE unswept_addresses AS u SET sweeping = ${ORPHAN_OF_U}, due_at_ms = $3 WHERE chain = $1 AND sweeping = $2`,
    [chain, payoutId, dueAtMs],
  )
}

/**
 * The chain has executed and rejected it, which cost its gas, or the signer refuses it, and either may do so each time: the address is
 * looked at again when its last booking is twice as long ago, and after `leastMs` at the earliest.
 */
export async function leaveRejected(
  tx: Sql,
  chain: ChainId,
  payoutId: PayoutId,
  { nowMs, leastMs }: { readonly nowMs: InstantMs; readonly leastMs: number },
): Promise<void> {
  await lockSwept(tx, chain, payoutId)
  await tx.query(
    `UPDATE unswept_addresses AS u
     SET sweeping = ${ORPHAN_OF_U}, due_at_ms = $3 + greatest($4, least(${REST_MAX_MS}, $3 - booked_at_ms))
     WHERE chain = $1 AND sweeping = $2`,
    [chain, payoutId, nowMs, leastMs],
  )
}

/** By a statement of its own: one that waits for whoever tells of a lost block does not see which outflow has lost it. */
async function lockSwept(tx: Sql, chain: ChainId, payoutId: PayoutId): Promise<void> {
  await tx.query('SELECT 1 AS one FROM unswept_addresses WHERE chain = $1 AND sweeping = $2 FOR UPDATE', [
    chain,
    payoutId,
  ])
}
