import type { AssetId } from '../domain/catalog/assets.ts'
import type { ChainId } from '../domain/catalog/networks.ts'
import type { InstantMs } from '../domain/time.ts'
import type { Sql } from './database.ts'

/** Ledger against chain at one block, in ledger units of the asset. */
export type Comparison = {
  readonly asset: AssetId
  readonly height: number
  /** What the books expect the chain to hold: the account `wallet` and what is in flight. */
  readonly ledgerUnits: bigint
  /** Mined and not booked yet; part of `ledgerUnits`. */
  readonly inFlight: bigint
  readonly chainUnits: bigint
  /** Chain less ledger: negative is money missing. */
  readonly difference: bigint
}

export type Reconciliation = Comparison & {
  readonly chain: ChainId
  readonly differsSinceMs: InstantMs | null
  /** Comparisons in a row that found a difference. */
  readonly differingCount: number
  readonly atMs: InstantMs
}

type Row = {
  asset: AssetId
  chain: ChainId
  height: number
  ledger_units: bigint
  in_flight: bigint
  chain_units: bigint
  difference: bigint
  differs_since_ms: number | null
  differing_count: number
  at_ms: number
}

export async function readReconciliations(sql: Sql): Promise<Reconciliation[]> {
  const rows = await sql.query<Row>('SELECT * FROM reconciliations ORDER BY chain, asset')
  return rows.map((row) => ({
    asset: row.asset,
    chain: row.chain,
    height: row.height,
    ledgerUnits: row.ledger_units,
    inFlight: row.in_flight,
    chainUnits: row.chain_units,
    difference: row.difference,
    differsSinceMs: row.differs_since_ms,
    differingCount: row.differing_count,
    atMs: row.at_ms,
  }))
}

/**
 * Whether the last comparison of this chain was long enough ago, by the wall clock. None is put off for longer than
 * `restMsMax`: one that says so was noted before the clock was set back.
 */
export async function isComparisonDue(
  sql: Sql,
  chain: ChainId,
  wallMs: number,
  restMsMax: number,
): Promise<boolean> {
  const rows = await sql.query(
    'SELECT 1 AS one FROM reconciliations WHERE chain = $1 AND due_wall_ms > $2 AND due_wall_ms <= $3',
    [chain, wallMs, wallMs + restMsMax],
  )
  return rows.length === 0
}

/** Stores the comparison; answers how many in a row differed before and how many do now. */
export async function saveComparison(
  tx: Sql,
  chain: ChainId,
  comparison: Comparison,
  time: { readonly nowMs: InstantMs; readonly dueWallMs: number },
): Promise<{ readonly before: number; readonly now: number }> {
  const [earlier] = await tx.query<{ differing_count: number }>(
    'SELECT differing_count FROM reconciliations WHERE asset = $1 FOR UPDATE',
    [comparison.asset],
  )
  const before = earlier?.differing_count ?? 0
  const now = comparison.difference === 0n ? 0 : before + 1
  await tx.query(
    `INSERT INTO reconciliations (asset, chain, height, ledger_units, in_flight, chain_units, difference,
       differs_since_ms, differing_count, at_ms, due_wall_ms)
     VALUES ($1, $2, $3, $4, $5, $6, $7, CASE WHEN $8::int > 0 THEN $9::bigint END, $8::int, $9::bigint, $10)
     ON CONFLICT (asset) DO UPDATE SET
       chain = excluded.chain, height = excluded.height, ledger_units = excluded.ledger_units,
       in_flight = excluded.in_flight, chain_units = excluded.chain_units, difference = excluded.difference,
       differs_since_ms = CASE WHEN excluded.differing_count > 0
         THEN coalesce(reconciliations.differs_since_ms, excluded.at_ms) END,
       differing_count = excluded.differing_count, at_ms = excluded.at_ms, due_wall_ms = excluded.due_wall_ms`,
    [
      comparison.asset,
      chain,
      comparison.height,
      comparison.ledgerUnits,
      comparison.inFlight,
      comparison.chainUnits,
      comparison.difference,
      now,
      time.nowMs,
      time.dueWallMs,
    ],
  )
  return { before, now }
}

/** The assets of a chain that differed at least so many times in a row, and by how much the last time. */
export async function findDiffering(
  sql: Sql,
  chain: ChainId,
  countLeast: number,
): Promise<Pick<Comparison, 'asset' | 'difference'>[]> {
  return sql.query<Pick<Comparison, 'asset' | 'difference'>>(
    'SELECT asset, difference FROM reconciliations WHERE chain = $1 AND differing_count >= $2 ORDER BY asset',
    [chain, countLeast],
  )
}

/** Whoever reconciles the chain compares it at its next turn, however long the last comparison took. */
export async function makeComparisonDue(tx: Sql, chain: ChainId): Promise<void> {
  await tx.query('UPDATE reconciliations SET due_wall_ms = 0 WHERE chain = $1', [chain])
}

/** Where reading everything anew goes on: at a bucket of the journal, and at the addresses of a key index. */
type Turn = { readonly nextBucket: number; readonly nextIndex: number }

export async function readTurn(sql: Sql, chain: ChainId): Promise<Turn> {
  const [row] = await sql.query<Turn>(
    'SELECT next_bucket AS "nextBucket", next_index AS "nextIndex" FROM reconciliation_turns WHERE chain = $1',
    [chain],
  )
  return row ?? { nextBucket: 0, nextIndex: 0 }
}

export async function saveNextBucket(sql: Sql, chain: ChainId, nextBucket: number): Promise<void> {
  await sql.query(
    `INSERT INTO reconciliation_turns (chain, next_bucket) VALUES ($1, $2)
     ON CONFLICT (chain) DO UPDATE SET next_bucket = excluded.next_bucket`,
    [chain, nextBucket],
  )
}

export async function saveNextIndex(sql: Sql, chain: ChainId, nextIndex: number): Promise<void> {
  await sql.query(
    `INSERT INTO reconciliation_turns (chain, next_index) VALUES ($1, $2)
     ON CONFLICT (chain) DO UPDATE SET next_index = excluded.next_index`,
    [chain, nextIndex],
  )
}
