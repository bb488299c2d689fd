import { nativeAsset } from '../domain/catalog/assets.ts'
import type { ChainId } from '../domain/catalog/networks.ts'
import { amountOf } from '../domain/money/amount.ts'
import type { BlockRef } from '../domain/orders/order.ts'
import type { PayoutId } from '../domain/payouts/intent.ts'
import type { InstantMs } from '../domain/time.ts'
import type { Sql } from './database.ts'
import {
  bucketOfPayout,
  type Ended,
  IS_FROM,
  liveStates,
  type OutflowRow,
  type StoredOutflow,
  toStored,
  WAS_MINED,
} from './outflows.ts'

/** What a block that has left the chain does to outflows: they are mined again, or something else is in their place, or neither ever is. */

/** Blocks that are no longer on the best chain: those named, or those above a height in whose place another one is known. */
export type LostBlocks =
  | { readonly kind: 'named'; readonly blocks: readonly BlockRef[] }
  | { readonly kind: 'replaced'; readonly aboveHeight: number }

/**
 * Outflows that were final in such a block, those among them that failed there, kept from being changed by anybody else; those planned last
 * come first, so that of two sweeps of one address the address waits for the one that ends last.
 */
export async function lockOrphanedOutflows(
  tx: Sql,
  chain: ChainId,
  lost: LostBlocks,
): Promise<(StoredOutflow & Ended)[]> {
  type Row = OutflowRow & { mined_height: number; mined_hash: string; mined_cost: bigint }
  const rows =
    lost.kind === 'named'
      ? await tx.query<Row>(
          `SELECT * FROM outflows
           WHERE chain = $1 AND ${WAS_MINED} AND mined_height = ANY($2) AND mined_hash = ANY($3)
           ORDER BY planned_at_ms DESC FOR UPDATE`,
          [chain, lost.blocks.map(({ height }) => height), lost.blocks.map(({ hash }) => hash)],
        )
      : await tx.query<Row>(
          `SELECT o.* FROM outflows o JOIN chain_blocks b ON b.chain = o.chain AND b.height = o.mined_height
           WHERE o.chain = $1 AND ${WAS_MINED} AND o.mined_height > $2 AND b.hash <> o.mined_hash
           ORDER BY o.planned_at_ms DESC FOR UPDATE OF o`,
          [chain, lost.aboveHeight],
        )
  return rows.map((row) => ({
    ...toStored(row),
    block: { height: row.mined_height, hash: row.mined_hash },
    cost: amountOf(nativeAsset(chain).id, row.mined_cost),
  }))
}

/** Due at once: its bytes have to go out again. What stood in its way before it was final does so no more. */
export async function orphanOutflow(tx: Sql, payoutId: PayoutId, nowMs: InstantMs): Promise<void> {
  await tx.query(
    `UPDATE outflows SET state = 'orphaned', due_at_ms = $3, due_height = NULL, trouble = NULL, trouble_since_ms = NULL,
       unjudged_tx_hash = NULL, unjudged_moved = NULL
     WHERE bucket = $1 AND payout_id = $2`,
    [bucketOfPayout(payoutId), payoutId, nowMs],
  )
}

/** It failed in a block that has left the chain: it is not sent again, and may be mined again, see `findRejected`. */
export async function loseRejected(tx: Sql, payoutId: PayoutId): Promise<void> {
  await tx.query('UPDATE outflows SET is_block_lost = true WHERE bucket = $1 AND payout_id = $2', [
    bucketOfPayout(payoutId),
    payoutId,
  ])
}

/** A filler, or what its gap is known by: a nonce of the reserve, or the outflow whose coins it takes back. */
type Gap = Pick<StoredOutflow, 'chain' | 'nonce'> & Partial<Pick<StoredOutflow, 'fills'>>

/** In a statement on `outflows`: whether it is what the filler of a gap stands in for, of which $1 to $4 tell. */
const IS_OF_GAP = 'chain = $1 AND (nonce = $2 OR (bucket = $3 AND payout_id = $4))'

function gapOf({ chain, nonce, fills = null }: Gap): readonly unknown[] {
  return [chain, nonce, fills === null ? null : bucketOfPayout(fills), fills]
}

/**
 * A filler was final and has lost its block: what it had excluded, and others may have, may be mined. That is not sent again either, see
 * `findRejected`. A deposit address has nonces of its own.
 */
export async function loseFilled(tx: Sql, filler: Gap): Promise<void> {
  await tx.query(
    `UPDATE outflows SET is_block_lost = true
     WHERE ${IS_OF_GAP} AND kind <> 'filler' AND from_address IS NULL AND state = 'failed' AND mined_hash IS NULL`,
    gapOf(filler),
  )
}

/**
 * For whoever ends an outflow in the same transaction because its filler is final: until the end of that is written down as well it may lose
 * its block, of which nobody knows then. Nothing when somebody else has ended it, or it has become final.
 */
export async function loseToFiller(
  tx: Sql,
  { payoutId, state }: Pick<StoredOutflow, 'payoutId' | 'state'>,
): Promise<void> {
  const from = liveStates.filter((one) => (one === 'orphaned') === (state === 'orphaned'))
  await tx.query(
    `UPDATE outflows SET is_block_lost = true WHERE bucket = $1 AND payout_id = $2 AND ${IS_FROM}`,
    [bucketOfPayout(payoutId), payoutId, from],
  )
}

/**
 * The outflow of the reserve that had failed, and whose nonce or coins this filler has: in a block that has left the chain, or by a filler
 * that has lost its own, or whose own end is not written down. Null: there is none that may be mined.
 */
export async function findRejected(sql: Sql, filler: Gap): Promise<StoredOutflow | null> {
  const [row] = await sql.query<OutflowRow>(
    `SELECT * FROM outflows WHERE ${IS_OF_GAP} AND is_block_lost`,
    gapOf(filler),
  )
  return row === undefined ? null : toStored(row)
}

/**
 * An outflow, kept from being changed by anybody else; whether it may be mined although it has ended, and the block that it is in.
 * Null: there is none.
 */
export async function lockEnded(
  tx: Sql,
  payoutId: PayoutId,
): Promise<{
  readonly outflow: StoredOutflow
  readonly mayBeMined: boolean
  readonly minedHeight: number | null
} | null> {
  const [row] = await tx.query<OutflowRow & { is_block_lost: boolean; mined_height: number | null }>(
    'SELECT * FROM outflows WHERE bucket = $1 AND payout_id = $2 FOR UPDATE',
    [bucketOfPayout(payoutId), payoutId],
  )
  if (row === undefined) return null
  return { outflow: toStored(row), mayBeMined: row.is_block_lost, minedHeight: row.mined_height }
}

/** The filler is final: the other is never mined again. */
export async function forgetRejected(tx: Sql, filler: Gap): Promise<void> {
  await tx.query(
    `UPDATE outflows SET is_block_lost = false, mined_height = NULL, mined_hash = NULL, mined_cost = NULL
     WHERE ${IS_OF_GAP} AND is_block_lost`,
    gapOf(filler),
  )
}

/**
 * One that lost its block is never mined again. It forgets that block, in which it has spent no nonce: what has, its filler most
 * likely, is still to end, or may lose its own block. False: it is orphaned no more.
 */
export async function failOrphaned(tx: Sql, payoutId: PayoutId): Promise<boolean> {
  const rows = await tx.query(
    `UPDATE outflows SET state = 'failed', mined_height = NULL, mined_hash = NULL, mined_cost = NULL
     WHERE bucket = $1 AND payout_id = $2 AND state = 'orphaned' RETURNING payout_id`,
    [bucketOfPayout(payoutId), payoutId],
  )
  return rows.length > 0
}
