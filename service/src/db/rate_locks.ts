import type { AssetId } from '../domain/catalog/assets.ts'
import { type Amount, amountOf } from '../domain/money/amount.ts'
import { parseRate, showRate } from '../domain/money/rate.ts'
import type { BasisPoints, Quote } from '../domain/quotes/quote.ts'
import type { InstantMs } from '../domain/time.ts'
import { arrayText } from './array_text.ts'
import type { Sql } from './database.ts'

/** A fixed quote that is kept: whoever creates the order in time gets it. */
export type RateLock = Quote & {
  readonly rateId: string
  readonly feeShare: BasisPoints
  readonly expiresAtMs: InstantMs
}

/** Stores many locks in one statement. */
export async function insertRateLocks(sql: Sql, locks: readonly RateLock[], nowMs: InstantMs): Promise<void> {
  await sql.query(
    `INSERT INTO rate_locks (rate_id, from_asset, to_asset, from_units, to_units, rate, fee, fee_share, network_fee,
       expires_at_ms, created_at_ms)
     SELECT l.*, $11 FROM unnest($1::text[], $2::text[], $3::text[], $4::numeric[], $5::numeric[], $6::text[],
       $7::numeric[], $8::int[], $9::numeric[], $10::bigint[]) AS l`,
    [
      arrayText(locks, ({ rateId }) => rateId),
      arrayText(locks, ({ from }) => from.asset),
      arrayText(locks, ({ to }) => to.asset),
      arrayText(locks, ({ from }) => from.units),
      arrayText(locks, ({ to }) => to.units),
      arrayText(locks, ({ rate }) => showRate(rate)),
      arrayText(locks, ({ fee }) => fee.units),
      arrayText(locks, ({ feeShare }) => feeShare),
      arrayText(locks, ({ networkFee }) => networkFee.units),
      arrayText(locks, ({ expiresAtMs }) => expiresAtMs),
      nowMs,
    ],
  )
}

type LockRow = {
  rate_id: string
  from_asset: AssetId
  to_asset: AssetId
  from_units: bigint
  to_units: bigint
  rate: string
  fee: bigint
  fee_share: number
  network_fee: bigint
  expires_at_ms: number
}

function toLock(row: LockRow): RateLock {
  return {
    rateId: row.rate_id,
    from: amountOf(row.from_asset, row.from_units),
    to: amountOf(row.to_asset, row.to_units),
    rate: parseRate(row.from_asset, row.to_asset, row.rate),
    fee: amountOf(row.to_asset, row.fee),
    feeShare: BigInt(row.fee_share),
    networkFee: amountOf(row.to_asset, row.network_fee),
    expiresAtMs: row.expires_at_ms,
  }
}

/** Those of these locks that there are, by their ids. */
export async function findRateLocks(sql: Sql, rateIds: readonly string[]): Promise<Map<string, RateLock>> {
  const rows = await sql.query<LockRow>('SELECT * FROM rate_locks WHERE rate_id = ANY($1)', [rateIds])
  return new Map(rows.map((row) => [row.rate_id, toLock(row)]))
}

export type WantedLock = {
  readonly from: Amount
  readonly to: AssetId
  /** Not one that lapsed before. */
  readonly sinceMs: InstantMs
}

/** For each, in their order, the newest lock on the same assets and amount. */
export async function findNewestRateLocks(
  sql: Sql,
  wanted: readonly WantedLock[],
): Promise<(RateLock | null)[]> {
  const rows = await sql.query<LockRow & { n: number }>(
    `SELECT wanted.n, lock.*
     FROM unnest($1::text[], $2::text[], $3::numeric[], $4::bigint[])
       WITH ORDINALITY AS wanted (from_asset, to_asset, from_units, since_ms, n)
     CROSS JOIN LATERAL (
       SELECT * FROM rate_locks
       WHERE from_asset = wanted.from_asset AND to_asset = wanted.to_asset AND from_units = wanted.from_units
         AND expires_at_ms > wanted.since_ms
       ORDER BY expires_at_ms DESC LIMIT 1) AS lock`,
    [
      wanted.map(({ from }) => from.asset),
      wanted.map(({ to }) => to),
      wanted.map(({ from }) => from.units),
      wanted.map(({ sinceMs }) => sinceMs),
    ],
  )
  const found = new Map(rows.map((row) => [row.n, toLock(row)]))
  return wanted.map((_, index) => found.get(index + 1) ?? null)
}

/** At most `limit` of them, so that a statement stays short after a long pause; answers how many it was. */
export async function deleteRateLocks(sql: Sql, lapsedBeforeMs: InstantMs, limit: number): Promise<number> {
  const rows = await sql.query(
    `DELETE FROM rate_locks WHERE rate_id IN (
       SELECT rate_id FROM rate_locks WHERE expires_at_ms < $1 ORDER BY expires_at_ms LIMIT $2 FOR UPDATE SKIP LOCKED)
     RETURNING 1 AS one`,
    [lapsedBeforeMs, limit],
  )
  return rows.length
}
