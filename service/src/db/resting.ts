import type { AssetId } from '../domain/catalog/assets.ts'
import type { ChainId } from '../domain/catalog/networks.ts'
import type { InstantMs } from '../domain/time.ts'
import type { Database, Sql } from './database.ts'

/** A deposit address of an account chain that nothing is on its way to or from, as it was when it was read. */
export type QuietAddress = {
  readonly address: string
  readonly dueAtMs: InstantMs
  readonly sweepCount: number
}

type Sum = { readonly asset: AssetId; readonly units: bigint }

/** What all resting addresses of a chain held when each was asked last. */
export function readRestingSums(tx: Sql, chain: ChainId): Promise<Sum[]> {
  return tx.query<Sum>('SELECT asset, units FROM resting_sums WHERE chain = $1', [chain])
}

/** What the chain said that an address holds; zeros are left out. */
export type RestingBalance = { readonly address: string; readonly asset: AssetId; readonly units: bigint }

export function readRestingBalances(
  tx: Sql,
  chain: ChainId,
  addresses: readonly string[],
): Promise<RestingBalance[]> {
  return tx.query<RestingBalance>(
    'SELECT address, asset, units FROM resting_balances WHERE chain = $1 AND address = ANY($2)',
    [chain, addresses],
  )
}

/**
 * Deposit addresses that were looked at since something was booked there, without anything being worth a sweep.
 * `neverSwept`: nobody looks at them.
 */
export function findQuiet(
  tx: Sql,
  chain: ChainId,
  rest: { readonly nowMs: InstantMs; readonly neverSwept: boolean },
  limit: number,
): Promise<QuietAddress[]> {
  return tx.query<QuietAddress>(
    `SELECT address, due_at_ms AS "dueAtMs", sweep_count AS "sweepCount" FROM unswept_addresses
     WHERE chain = $1 AND NOT is_resting AND sweeping IS NULL AND (due_at_ms > $2 OR $3)
     ORDER BY booked_at_ms LIMIT $4`,
    [chain, rest.nowMs, rest.neverSwept, limit],
  )
}

/** Those that nothing happened to since they were read go to rest with what they hold. */
export async function layToRest(
  db: Database,
  chain: ChainId,
  quiet: readonly QuietAddress[],
  balances: readonly RestingBalance[],
): Promise<void> {
  await db.transaction(async (tx) => {
    const rested = await tx.query<{ address: string }>(
      `UPDATE unswept_addresses u SET is_resting = true
       FROM unnest($2::text[], $3::bigint[], $4::integer[]) AS quiet (address, due_at_ms, sweep_count)
       WHERE u.chain = $1 AND u.address = quiet.address AND NOT u.is_resting AND u.sweeping IS NULL
         AND u.due_at_ms = quiet.due_at_ms AND u.sweep_count = quiet.sweep_count
       RETURNING u.address`,
      [
        chain,
        quiet.map(({ address }) => address),
        quiet.map(({ dueAtMs }) => dueAtMs),
        quiet.map(({ sweepCount }) => sweepCount),
      ],
    )
    const addresses = new Set(rested.map(({ address }) => address))
    const kept = balances.filter(({ address }) => addresses.has(address))
    const before = await tx.query<Sum>(
      'DELETE FROM resting_balances WHERE chain = $1 AND address = ANY($2) RETURNING asset, units',
      [chain, [...addresses]],
    )
    await tx.query(
      `INSERT INTO resting_balances (chain, address, asset, units)
       SELECT $1, address, asset, units FROM unnest($2::text[], $3::text[], $4::numeric[]) AS b (address, asset, units)`,
      [
        chain,
        kept.map(({ address }) => address),
        kept.map(({ asset }) => asset),
        kept.map(({ units }) => units),
      ],
    )
    const changes = new Map<AssetId, bigint>()
    for (const { asset, units } of kept) changes.set(asset, (changes.get(asset) ?? 0n) + units)
    for (const { asset, units } of before) changes.set(asset, (changes.get(asset) ?? 0n) - units)
    await tx.query(
      `INSERT INTO resting_sums (chain, asset, units)
       SELECT $1, asset, units FROM unnest($2::text[], $3::numeric[]) AS c (asset, units)
       ON CONFLICT (chain, asset) DO UPDATE SET units = resting_sums.units + excluded.units`,
      [chain, [...changes.keys()], [...changes.values()]],
    )
  })
}

/** Assets of a chain whose resting balances do not add up to their sum. */
export function findFalseRestingSums(
  sql: Sql,
): Promise<
  { readonly chain: ChainId; readonly asset: AssetId; readonly units: bigint; readonly summed: bigint }[]
> {
  return sql.query(
    `SELECT chain, asset, coalesce(b.units, 0)::numeric(78,0) AS units, coalesce(s.units, 0)::numeric(78,0) AS summed
     FROM (SELECT chain, asset, sum(units) AS units FROM resting_balances GROUP BY chain, asset) b
     FULL JOIN resting_sums s USING (chain, asset)
     WHERE coalesce(b.units, 0) <> coalesce(s.units, 0) ORDER BY chain, asset`,
  )
}
