import type { AssetId } from '../domain/catalog/assets.ts'
import type { Database, Sql } from './database.ts'

/**
 * What the account `wallet` holds, without adding up the whole journal. A movement is written to `wallet_movements` by
 * the statement that writes its row of the journal, and from there it moves into `wallet_sums`: whatever runs at the
 * same time, it is in exactly one of the two. The journal stays the truth; see `mendWalletSums`.
 */
export async function readWallet(
  tx: Sql,
  assets: readonly AssetId[],
): Promise<{ asset: AssetId; units: bigint }[]> {
  return tx.query(
    `SELECT asset, sum(units)::numeric(78,0) AS units FROM (
       SELECT asset, units FROM wallet_sums WHERE asset = ANY($1)
       UNION ALL SELECT asset, units FROM wallet_movements WHERE asset = ANY($1)
     ) AS parts GROUP BY asset`,
    [assets],
  )
}

/** The same out of the journal, from the first row to the last. */
export async function addUpWallet(
  tx: Sql,
  assets: readonly AssetId[],
): Promise<{ asset: AssetId; units: bigint }[]> {
  return tx.query(
    `SELECT asset, sum(CASE WHEN debit = 'wallet' THEN units ELSE -units END)::numeric(78,0) AS units
     FROM journal WHERE asset = ANY($1) AND (debit = 'wallet' OR credit = 'wallet') GROUP BY asset`,
    [assets],
  )
}

/** Adds the movements that are committed to the sums. Only who reconciles these assets does it, so nobody waits. */
export async function sumWalletMovements(sql: Sql, assets: readonly AssetId[]): Promise<void> {
  await sql.query(
    `WITH summed AS (DELETE FROM wallet_movements WHERE asset = ANY($1) RETURNING bucket, asset, units)
     INSERT INTO wallet_sums (bucket, asset, units)
     SELECT bucket, asset, sum(units) FROM summed GROUP BY bucket, asset
     ON CONFLICT (bucket, asset) DO UPDATE SET units = wallet_sums.units + excluded.units`,
    [assets],
  )
}

/** A sum that is not what the journal adds up to. */
export type FalseWalletSum = {
  readonly bucket: number
  readonly asset: AssetId
  /** By the sum and the movements that are not in it yet. */
  readonly summed: bigint
  readonly journal: bigint
}

const FALSE_SUMS = `
  SELECT bucket, asset, coalesce(s.units, 0)::numeric(78,0) AS summed, coalesce(j.units, 0)::numeric(78,0) AS journal
  FROM (
    SELECT bucket, asset, sum(CASE WHEN debit = 'wallet' THEN units ELSE -units END) AS units FROM journal
    WHERE (debit = 'wallet' OR credit = 'wallet') AND bucket BETWEEN $1 AND $2 AND asset = ANY($3)
    GROUP BY bucket, asset
  ) j FULL JOIN (
    SELECT bucket, asset, sum(units) AS units FROM (
      SELECT bucket, asset, units FROM wallet_sums UNION ALL SELECT bucket, asset, units FROM wallet_movements
    ) AS parts WHERE bucket BETWEEN $1 AND $2 AND asset = ANY($3) GROUP BY bucket, asset
  ) s USING (bucket, asset)
  WHERE j.units IS DISTINCT FROM s.units AND coalesce(j.units, 0) <> coalesce(s.units, 0)
  ORDER BY bucket, asset`

export type Buckets = { readonly first: number; readonly last: number }

/** Adds up the journal of these buckets, all at one moment. */
export function findFalseWalletSums(
  sql: Sql,
  { first, last }: Buckets,
  assets: readonly AssetId[],
): Promise<FalseWalletSum[]> {
  return sql.query<FalseWalletSum>(FALSE_SUMS, [first, last, assets])
}

/**
 * Adds up the journal of these buckets and believes it: whoever bends the journal, or the sums, is found out by the
 * comparison with the chain, as if there were no sums. Answers what was false.
 */
export function mendWalletSums(
  db: Database,
  buckets: Buckets,
  assets: readonly AssetId[],
): Promise<FalseWalletSum[]> {
  return db.transaction(async (tx) => {
    await tx.query('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ')
    const found = await findFalseWalletSums(tx, buckets, assets)
    for (const { bucket, asset, summed, journal } of found) {
      await tx.query(
        `INSERT INTO wallet_sums (bucket, asset, units) VALUES ($1, $2, $3)
         ON CONFLICT (bucket, asset) DO UPDATE SET units = wallet_sums.units + excluded.units`,
        [bucket, asset, journal - summed],
      )
    }
    return found
  })
}
