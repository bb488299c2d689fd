import { type AssetId, assets } from '../domain/catalog/assets.ts'
import { type ChainId, chainFacts } from '../domain/catalog/networks.ts'
import type { BlockRef } from '../domain/orders/order.ts'
import type { PayoutId, PayoutKind } from '../domain/payouts/intent.ts'
import type { InstantMs } from '../domain/time.ts'
import { readHead } from './chain_heads.ts'
import type { Database, Sql } from './database.ts'

/** A transaction of ours that may be mined and is not booked yet. */
export type UnbookedAttempt = {
  readonly payoutId: PayoutId
  readonly kind: PayoutKind
  readonly asset: AssetId
  readonly units: bigint
  readonly txHash: string
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
  /** Of every outflow that is not booked yet; the attempts of one outflow stand together, the first one first. */
  readonly attempts: readonly UnbookedAttempt[]
  /** Satoshi of mined coins by the outflow that spends them; null: by none. Those of booked outflows are gone. */
  readonly coins: ReadonlyMap<PayoutId | null, bigint>
  readonly addresses: readonly string[]
}

/**
 * Which addresses are asked. `held`: reserves, all that ever received something by our own records, and those given
 * out since `givenSinceMs`, so that a deposit we failed to see shows; cheap enough to be asked all the time.
 * `all`: every address of ours, ready ones too.
 */
export type AddressScope =
  | { readonly kind: 'held'; readonly givenSinceMs: InstantMs }
  | { readonly kind: 'all' }

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
    return {
      head: head.block,
      wallet: await readWallet(tx, chain),
      arriving: await readArriving(tx, chain, head.block.height),
      attempts: await readAttempts(tx, chain),
      coins: await readCoins(tx, chain, head.block.height),
      addresses: await readAddresses(tx, chain, scope),
    }
  })
}

function assetIdsOf(chain: ChainId): readonly AssetId[] {
  return assets.filter((asset) => asset.chain === chain).map(({ id }) => id)
}

type Sum = { asset: AssetId; units: bigint }

function toMap(rows: readonly Sum[]): ReadonlyMap<AssetId, bigint> {
  return new Map(rows.map(({ asset, units }) => [asset, units]))
}

async function readWallet(tx: Sql, chain: ChainId): Promise<ReadonlyMap<AssetId, bigint>> {
  const rows = await tx.query<Sum>(
    `SELECT asset, sum(CASE WHEN debit = 'wallet' THEN units ELSE -units END)::numeric(78,0) AS units
     FROM journal WHERE asset = ANY($1) AND (debit = 'wallet' OR credit = 'wallet') GROUP BY asset`,
    [assetIdsOf(chain)],
  )
  return toMap(rows)
}

/**
 * Deposits of orders and of the house. What a stranger sends to one of our change addresses is no change of ours, and
 * unless it is recorded as a house deposit it is booked nowhere: it counts as arriving for good.
 */
async function readArriving(tx: Sql, chain: ChainId, height: number): Promise<ReadonlyMap<AssetId, bigint>> {
  const rows = await tx.query<Sum>(
    `SELECT asset, sum(units)::numeric(78,0) AS units FROM (
       SELECT asset, units FROM deposits WHERE chain = $1 AND state = 'mined' AND block_height <= $2
       UNION ALL
       SELECT asset, units FROM house_deposits
       WHERE chain = $1 AND state = 'mined' AND block_height <= $2 AND asset = ANY($3)
       UNION ALL
       SELECT $4, satoshi FROM coins c
       WHERE chain = $1 AND key_purpose = 'change' AND block_height <= $2
         AND NOT EXISTS (SELECT 1 FROM attempts a WHERE a.tx_hash = c.tx_hash)
         AND NOT EXISTS (SELECT 1 FROM house_deposits h
           WHERE h.chain = c.chain AND h.deposit_key = c.chain || ':' || c.tx_hash || ':' || c.output_index)
     ) AS arriving GROUP BY asset`,
    [chain, height, assetIdsOf(chain), `${chainFacts[chain].native}:${chain}`],
  )
  return toMap(rows)
}

const UNBOOKED = `('planned', 'signed', 'broadcast')`

async function readAttempts(tx: Sql, chain: ChainId): Promise<readonly UnbookedAttempt[]> {
  const rows = await tx.query<{
    payout_id: string
    kind: PayoutKind
    asset: AssetId
    units: bigint
    tx_hash: string
    fills: string | null
  }>(
    `SELECT o.payout_id, o.kind, o.asset, o.units, o.fills, a.tx_hash FROM outflows o JOIN attempts a USING (bucket, payout_id)
     WHERE o.chain = $1 AND o.state IN ${UNBOOKED} AND a.tx_hash IS NOT NULL ORDER BY o.payout_id, a.attempt`,
    [chain],
  )
  return rows.map(({ payout_id, tx_hash, ...rest }) => ({ payoutId: payout_id, txHash: tx_hash, ...rest }))
}

async function readCoins(
  tx: Sql,
  chain: ChainId,
  height: number,
): Promise<ReadonlyMap<PayoutId | null, bigint>> {
  const rows = await tx.query<{ spent_by: string | null; satoshi: bigint }>(
    `SELECT c.spent_by, sum(c.satoshi)::numeric(78,0) AS satoshi
     FROM coins c LEFT JOIN outflows o ON o.payout_id = c.spent_by
     WHERE c.chain = $1 AND c.block_height <= $2 AND (c.spent_by IS NULL OR o.state IN ${UNBOOKED})
     GROUP BY c.spent_by`,
    [chain, height],
  )
  return new Map(rows.map(({ spent_by, satoshi }) => [spent_by, satoshi]))
}

async function readAddresses(tx: Sql, chain: ChainId, scope: AddressScope): Promise<readonly string[]> {
  const { family } = chainFacts[chain]
  const rows =
    scope.kind === 'all'
      ? await tx.query<{ address: string }>('SELECT address FROM addresses WHERE family = $1', [family])
      : await tx.query<{ address: string }>(
          `SELECT address FROM addresses
           WHERE family = $1 AND (purpose = 'reserve' OR (chain = $2 AND assigned_at_ms >= $3))
           UNION SELECT o.deposit_address FROM deposits d JOIN orders o USING (bucket, order_id) WHERE d.chain = $2
           UNION SELECT address FROM house_deposits WHERE chain = $2
           UNION SELECT address FROM coins WHERE chain = $2`,
          [family, chain, scope.givenSinceMs],
        )
  return rows.map(({ address }) => address)
}
