import { type AssetId, assetOf } from '../domain/catalog/assets.ts'
import type { ChainId } from '../domain/catalog/networks.ts'
import { parseExact } from '../domain/exact_json.ts'
import type { Intent, PayoutId } from '../domain/payouts/intent.ts'
import type { InstantMs } from '../domain/time.ts'
import type { Sql } from './database.ts'
import { bucketOfPayout, LIVE } from './outflows.ts'

/**
 * A transaction of it is written down: with its nonce, where there are any. Not EXISTS, for which all attempts there
 * ever were may be read at once.
 */
const DRAFTED = `(nonce IS NOT NULL OR (
  SELECT true FROM attempts a WHERE a.bucket = outflows.bucket AND a.payout_id = outflows.payout_id AND a.attempt = 1))`

/** Outflows of a chain out of what payouts are made from that are not final. */
export async function findLiveOutflows(sql: Sql, chain: ChainId): Promise<PayoutId[]> {
  const rows = await sql.query<{ payout_id: string }>(
    `SELECT payout_id FROM outflows WHERE chain = $1 AND from_address IS NULL AND state IN ${LIVE}`,
    [chain],
  )
  return rows.map(({ payout_id }) => payout_id)
}

/**
 * Units of each asset of a chain in outflows out of what payouts are made from that are not final, and in those named, which were not a
 * moment ago.
 */
export async function sumLiveOutflows(
  sql: Sql,
  chain: ChainId,
  alsoLive: readonly PayoutId[],
): Promise<ReadonlyMap<AssetId, bigint>> {
  const rows = await sql.query<{ asset: AssetId; units: bigint }>(
    `SELECT asset, sum(units)::numeric(78,0) AS units FROM (
       SELECT asset, units FROM outflows WHERE chain = $1 AND from_address IS NULL AND state IN ${LIVE}
       UNION ALL
       SELECT asset, units FROM outflows JOIN unnest($2::smallint[], $3::text[])
         AS live_before (bucket, payout_id) USING (bucket, payout_id)
       WHERE state NOT IN ${LIVE}) AS live
     GROUP BY asset ORDER BY asset`,
    [chain, alsoLive.map(bucketOfPayout), alsoLive],
  )
  return new Map(rows.map(({ asset, units }) => [asset, units]))
}

/**
 * Outflows of an account chain's reserve that are drafted and not final, or were mined above `height`: in a balance that is of this block
 * their money may still lie.
 */
export async function findLeavingOutflows(sql: Sql, asset: AssetId, height: number): Promise<PayoutId[]> {
  const rows = await sql.query<{ payout_id: string }>(
    `SELECT payout_id FROM outflows
     WHERE asset = $1 AND chain = $2 AND ${DRAFTED} AND from_address IS NULL
       AND state IN ${LIVE}
     UNION ALL
     SELECT payout_id FROM outflows
     WHERE asset = $1 AND chain = $2 AND mined_height > $3 AND from_address IS NULL AND state = 'confirmed'`,
    [asset, assetOf(asset).chain, height],
  )
  return rows.map(({ payout_id }) => payout_id)
}

/** Outflows of a chain, in whatever asset and from wherever, that are drafted and not final. */
export async function findDraftedOutflows(sql: Sql, chain: ChainId): Promise<PayoutId[]> {
  const rows = await sql.query<{ payout_id: string }>(
    `SELECT payout_id FROM outflows WHERE chain = $1 AND ${DRAFTED} AND state IN ${LIVE}`,
    [chain],
  )
  return rows.map(({ payout_id }) => payout_id)
}

/**
 * Of those of an account chain's reserve that have a nonce which is not mined yet, the one with the lowest; of two with the same one, what is
 * in trouble. Null: there are none.
 */
export async function findNextToLeave(
  sql: Sql,
  chain: ChainId,
  minedNonce: number,
): Promise<{ readonly nonce: number; readonly troubleSinceMs: InstantMs | null } | null> {
  const [row] = await sql.query<{ nonce: number; trouble_since_ms: InstantMs | null }>(
    `SELECT nonce, trouble_since_ms FROM outflows
     WHERE chain = $1 AND from_address IS NULL AND nonce >= $2 AND state IN ${LIVE}
     ORDER BY nonce, trouble_since_ms LIMIT 1`,
    [chain, minedNonce],
  )
  return row === undefined ? null : { nonce: row.nonce, troubleSinceMs: row.trouble_since_ms }
}

/** Units of an asset in outflows that are leaving the reserve now, and in those named, which were leaving a moment ago. */
export async function sumLeavingOutflows(
  sql: Sql,
  asset: AssetId,
  alsoLeft: readonly PayoutId[],
): Promise<bigint> {
  const [row] = await sql.query<{ units: bigint }>(
    `SELECT (
       (SELECT coalesce(sum(units), 0) FROM outflows
        WHERE asset = $1 AND chain = $2 AND ${DRAFTED} AND from_address IS NULL AND state IN ${LIVE})
       + (SELECT coalesce(sum(units), 0) FROM outflows JOIN unnest($3::smallint[], $4::text[])
            AS left_before (bucket, payout_id) USING (bucket, payout_id)
          WHERE state NOT IN ${LIVE}))::numeric(78,0) AS units`,
    [asset, assetOf(asset).chain, alsoLeft.map(bucketOfPayout), alsoLeft],
  )
  return row?.units ?? 0n
}

/**
 * The last attempt of each outflow of an account chain that is leaving now, in whatever asset and from wherever, and of those named, which
 * were leaving a moment ago.
 */
export async function leavingIntents(
  sql: Sql,
  chain: ChainId,
  alsoLeft: readonly PayoutId[],
): Promise<Intent[]> {
  const latest = `(SELECT a.intent::text FROM attempts a
    WHERE a.bucket = outflows.bucket AND a.payout_id = outflows.payout_id ORDER BY attempt DESC LIMIT 1) AS intent`
  const rows = await sql.query<{ intent: string | null }>(
    `SELECT ${latest} FROM outflows WHERE chain = $1 AND state IN ${LIVE}
     UNION ALL
     SELECT ${latest} FROM outflows JOIN unnest($2::smallint[], $3::text[])
       AS left_before (bucket, payout_id) USING (bucket, payout_id)
     WHERE state NOT IN ${LIVE}`,
    [chain, alsoLeft.map(bucketOfPayout), alsoLeft],
  )
  return rows.flatMap(({ intent }) => (intent === null ? [] : [parseExact(intent) as Intent]))
}

/** The last attempt of each outflow of a chain that is leaving now, where its bytes are stored. */
export async function findLastSent(
  sql: Sql,
  chain: ChainId,
): Promise<{ readonly intent: Intent; readonly txHash: string }[]> {
  const rows = await sql.query<{ intent: string; tx_hash: string | null }>(
    `SELECT last.intent, last.tx_hash FROM outflows CROSS JOIN LATERAL (
       SELECT a.intent::text, a.tx_hash FROM attempts a
       WHERE a.bucket = outflows.bucket AND a.payout_id = outflows.payout_id ORDER BY attempt DESC LIMIT 1) AS last
     WHERE chain = $1 AND state IN ${LIVE}`,
    [chain],
  )
  return rows.flatMap(({ intent, tx_hash: txHash }) =>
    txHash === null ? [] : [{ intent: parseExact(intent) as Intent, txHash }],
  )
}

/** Some attempt of it makes an account (`StellarIntent`). */
const MAKES_ACCOUNT = `(SELECT bool_or(a.intent @> '{"payment":{"creates":true}}') FROM attempts a
  WHERE a.bucket = outflows.bucket AND a.payout_id = outflows.payout_id)`

/** Whether an outflow that makes this account is drafted and not final, or was mined above `height`. */
export async function isAccountBeingMade(
  sql: Sql,
  chain: ChainId,
  account: string,
  height: number,
): Promise<boolean> {
  const rows = await sql.query(
    `SELECT 1 AS one FROM outflows WHERE chain = $1 AND address = $2 AND state IN ${LIVE} AND ${MAKES_ACCOUNT}
     UNION ALL
     SELECT 1 FROM outflows WHERE chain = $1 AND address = $2 AND state = 'confirmed' AND mined_height > $3
       AND ${MAKES_ACCOUNT}
     LIMIT 1`,
    [chain, account, height],
  )
  return rows.length > 0
}

/** Payouts and refunds of an asset that are signed and not final. */
export async function findSignedOutflows(sql: Sql, asset: AssetId): Promise<PayoutId[]> {
  const rows = await sql.query<{ payout_id: string }>(
    `SELECT payout_id FROM outflows
     WHERE asset = $1 AND chain = $2 AND kind IN ('payout', 'refund') AND state IN ('signed', 'broadcast', 'orphaned')`,
    [asset, assetOf(asset).chain],
  )
  return rows.map(({ payout_id }) => payout_id)
}

/** Units of an asset in payouts and refunds that are written down, without those named. */
export async function sumUnsignedOutflows(
  sql: Sql,
  asset: AssetId,
  signed: readonly PayoutId[],
): Promise<bigint> {
  const [row] = await sql.query<{ units: bigint }>(
    `SELECT coalesce(sum(units), 0)::numeric(78,0) AS units FROM outflows
     WHERE asset = $1 AND chain = $2 AND kind IN ('payout', 'refund') AND ${DRAFTED} AND state IN ${LIVE}
       AND payout_id <> ALL($3::text[])`,
    [asset, assetOf(asset).chain, signed],
  )
  return row?.units ?? 0n
}
