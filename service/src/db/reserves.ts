import type { AssetId } from '../domain/catalog/assets.ts'
import type { InstantMs } from '../domain/time.ts'
import { arrayText } from './array_text.ts'
import type { Sql } from './database.ts'

export type Reserve = {
  readonly asset: AssetId
  /** Ledger units that could be promised: what the chain holds for payouts less what is promised and what is still customers'. */
  readonly spendable: bigint
  /** What a payout costs now, in units of the chain's native asset. */
  readonly payoutCost: bigint
  readonly atMs: InstantMs
}

export async function readReserves(sql: Sql): Promise<Reserve[]> {
  const rows = await sql.query<{ asset: AssetId; spendable: bigint; payout_cost: bigint; at_ms: number }>(
    'SELECT asset, spendable, payout_cost, at_ms FROM reserves',
  )
  return rows.map((row) => ({
    asset: row.asset,
    spendable: row.spendable,
    payoutCost: row.payout_cost,
    atMs: row.at_ms,
  }))
}

export async function writeReserves(sql: Sql, reserves: readonly Reserve[]): Promise<void> {
  await sql.query(
    `INSERT INTO reserves (asset, spendable, payout_cost, at_ms)
     SELECT * FROM unnest($1::text[], $2::numeric[], $3::numeric[], $4::bigint[])
     ON CONFLICT (asset) DO UPDATE SET spendable = excluded.spendable, payout_cost = excluded.payout_cost,
       at_ms = excluded.at_ms`,
    [
      arrayText(reserves, ({ asset }) => asset),
      arrayText(reserves, ({ spendable }) => (spendable < 0n ? 0n : spendable)),
      arrayText(reserves, ({ payoutCost }) => payoutCost),
      arrayText(reserves, ({ atMs }) => atMs),
    ],
  )
}
