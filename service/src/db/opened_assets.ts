import type { AssetId } from '../domain/catalog/assets.ts'
import type { Sql } from './database.ts'

/**
 * An asset that looks at its chain carry and that is not opened: what addresses of ours hold of it is in no book. `height`: what is
 * held at this block is to be booked, and what later blocks bring is told; null: nothing was ever told of it.
 */
export type UnopenedAsset = { readonly asset: AssetId; readonly height: number | null }

export function readUnopened(sql: Sql, assets: readonly AssetId[]): Promise<UnopenedAsset[]> {
  return sql.query<UnopenedAsset>(
    `SELECT asset, o.height FROM unnest($1::text[]) AS carried (asset) LEFT JOIN opened_assets o USING (asset)
     WHERE o.is_read IS NOT TRUE ORDER BY asset`,
    [assets],
  )
}

export async function readOpened(sql: Sql, assets: readonly AssetId[]): Promise<ReadonlySet<AssetId>> {
  const rows = await sql.query<{ asset: AssetId }>(
    'SELECT asset FROM opened_assets WHERE is_read AND asset = ANY($1)',
    [assets],
  )
  return new Set(rows.map(({ asset }) => asset))
}

/** What is held at the block at `height` is in the books from now on. */
export async function noteOpened(tx: Sql, assets: readonly AssetId[], height: number): Promise<void> {
  await tx.query(
    `INSERT INTO opened_assets (asset, height, is_read) SELECT asset, $2, true FROM unnest($1::text[]) AS a (asset)
     ON CONFLICT (asset) DO UPDATE SET height = excluded.height, is_read = true`,
    [assets, height],
  )
}

/** Blocks above the one at `height` have left the chain, and with them what was booked of those that were opened there. */
export async function openAgain(tx: Sql, assets: readonly AssetId[], height: number): Promise<void> {
  await tx.query(
    'UPDATE opened_assets SET height = $2, is_read = false WHERE asset = ANY($1) AND height > $2',
    [assets, height],
  )
}
