import type { AssetId } from '../domain/catalog/assets.ts'
import type { ChainId } from '../domain/catalog/networks.ts'
import type { BlockRef } from '../domain/orders/order.ts'
import type { InstantMs } from '../domain/time.ts'
import { type ChainHead, type HeadRow, toHead } from './chain_heads.ts'
import type { Sql } from './database.ts'
import { LIVE } from './outflows.ts'

/** What a look at a chain goes on from. */
export type LookedBefore = {
  readonly head: ChainHead
  /** A block above the head whose telling was begun and never ended: it may have left the chain before it became the head. */
  readonly begun: BlockRef | null
  /** Since when the oldest figure of the chain's reserves stands; 0 when one of an opened asset was never taken. */
  readonly reservesAtMs: InstantMs
  /** Whether any deposit, of an order or of nobody's, stands in a block and is not booked yet. */
  readonly hasMined: boolean
  /** Whether one of the assets that are carried is in no book yet (`readUnopened`). */
  readonly hasUnopened: boolean
}

/** All of it in one statement: most looks find that nothing has happened, and there are several a second. */
export async function readLookedBefore(
  sql: Sql,
  chain: ChainId,
  assets: readonly AssetId[],
): Promise<LookedBefore | null> {
  const [row] = await sql.query<LookedBeforeRow>(
    `SELECT h.*, b.hash AS begun_hash,
       (SELECT coalesce(min(coalesce(r.at_ms, 0)), 0)
        FROM unnest($2::text[]) AS carried (asset) JOIN opened_assets o USING (asset) LEFT JOIN reserves r USING (asset)
        WHERE o.is_read) AS reserves_at_ms,
       EXISTS (SELECT FROM deposits WHERE chain = $1 AND state = 'mined')
         OR EXISTS (SELECT FROM house_deposits WHERE chain = $1 AND state = 'mined') AS has_mined,
       EXISTS (SELECT FROM unnest($2::text[]) AS carried (asset) LEFT JOIN opened_assets o USING (asset)
         WHERE o.is_read IS NOT TRUE) AS has_unopened
     FROM chain_heads h LEFT JOIN chain_blocks b ON b.chain = h.chain AND b.height = h.height + 1
     WHERE h.chain = $1`,
    [chain, assets],
  )
  if (row === undefined) return null
  const { begun_hash: hash } = row
  return {
    head: toHead(row),
    begun: hash === null ? null : { height: row.height + 1, hash },
    reservesAtMs: row.reserves_at_ms,
    hasMined: row.has_mined,
    hasUnopened: row.has_unopened,
  }
}

type LookedBeforeRow = HeadRow & {
  begun_hash: string | null
  reserves_at_ms: number
  has_mined: boolean
  has_unopened: boolean
}

/**
 * Whether anything that came or went on the chain is written down, or is on its way. Deposits that vanished and outflows that ended in
 * no block moved nothing and do not count: no index has them by chain. Each question but that for what lies in a mempool goes by the
 * order of an index: without one PostgreSQL may hope to meet a row soon and read the past of all other chains.
 */
export async function wasEverTold(sql: Sql, chain: ChainId): Promise<boolean> {
  const [row] = await sql.query<{ told: boolean }>(
    `SELECT (SELECT chain FROM house_deposits WHERE chain = $1 ORDER BY deposit_key LIMIT 1) IS NOT NULL
       OR (SELECT chain FROM deposits WHERE chain = $1 AND block_hash IS NOT NULL ORDER BY block_hash LIMIT 1) IS NOT NULL
       OR (SELECT count(*) FROM deposits WHERE chain = $1 AND state = 'seen') > 0
       OR (SELECT chain FROM outflows WHERE chain = $1 AND mined_height IS NOT NULL ORDER BY mined_height LIMIT 1) IS NOT NULL
       OR (SELECT chain FROM outflows WHERE chain = $1 AND state IN ${LIVE} ORDER BY due_at_ms LIMIT 1) IS NOT NULL AS told`,
    [chain],
  )
  return row?.told === true
}
