import { type AssetId, assetIdsOn } from '../domain/catalog/assets.ts'
import { type ChainId, chainFacts, depositsLie } from '../domain/catalog/networks.ts'
import { parseExact } from '../domain/exact_json.ts'
import type { BlockRef } from '../domain/orders/order.ts'
import type { Intent, OutflowKind, PayoutId } from '../domain/payouts/intent.ts'
import { readHead } from './chain_heads.ts'
import type { Database, Sql } from './database.ts'
import { type AddressScope, type Holders, readHolders } from './holders.ts'
import { readOpened } from './opened_assets.ts'
import { LIVE } from './outflows.ts'
import { addUpWallet, readWallet } from './wallet_sums.ts'

/** A transaction of ours that may be mined and is not booked yet. */
export type UnbookedAttempt = {
  readonly payoutId: PayoutId
  readonly kind: OutflowKind
  readonly asset: AssetId
  readonly units: bigint
  readonly txHash: string
  readonly intent: Intent
  /** The outflow whose coins this one takes back. */
  readonly fills: PayoutId | null
}

/** Everything the database believes about the money on one chain, all of it at the same moment. */
export type BooksOfChain = {
  /** The last block that was looked at whole; every deposit up to it is in these figures. */
  readonly head: BlockRef
  /** Debits less credits of the account `wallet`. */
  readonly wallet: ReadonlyMap<AssetId, bigint>
  /** In a block up to the head and not deep enough to be booked. */
  readonly arriving: ReadonlyMap<AssetId, bigint>
  /** Whether an outflow is booked that was mined above the head: what it took is missing here, and at the head was still there. */
  readonly isAhead: boolean
  /** Of every outflow that is not booked yet, or not any more; the attempts of one outflow stand together, the first one first. */
  readonly attempts: readonly UnbookedAttempt[]
  /** Satoshi of mined coins by the outflow that spends them; null: by none. Those of booked outflows are gone. */
  readonly coins: ReadonlyMap<PayoutId | null, bigint>
  readonly holders: Holders
  /** Those of which all that addresses hold is booked or on its way. */
  readonly opened: ReadonlySet<AssetId>
}

/** Null: the chain was never looked at. */
export function readBooksOfChain(
  db: Database,
  chain: ChainId,
  scope: AddressScope,
): Promise<BooksOfChain | null> {
  return db.transaction(async (tx) => {
    // One snapshot for all statements: a booking between two of them would count twice or never.
    await tx.query('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY')
    const head = await readHead(tx, chain)
    if (head === null) return null
    const assets = assetIdsOn(chain)
    return {
      head: head.block,
      wallet: toMap(await (scope.kind === 'all' ? addUpWallet(tx, assets) : readWallet(tx, assets))),
      arriving: await readArriving(tx, chain, head.block.height),
      isAhead: await isBookedAbove(tx, chain, head.block.height),
      attempts: await readAttempts(tx, chain),
      coins: await readCoins(tx, chain, head.block.height),
      holders: await readHolders(tx, chain, scope),
      opened: await readOpened(tx, assets),
    }
  })
}

type Sum = { asset: AssetId; units: bigint }

function toMap(rows: readonly Sum[]): ReadonlyMap<AssetId, bigint> {
  return new Map(rows.map(({ asset, units }) => [asset, units]))
}

/**
 * Deposits of orders and of the house, which are what a stranger sends to one of our change addresses as well; our own
 * change is recorded by neither.
 */
async function readArriving(tx: Sql, chain: ChainId, height: number): Promise<ReadonlyMap<AssetId, bigint>> {
  const rows = await tx.query<Sum>(
    `SELECT asset, sum(units)::numeric(78,0) AS units FROM (
       SELECT asset, units FROM deposits WHERE chain = $1 AND state = 'mined' AND block_height <= $2
       UNION ALL
       SELECT asset, units FROM house_deposits
       WHERE chain = $1 AND state = 'mined' AND block_height <= $2 AND asset = ANY($3)
     ) AS arriving GROUP BY asset`,
    [chain, height, assetIdsOn(chain)],
  )
  return toMap(rows)
}

/** By the order of the index: without it PostgreSQL hopes to meet a row soon, where there is none, and reads all that ever left. */
async function isBookedAbove(tx: Sql, chain: ChainId, height: number): Promise<boolean> {
  const rows = await tx.query(
    `SELECT mined_height FROM outflows
     WHERE chain = $1 AND mined_height > $2 AND state IN ('confirmed', 'failed') AND NOT is_block_lost
     ORDER BY mined_height LIMIT 1`,
    [chain, height],
  )
  return rows.length > 0
}

async function readAttempts(tx: Sql, chain: ChainId): Promise<readonly UnbookedAttempt[]> {
  const rows = await tx.query<{
    payout_id: string
    kind: OutflowKind
    asset: AssetId
    units: bigint
    tx_hash: string
    intent: string
    fills: string | null
  }>(
    `SELECT o.payout_id, o.kind, o.asset, o.units, o.fills, a.tx_hash, a.intent::text AS intent
     FROM (
       SELECT * FROM outflows WHERE chain = $1 AND state IN ${LIVE}
       UNION ALL SELECT * FROM outflows WHERE chain = $1 AND is_block_lost
     ) AS o JOIN attempts a USING (bucket, payout_id)
     WHERE a.tx_hash IS NOT NULL ORDER BY o.payout_id, a.attempt`,
    [chain],
  )
  return rows.map(({ payout_id, tx_hash, intent, ...rest }) => ({
    payoutId: payout_id,
    txHash: tx_hash,
    intent: parseExact(intent) as Intent,
    ...rest,
  }))
}

async function readCoins(
  tx: Sql,
  chain: ChainId,
  height: number,
): Promise<ReadonlyMap<PayoutId | null, bigint>> {
  if (depositsLie[chainFacts[chain].family] !== 'coins') return new Map()
  const rows = await tx.query<{ spent_by: string | null; satoshi: bigint }>(
    `SELECT spent_by, sum(satoshi)::numeric(78,0) AS satoshi FROM (
       SELECT spent_by, satoshi FROM coins WHERE chain = $1 AND block_height <= $2 AND spent_by IS NULL
       UNION ALL
       SELECT c.spent_by, c.satoshi FROM outflows o JOIN coins c ON c.chain = o.chain AND c.spent_by = o.payout_id
       WHERE o.chain = $1 AND o.state IN ${LIVE} AND c.block_height <= $2
     ) AS held GROUP BY spent_by`,
    [chain, height],
  )
  return new Map(rows.map(({ spent_by, satoshi }) => [spent_by, satoshi]))
}
