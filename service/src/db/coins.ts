import { assert } from '../domain/assert.ts'
import type { ChainId } from '../domain/catalog/networks.ts'
import type { Coin, KeyPath, PayoutId } from '../domain/payouts/intent.ts'
import { OPERATOR } from './books.ts'
import type { Sql } from './database.ts'
import { LIVE } from './outflows.ts'

/** An output of ours was mined, or mined again in another block. */
export async function upsertCoin(
  tx: Sql,
  chain: ChainId,
  coin: Coin,
  block: { readonly height: number; readonly hash: string },
): Promise<void> {
  await tx.query(
    `INSERT INTO coins (chain, tx_hash, output_index, satoshi, address, key_purpose, key_index, block_height, block_hash)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
     ON CONFLICT (chain, tx_hash, output_index) DO UPDATE SET
       block_height = excluded.block_height, block_hash = excluded.block_hash`,
    [
      chain,
      coin.txHash,
      coin.index,
      coin.satoshi,
      coin.address,
      coin.key.purpose,
      coin.key.index,
      block.height,
      block.hash,
    ],
  )
}

/** The block is gone; its coins wait to be mined again. */
export async function unmineCoins(tx: Sql, chain: ChainId, blockHash: string): Promise<void> {
  await tx.query(
    'UPDATE coins SET block_height = NULL, block_hash = NULL WHERE chain = $1 AND block_hash = $2',
    [chain, blockHash],
  )
}

/**
 * Coins that may be spent: a deposit when it is as deep as `confirmations`, our own change and reserve from the first
 * block. Until the transaction ends nobody else is given any, so that two payouts never plan with the same one; a lock
 * on each would be a write for each, and most are not taken.
 */
export async function lockSpendableCoins(
  tx: Sql,
  chain: ChainId,
  headHeight: number,
  confirmations: number,
): Promise<Coin[]> {
  await tx.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [`coins:${chain}`])
  const rows = await tx.query<{
    tx_hash: string
    output_index: number
    satoshi: bigint
    address: string
    key_purpose: KeyPath['purpose']
    key_index: number
  }>(
    `SELECT tx_hash, output_index, satoshi, address, key_purpose, key_index FROM coins
     WHERE chain = $1 AND spent_by IS NULL AND block_height IS NOT NULL
       AND (key_purpose <> 'deposit' OR block_height <= $2 + 1 - $3::int)
     ORDER BY satoshi DESC, tx_hash, output_index
     LIMIT 1000`,
    [chain, headHeight, confirmations],
  )
  return rows.map((row) => ({
    txHash: row.tx_hash,
    index: row.output_index,
    satoshi: row.satoshi,
    address: row.address,
    key: { purpose: row.key_purpose, index: row.key_index },
  }))
}

/** Coins that nobody spends yet are this outflow's from now on. */
export async function markSpent(
  tx: Sql,
  chain: ChainId,
  coins: readonly Coin[],
  by: PayoutId,
): Promise<void> {
  const rows = await tx.query(
    `UPDATE coins SET spent_by = $2
     FROM unnest($3::text[], $4::integer[]) AS given (tx_hash, output_index)
     WHERE coins.chain = $1 AND coins.spent_by IS NULL
       AND coins.tx_hash = given.tx_hash AND coins.output_index = given.output_index
     RETURNING coins.tx_hash`,
    [chain, by, coins.map(({ txHash }) => txHash), coins.map(({ index }) => index)],
  )
  assert(rows.length === coins.length, `the coins of ${by} are nobody else's`)
}

/** They are spent in a block that is deep, by this outflow: whoever was given one of them since never spends it. */
export async function takeSpent(tx: Sql, chain: ChainId, coins: readonly Coin[], by: PayoutId) {
  await tx.query(
    `UPDATE coins SET spent_by = $2
     FROM unnest($3::text[], $4::integer[]) AS given (tx_hash, output_index)
     WHERE coins.chain = $1 AND coins.spent_by IS DISTINCT FROM $2
       AND coins.tx_hash = given.tx_hash AND coins.output_index = given.output_index`,
    [chain, by, coins.map(({ txHash }) => txHash), coins.map(({ index }) => index)],
  )
}

/** Of these coins, those that somebody spends or is to spend, and who. */
export async function findSpenders(
  sql: Sql,
  chain: ChainId,
  coins: readonly Coin[],
): Promise<readonly { readonly txHash: string; readonly index: number; readonly by: PayoutId }[]> {
  const rows = await sql.query<{ tx_hash: string; output_index: number; spent_by: PayoutId }>(
    `SELECT tx_hash, output_index, spent_by FROM coins
     JOIN unnest($2::text[], $3::integer[]) AS given (tx_hash, output_index) USING (tx_hash, output_index)
     WHERE chain = $1 AND spent_by IS NOT NULL`,
    [chain, coins.map(({ txHash }) => txHash), coins.map(({ index }) => index)],
  )
  return rows.map((row) => ({ txHash: row.tx_hash, index: row.output_index, by: row.spent_by }))
}

/** Of coins that an outflow was given: those that are in a block now. The others were reorganised away. */
export async function stillMined(tx: Sql, chain: ChainId, coins: readonly Coin[]): Promise<Coin[]> {
  const rows = await tx.query<{ tx_hash: string; output_index: number }>(
    `SELECT tx_hash, output_index FROM coins
     JOIN unnest($2::text[], $3::integer[]) AS given (tx_hash, output_index) USING (tx_hash, output_index)
     WHERE chain = $1 AND block_height IS NOT NULL`,
    [chain, coins.map(({ txHash }) => txHash), coins.map(({ index }) => index)],
  )
  const mined = new Set(rows.map((row) => `${row.tx_hash}:${row.output_index}`))
  return coins.filter(({ txHash, index }) => mined.has(`${txHash}:${index}`))
}

/** The outflow they were taken for never spends them: they may be spent again once they are mined. */
export async function releaseCoins(tx: Sql, chain: ChainId, coins: readonly Coin[], from: PayoutId) {
  await tx.query(
    `UPDATE coins SET spent_by = NULL
     FROM unnest($3::text[], $4::integer[]) AS given (tx_hash, output_index)
     WHERE coins.chain = $1 AND coins.spent_by = $2
       AND coins.tx_hash = given.tx_hash AND coins.output_index = given.output_index`,
    [chain, from, coins.map(({ txHash }) => txHash), coins.map(({ index }) => index)],
  )
}

/** A coin that no outflow of ours has. */
export type FreeCoin = {
  readonly txHash: string
  readonly index: number
  readonly satoshi: bigint
  /** The entry of the books by which it was spent with another program; null: it may be spent. */
  readonly spentBy: string | null
}

/** Coins up to a block that no outflow spends or is to spend, those that left by another program (`markLeft`) among them. */
export async function findFreeCoins(sql: Sql, chain: ChainId, height: number): Promise<FreeCoin[]> {
  return sql.query<FreeCoin>(
    `SELECT tx_hash AS "txHash", output_index AS index, satoshi, spent_by AS "spentBy" FROM coins
     WHERE chain = $1 AND block_height <= $2 AND (spent_by IS NULL OR starts_with(spent_by, $3))
     ORDER BY tx_hash, output_index`,
    [chain, height, OPERATOR],
  )
}

/**
 * Gives these coins to the entry of the books that says that they left by another program, or (`by` is null) back to
 * whoever spends them next. False, and the transaction must not be committed: one of them is not what it was when it was read.
 */
export async function markLeft(
  tx: Sql,
  chain: ChainId,
  coins: readonly FreeCoin[],
  by: string | null,
): Promise<boolean> {
  // Nobody plans with one of them meanwhile, see lockSpendableCoins.
  await tx.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [`coins:${chain}`])
  const rows = await tx.query(
    `UPDATE coins SET spent_by = $2
     FROM unnest($3::text[], $4::integer[], $5::text[]) AS given (tx_hash, output_index, spent_by)
     WHERE coins.chain = $1 AND coins.block_height IS NOT NULL AND coins.spent_by IS NOT DISTINCT FROM given.spent_by
       AND coins.tx_hash = given.tx_hash AND coins.output_index = given.output_index
     RETURNING coins.tx_hash`,
    [
      chain,
      by,
      coins.map(({ txHash }) => txHash),
      coins.map(({ index }) => index),
      coins.map(({ spentBy }) => spentBy),
    ],
  )
  return rows.length === coins.length
}

/** A part of the coins in their order: so many after so many others. */
export type CoinRange = { readonly skip: number; readonly count: number }

/**
 * What the largest coins that nobody spends yet bring, as far as asked for: satoshi of each, less what spending it costs, the
 * largest first. One that costs more than it brings is not among them; nor is one that an outflow has taken: its change comes back with its
 * block. While a filler stands in for an outflow, that may be mined and have brought all of the coins back, though only a deep one
 * says that the outflow never pays.
 */
export async function whatCoinsBring(
  sql: Sql,
  chain: ChainId,
  headHeight: number,
  confirmations: number,
  costSatoshi: bigint,
  { skip, count }: CoinRange,
): Promise<bigint[]> {
  const rows = await sql.query<{ brings: bigint }>(
    `SELECT satoshi - $4 AS brings FROM coins
     WHERE chain = $1 AND spent_by IS NULL AND satoshi > $4 AND block_height IS NOT NULL
       AND (key_purpose <> 'deposit' OR block_height <= $2 + 1 - $3::int)
     ORDER BY satoshi DESC, tx_hash, output_index OFFSET $5 LIMIT $6`,
    [chain, headHeight, confirmations, costSatoshi, skip, count],
  )
  return rows.map(({ brings }) => brings)
}

/** Ledger units that live outflows will take from coins: of those that have taken theirs nothing, unless a filler has brought them back. */
export async function sumPromisedOfCoins(sql: Sql, chain: ChainId): Promise<bigint> {
  // Not EXISTS, for which all coins that were ever spent may be read at once.
  const [row] = await sql.query<{ promised: bigint }>(
    `SELECT coalesce(sum(units), 0)::numeric(78,0) AS promised FROM outflows o
     WHERE chain = $1 AND state IN ${LIVE} AND (
       (SELECT true FROM coins c WHERE c.chain = $1 AND c.spent_by = o.payout_id LIMIT 1) IS NULL
       OR payout_id IN (SELECT fills FROM outflows WHERE chain = $1 AND state IN ${LIVE}))`,
    [chain],
  )
  assert(row !== undefined, 'a sum is a row')
  return row.promised
}
