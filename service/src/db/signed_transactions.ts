import { parseExact, stringifyExact } from '../domain/exact_json.ts'
import { type OrderId, readPayoutId } from '../domain/orders/identifiers.ts'
import type { Intent } from '../domain/payouts/intent.ts'
import type { CheckedLimit, SignedRecord, SignedStore } from '../signer/signer.ts'
import type { Database, Sql } from './database.ts'

type Row = {
  payout_id: string
  attempt: number
  intent: string
  asset: string
  units: bigint
  tx_hash: string
  bytes: string
  at_ms: number
}

function toRecord(row: Row): SignedRecord {
  return {
    payoutId: row.payout_id,
    attempt: row.attempt,
    intent: parseExact(row.intent) as Intent,
    asset: row.asset,
    units: row.units,
    tx: { txHash: row.tx_hash, bytes: row.bytes },
    atMs: row.at_ms,
  }
}

const COLUMNS = 'payout_id, attempt, intent::text AS intent, asset, units, tx_hash, bytes, at_ms'

/** The signer's store in PostgreSQL (schema `signer`), by default in the service's own database. */
export function signedTransactions(database: Database): SignedStore {
  return {
    spent: (limit, nowMs) => readSpent(database, limit, nowMs),
    attempts: async (payoutId) => (await readAttempts(database, payoutId)).map(toRecord),
    lastOutflow: (orderId) => readLastOutflow(database, orderId),
    insertOnce: (record, limits) =>
      database.transaction(async (tx) => {
        // One signature at a time for an asset, so that two of them cannot both fit under the same limit; and one for an order,
        // so that neither of two outflows overlooks the other. Always in this sequence.
        await tx.query(
          'SELECT pg_advisory_xact_lock(hashtextextended($1, 0)), pg_advisory_xact_lock(hashtextextended($2, 0))',
          [`signer:${record.asset}`, `signer:${readPayoutId(record.payoutId).orderId}`],
        )
        const earlier = await readAttempts(tx, record.payoutId)
        const stored = earlier.find(({ attempt }) => attempt === record.attempt)
        if (stored !== undefined) return toRecord(stored)
        for (const limit of limits) {
          const spent = await readSpent(tx, limit, record.atMs)
          const added = limit.asset === record.asset ? record.units : 0n
          if (spent + added > limit.unitsMax) return 'limit_exceeded'
        }
        if (await insert(tx, record)) return record
        return (await readByHash(tx, record.tx.txHash)) ?? 'overtaken'
      }),
  }
}

function readAttempts(sql: Sql, payoutId: string): Promise<Row[]> {
  return sql.query<Row>(
    `SELECT ${COLUMNS} FROM signer.signed_transactions WHERE payout_id = $1 ORDER BY attempt`,
    [payoutId],
  )
}

async function readByHash(sql: Sql, txHash: string): Promise<SignedRecord | null> {
  const [row] = await sql.query<Row>(`SELECT ${COLUMNS} FROM signer.signed_transactions WHERE tx_hash = $1`, [
    txHash,
  ])
  return row === undefined ? null : toRecord(row)
}

async function readLastOutflow(sql: Sql, orderId: OrderId): Promise<number> {
  const [row] = await sql.query<{ number: number | null }>(
    `SELECT max(split_part(payout_id, ':', 2)::bigint) AS number FROM signer.signed_transactions
     WHERE split_part(payout_id, ':', 1) = $1`,
    [orderId],
  )
  return row?.number ?? 0
}

/**
 * First attempts and later ones have an index each: nearly all are first. Without an upper end: what a clock that was ahead has signed
 * may have been signed a moment ago, and a clock that is set back makes no room.
 */
async function readSpent(
  sql: Sql,
  { asset, windowMs, countsEveryAttempt }: CheckedLimit,
  nowMs: number,
): Promise<bigint> {
  const sumOf = async (which: 'attempt = 1' | 'attempt > 1') => {
    const [row] = await sql.query<{ units: bigint | null }>(
      `SELECT sum(units)::numeric(78,0) AS units FROM signer.signed_transactions
       WHERE asset = $1 AND at_ms > $2 AND ${which}`,
      [asset, nowMs - windowMs],
    )
    return row?.units ?? 0n
  }
  const first = await sumOf('attempt = 1')
  return countsEveryAttempt ? first + (await sumOf('attempt > 1')) : first
}

/** False: a later outflow of the same order was signed already, or the same transaction under another name. */
async function insert(sql: Sql, record: SignedRecord): Promise<boolean> {
  const { orderId, number } = readPayoutId(record.payoutId)
  const inserted = await sql.query(
    `INSERT INTO signer.signed_transactions (payout_id, attempt, intent, asset, units, tx_hash, bytes, at_ms)
     SELECT $1::text, $2::smallint, $3::jsonb, $4::text, $5::numeric, $6::text, $7::text, $8::bigint
     WHERE NOT EXISTS (
       SELECT FROM signer.signed_transactions
       WHERE split_part(payout_id, ':', 1) = $9 AND split_part(payout_id, ':', 2)::bigint > $10
     )
     ON CONFLICT (tx_hash) DO NOTHING RETURNING 1 AS one`,
    [
      record.payoutId,
      record.attempt,
      stringifyExact(record.intent),
      record.asset,
      record.units,
      record.tx.txHash,
      record.tx.bytes,
      record.atMs,
      orderId,
      number,
    ],
  )
  return inserted.length > 0
}
