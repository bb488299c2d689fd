import { assert } from '../domain/assert.ts'
import type { AssetId } from '../domain/catalog/assets.ts'
import type { InstantMs } from '../domain/time.ts'
import { arrayText } from './array_text.ts'
import type { Sql } from './database.ts'

export type Reserve = {
  readonly asset: AssetId
  /**
   * Ledger units that could be promised: what the chain holds for payouts less what is promised and what orders still have to exchange or
   * give back. Unclaimed money is in it: what came of it by now no index adds up.
   */
  readonly spendable: bigint
  /** What a payout costs now, in units of the chain's native asset. */
  readonly payoutCost: bigint
  /** A payout would be refused now: its fee is above what the operator allows, or the account lacks what it takes. */
  readonly isUnpayable: boolean
  readonly atMs: InstantMs
  /** The number that was drawn before anything was looked at (`drawFigure`): the higher one was begun later. */
  readonly figure: number
}

/** A number for figures that are begun now, higher than any before. */
export async function drawFigure(sql: Sql): Promise<number> {
  const [row] = await sql.query<{ figure: number }>("SELECT nextval('reserve_figures') AS figure")
  assert(row !== undefined, 'a sequence tells a number')
  return row.figure
}

/** The last number that was drawn: figures with a higher one are begun after this was asked. */
export async function lastFigureDrawn(sql: Sql): Promise<number> {
  const [row] = await sql.query<{ figure: number }>('SELECT last_value AS figure FROM reserve_figures')
  assert(row !== undefined, 'a sequence tells a number')
  return row.figure
}

/** But for those of assets that are not opened, or have to be opened again: what is held of them is not in the books. */
export async function readReserves(sql: Sql): Promise<Reserve[]> {
  const rows = await sql.query<{
    asset: AssetId
    spendable: bigint
    payout_cost: bigint
    is_unpayable: boolean
    at_ms: number
    figure: number
  }>(
    `SELECT asset, spendable, payout_cost, is_unpayable, at_ms, figure FROM reserves
     WHERE EXISTS (SELECT FROM opened_assets o WHERE o.asset = reserves.asset AND o.is_read)`,
  )
  return rows.map((row) => ({
    asset: row.asset,
    spendable: row.spendable,
    payoutCost: row.payout_cost,
    isUnpayable: row.is_unpayable,
    atMs: row.at_ms,
    figure: row.figure,
  }))
}

/** Figures that were begun later stay. Returns those that cannot be paid any more, or can be again. */
export async function writeReserves(
  sql: Sql,
  reserves: readonly Reserve[],
): Promise<Pick<Reserve, 'asset' | 'isUnpayable'>[]> {
  return sql.query(
    `WITH known AS (SELECT asset, is_unpayable FROM reserves WHERE asset = ANY ($1::text[])),
     written AS (
       INSERT INTO reserves (asset, spendable, payout_cost, is_unpayable, at_ms, figure)
       SELECT * FROM unnest($1::text[], $2::numeric[], $3::numeric[], $4::boolean[], $5::bigint[], $6::bigint[])
       ON CONFLICT (asset) DO UPDATE SET spendable = excluded.spendable, payout_cost = excluded.payout_cost,
         is_unpayable = excluded.is_unpayable, at_ms = excluded.at_ms, figure = excluded.figure
       WHERE excluded.figure >= reserves.figure
       RETURNING asset, is_unpayable
     )
     SELECT asset, written.is_unpayable AS "isUnpayable" FROM written LEFT JOIN known USING (asset)
     WHERE written.is_unpayable <> coalesce(known.is_unpayable, false)`,
    [
      arrayText(reserves, ({ asset }) => asset),
      arrayText(reserves, ({ spendable }) => (spendable < 0n ? 0n : spendable)),
      arrayText(reserves, ({ payoutCost }) => payoutCost),
      arrayText(reserves, ({ isUnpayable }) => String(isUnpayable)),
      arrayText(reserves, ({ atMs }) => atMs),
      arrayText(reserves, ({ figure }) => figure),
    ],
  )
}
