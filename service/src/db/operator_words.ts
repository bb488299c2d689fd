import { bucketOf, type OrderId } from '../domain/orders/identifiers.ts'
import type { InstantMs } from '../domain/time.ts'
import { HOUSE, OPERATOR } from './books.ts'
import type { Sql } from './database.ts'

export type WordAct = 'closed_unclaimed' | 'written_off' | 'closed_owed'

/** What an operator has said is done with. */
export type OperatorWord = {
  readonly act: WordAct
  /** Whose books have it: an order, or `HOUSE`. */
  readonly owner: string
  /** The key of the deposit or payout that is closed, or the order of which something is written off. */
  readonly about: string
  /** From 1 on, of those about the same. */
  readonly number: number
  /** An asset of the catalogue, or the contract of an unlisted token. */
  readonly asset: string
  /** Negative: the other way round. */
  readonly units: bigint
  readonly because: string
  readonly at_ms: InstantMs
}

/** The key of the entry that books a word; the audit puts it together in the same way. */
export function wordEntryKey({
  act,
  owner,
  about,
  number,
}: Pick<OperatorWord, 'act' | 'owner' | 'about' | 'number'>): string {
  return `${OPERATOR}${act}:${owner}:${about}:${number}`
}

/** Until the transaction ends nobody else says anything of the same. */
export async function lockWords(tx: Sql, act: WordAct, about: string): Promise<void> {
  await tx.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [`${OPERATOR}${act}:${about}`])
}

/** All that was said of a deposit, an order or a payout, in the order in which it was said. */
export function readWords(sql: Sql, act: WordAct, about: string): Promise<OperatorWord[]> {
  return sql.query(
    `SELECT act, owner, about, number, asset, units, because, at_ms FROM operator_words
     WHERE act = $1 AND about = $2 ORDER BY owner, number`,
    [act, about],
  )
}

/**
 * What those said of an order's money come to: `units` is what they book in all, less what was turned round; `last` the newest that an
 * operator has said, and not the service by turning one round; `next` the number of one that follows.
 */
export async function tallyWords(sql: Sql, act: 'written_off' | 'closed_owed', about: string) {
  const words = await readWords(sql, act, about)
  return {
    units: words.reduce((sum, word) => sum + word.units, 0n),
    last: words.findLast(({ units }) => units > 0n),
    next: words.length + 1,
  }
}

/** All there are: they are few, each somebody's act. */
export function readAllWords(sql: Sql): Promise<OperatorWord[]> {
  return sql.query(
    `SELECT act, owner, about, number, asset, units, because, at_ms FROM operator_words ORDER BY at_ms, owner, about, number`,
  )
}

export async function insertWord(tx: Sql, word: OperatorWord): Promise<void> {
  await tx.query(
    `INSERT INTO operator_words (act, owner, about, number, asset, units, because, at_ms)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
    [word.act, word.owner, word.about, word.number, word.asset, word.units, word.because, word.at_ms],
  )
}

/** Every second word about a deposit turns round the one before: it is closed while their number is odd. */
export function isClosing({ number }: Pick<OperatorWord, 'number'>): boolean {
  return number % 2 === 1
}

/** In a statement on a deposit: how many words close it, or have turned that round. */
export function closingsOf(owner: string, depositKey: string): string {
  return `(SELECT count(*) FROM operator_words AS w
    WHERE w.act = 'closed_unclaimed' AND w.owner = ${owner} AND w.about = ${depositKey})`
}

/** What was said of unclaimed money, the newest first. */
export function listClosed(sql: Sql, limit: number): Promise<OperatorWord[]> {
  return sql.query(
    `SELECT act, owner, about, number, asset, units, because, at_ms FROM operator_words
     WHERE act = 'closed_unclaimed' ORDER BY at_ms DESC, owner, about, number DESC LIMIT $1`,
    [limit],
  )
}

/** What was said of an order, of its deposits and payouts, and of what came to its address and is not its own; the earliest first. */
export function readWordsOfOrder(sql: Sql, orderId: OrderId): Promise<OperatorWord[]> {
  return sql.query(
    `SELECT act, owner, about, number, asset, units, because, at_ms FROM operator_words
     WHERE owner = $1 OR (owner = '${HOUSE}'
       AND about IN (SELECT deposit_key FROM house_deposits WHERE order_id = $1))
     ORDER BY at_ms, act, about, number`,
    [orderId],
  )
}

/** Keeps the watcher from changing what the key names until the transaction ends. */
export async function lockDeposit(tx: Sql, chain: string, depositKey: string): Promise<void> {
  const orders = await tx.query<{ order_id: OrderId }>(
    `SELECT order_id FROM deposits WHERE chain = $1 AND deposit_key = $2 AND role <> 'counted'`,
    [chain, depositKey],
  )
  const ids = orders.map(({ order_id }) => order_id)
  await tx.query(
    `SELECT 1 AS one FROM orders JOIN unnest($1::smallint[], $2::text[]) AS asked (bucket, order_id) USING (bucket, order_id)
     ORDER BY order_id FOR UPDATE OF orders`,
    [ids.map(bucketOf), ids],
  )
  await tx.query('SELECT 1 AS one FROM house_deposits WHERE chain = $1 AND deposit_key = $2 FOR UPDATE', [
    chain,
    depositKey,
  ])
}
