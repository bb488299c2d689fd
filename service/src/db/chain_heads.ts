import type { ChainId } from '../domain/catalog/networks.ts'
import type { BlockRef } from '../domain/orders/order.ts'
import type { InstantMs } from '../domain/time.ts'
import { lookForOutflows } from './claim_outflows.ts'
import { laterOf } from './clocks_set_back.ts'
import type { Sql } from './database.ts'
import { keptText } from './kept_text.ts'
import { type Lease, leaseHeld, leaseLost } from './leases.ts'

export type ChainHead = {
  readonly chain: ChainId
  /** The last block that was looked at whole. */
  readonly block: BlockRef
  readonly nodeHeight: number
  readonly lookedAtMs: InstantMs
  /** The same by the wall clock, which nobody moves. */
  readonly lookedWallMs: number
  readonly trouble: string | null
  readonly troubleSinceMs: InstantMs | null
  readonly cautiousUntilHeight: number
  /** How often the chain left a branch: names the branch we are on. */
  readonly reorganisations: number
  /** What is above it is being told to have left the chain; see `beginLeaving`. Null while nothing is. */
  readonly leavingAboveHeight: number | null
  /** The newest block of ours that the network is known to call final, 0 when none is; null where the network does not say. */
  readonly finalHeight: number | null
}

/**
 * How long ago the last whole look was. One that is still to come by this clock was noted before the clock was set back, or
 * by a machine whose clock is another: that far it is from telling that anybody looks now.
 */
export function silenceMs({ lookedWallMs }: Pick<ChainHead, 'lookedWallMs'>, wallMs: number): number {
  return Math.abs(wallMs - lookedWallMs)
}

export type HeadRow = {
  chain: ChainId
  height: number
  hash: string
  node_height: number
  looked_at_ms: number
  looked_wall_ms: number
  trouble: string | null
  trouble_since_ms: number | null
  cautious_until_height: number
  reorganisations: number
  leaving_above_height: number | null
  final_height: number | null
}

export async function readHeads(sql: Sql): Promise<ChainHead[]> {
  const rows = await sql.query<HeadRow>('SELECT * FROM chain_heads')
  return rows.map(toHead)
}

export async function readHead(sql: Sql, chain: ChainId): Promise<ChainHead | null> {
  const [row] = await sql.query<HeadRow>('SELECT * FROM chain_heads WHERE chain = $1', [chain])
  return row === undefined ? null : toHead(row)
}

export function toHead(row: HeadRow): ChainHead {
  return {
    chain: row.chain,
    block: { height: row.height, hash: row.hash },
    nodeHeight: row.node_height,
    lookedAtMs: row.looked_at_ms,
    lookedWallMs: row.looked_wall_ms,
    trouble: row.trouble,
    troubleSinceMs: row.trouble_since_ms,
    cautiousUntilHeight: row.cautious_until_height,
    reorganisations: row.reorganisations,
    leavingAboveHeight: row.leaving_above_height,
    finalHeight: row.final_height,
  }
}

/**
 * The first look at a chain: blocks before this one are not ours to read. `below`: those that it stands on, to go back to should it
 * leave the chain.
 */
export async function startHead(
  sql: Sql,
  chain: ChainId,
  block: BlockRef,
  nowMs: InstantMs,
  below: readonly BlockRef[] = [],
): Promise<void> {
  await sql.query(
    `INSERT INTO chain_heads (chain, height, hash, node_height, looked_at_ms) VALUES ($1, $2, $3, $2, $4)
     ON CONFLICT (chain) DO NOTHING`,
    [chain, block.height, block.hash, nowMs],
  )
  for (const known of [block, ...below]) await insertBlock(sql, chain, known)
}

/**
 * How many of the blocks that were read are remembered at the least: far more than a reorganisation may take. Those above the newest
 * final one are, however many: what is told to be final later is compared with them.
 */
export const BLOCKS_KEPT = 2_000

async function insertBlock(tx: Sql, chain: ChainId, block: BlockRef): Promise<void> {
  await tx.query(
    `INSERT INTO chain_blocks (chain, height, hash) VALUES ($1, $2, $3)
     ON CONFLICT (chain, height) DO UPDATE SET hash = excluded.hash`,
    [chain, block.height, block.hash],
  )
}

/**
 * The block above the head is about to be told. Should we never get to its end, and the chain leave it meanwhile, this
 * is how the next look knows that something was told of it.
 */
export async function beginBlock(tx: Sql, chain: ChainId, block: BlockRef): Promise<void> {
  await insertBlock(tx, chain, block)
}

/** A final block may be so much higher than the last one that more are to be forgotten at once; the next ones do the rest. */
const FORGOTTEN_AT_ONCE = 100

/**
 * The block was looked at whole. By itself or at the end of a transaction; rejects, and writes nothing, when the lease was lost
 * meanwhile.
 */
export async function advanceHead(sql: Sql, lease: Lease, chain: ChainId, block: BlockRef): Promise<void> {
  const moved = await sql.query(
    `WITH held AS (${leaseHeld(4)}),
     noted AS (
       INSERT INTO chain_blocks (chain, height, hash) SELECT $1, $2::bigint, $3 FROM held
       ON CONFLICT (chain, height) DO UPDATE SET hash = excluded.hash),
     forgotten AS (
       DELETE FROM chain_blocks WHERE chain = $1 AND EXISTS (SELECT FROM held) AND height = ANY (ARRAY(
         SELECT height FROM chain_blocks
         WHERE chain = $1
           AND height <= least($2::bigint - ${BLOCKS_KEPT}, (SELECT final_height FROM chain_heads WHERE chain = $1))
         ORDER BY chain, height LIMIT ${FORGOTTEN_AT_ONCE})))
     UPDATE chain_heads SET height = $2, hash = $3, node_height = greatest(node_height, $2)
     WHERE chain = $1 AND EXISTS (SELECT FROM held)
     RETURNING chain`,
    [chain, block.height, block.hash, lease.name, lease.holder, lease.fence],
  )
  if (moved.length === 0) throw leaseLost(lease)
}

/**
 * It is about to be told that the blocks above `fork` have left the chain. Should we never get to its end, and the chain come
 * back to them meanwhile, this is how the next look knows that it has to go on all the same, and to read them anew.
 */
export async function beginLeaving(tx: Sql, chain: ChainId, fork: BlockRef): Promise<void> {
  await tx.query('UPDATE chain_heads SET leaving_above_height = $2 WHERE chain = $1', [chain, fork.height])
}

/** The blocks above `fork` are no longer on the best chain, and whatever was found in them has to be looked for anew. */
export async function rewindHead(
  tx: Sql,
  chain: ChainId,
  fork: BlockRef,
  cautiousUntilHeight: number,
): Promise<void> {
  await tx.query('DELETE FROM chain_blocks WHERE chain = $1 AND height > $2', [chain, fork.height])
  await lookForOutflows(tx, chain)
  await tx.query(
    `UPDATE chain_heads SET height = $2, hash = $3, cautious_until_height = greatest(cautious_until_height, $4),
       reorganisations = reorganisations + 1, leaving_above_height = NULL,
       final_height = CASE WHEN final_height > $2 THEN $2 ELSE final_height END
     WHERE chain = $1`,
    [chain, fork.height, fork.hash, cautiousUntilHeight],
  )
}

export async function blockHashAt(sql: Sql, chain: ChainId, height: number): Promise<string | null> {
  const [row] = await sql.query<{ hash: string }>(
    'SELECT hash FROM chain_blocks WHERE chain = $1 AND height = $2',
    [chain, height],
  )
  return row?.hash ?? null
}

/**
 * Up to where the blocks that were read stand on one another, none of which is being left, which of them is at `asked` (null: below
 * those that are remembered), and what of them is final. In one statement: between two of them the chain may be reorganised.
 */
export async function readLinkedChain(
  sql: Sql,
  chain: ChainId,
  asked: number,
): Promise<
  | (Pick<ChainHead, 'lookedWallMs' | 'finalHeight' | 'leavingAboveHeight'> & {
      readonly height: number
      readonly hash: string | null
    })
  | null
> {
  const [row] = await sql.query<{
    height: number
    hash: string | null
    looked_wall_ms: number
    final_height: number | null
    leaving_above_height: number | null
  }>(
    `SELECT least(h.height, h.leaving_above_height) AS height, b.hash, h.looked_wall_ms, h.final_height, h.leaving_above_height
     FROM chain_heads h LEFT JOIN chain_blocks b ON b.chain = h.chain AND b.height = $2
     WHERE h.chain = $1`,
    [chain, asked],
  )
  if (row === undefined) return null
  return {
    height: row.height,
    hash: row.hash,
    lookedWallMs: row.looked_wall_ms,
    finalHeight: row.final_height,
    leavingAboveHeight: row.leaving_above_height,
  }
}

/** How far the node is, before there is a whole look to tell it. Rejects when the lease was lost meanwhile. */
export async function noteNodeHeight(
  sql: Sql,
  lease: Lease,
  chain: ChainId,
  nodeHeight: number,
): Promise<void> {
  const noted = await sql.query(
    `WITH held AS (${leaseHeld(3)})
     UPDATE chain_heads SET node_height = $2 WHERE chain = $1 AND EXISTS (SELECT FROM held)
     RETURNING chain`,
    [chain, nodeHeight, lease.name, lease.holder, lease.fence],
  )
  if (noted.length === 0) throw leaseLost(lease)
}

/** Up to where the branch that was read is known to be final. Rejects when the lease was lost meanwhile. */
export async function noteFinal(sql: Sql, lease: Lease, chain: ChainId, finalHeight: number): Promise<void> {
  const noted = await sql.query(
    `UPDATE chain_heads SET final_height = $2 WHERE chain = $1 AND EXISTS (${leaseHeld(3)}) RETURNING chain`,
    [chain, finalHeight, lease.name, lease.holder, lease.fence],
  )
  if (noted.length === 0) throw leaseLost(lease)
}

export type Looked = {
  readonly nodeHeight: number
  /** Up to when it is known what was paid. */
  readonly nowMs: InstantMs
  readonly wallMs: number
}

/**
 * Everything up to the node's head, and its mempool, has been looked at, and no trouble is left. Rejects when the lease was lost
 * meanwhile: what troubles its new holder is none of a late one's.
 */
export async function noteLooked(
  sql: Sql,
  lease: Lease,
  chain: ChainId,
  { nodeHeight, nowMs, wallMs }: Looked,
): Promise<void> {
  const noted = await sql.query(
    `UPDATE chain_heads SET node_height = $2, looked_at_ms = ${laterOf('looked_at_ms', '$3::bigint')}, looked_wall_ms = $4,
       trouble = NULL, trouble_since_ms = NULL
     WHERE chain = $1 AND EXISTS (${leaseHeld(5)})
     RETURNING chain`,
    [chain, nodeHeight, nowMs, wallMs, lease.name, lease.holder, lease.fence],
  )
  if (noted.length === 0) throw leaseLost(lease)
}

export async function noteTrouble(
  sql: Sql,
  chain: ChainId,
  trouble: string,
  nowMs: InstantMs,
): Promise<void> {
  await sql.query(
    `UPDATE chain_heads SET trouble = $2, trouble_since_ms = coalesce(trouble_since_ms, $3) WHERE chain = $1`,
    [chain, keptText(trouble, 500), nowMs],
  )
}
