import type { AddressFamily } from '../domain/catalog/networks.ts'
import type { KeyPath } from '../domain/payouts/intent.ts'
import type { InstantMs } from '../domain/time.ts'
import type { Sql } from './database.ts'

/** A key of which a signer derives another address than is stored. */
export type KeystoreDifference = {
  readonly family: AddressFamily
  readonly purpose: KeyPath['purpose']
  readonly index: number
  readonly stored: string
  readonly derived: string
}

/** Of all engines. */
export function readDifferences(sql: Sql): Promise<KeystoreDifference[]> {
  return sql.query<KeystoreDifference>(
    `SELECT family, purpose, key_index AS index, stored, derived FROM keystore_differences ORDER BY family, holder`,
  )
}

/**
 * From now on these are the differences that `holder` has found, at most one a family; and those of others that were not noted anew
 * for `keptMs` are gone. What was noted later than now is of a clock that was set back since.
 */
export async function noteDifferences(
  sql: Sql,
  { holder, wallMs, keptMs }: { holder: string; wallMs: InstantMs; keptMs: number },
  differences: readonly KeystoreDifference[],
): Promise<void> {
  await sql.query(
    `WITH gone AS (
       DELETE FROM keystore_differences
       WHERE CASE WHEN holder = $1 THEN family <> ALL ($4) ELSE abs(noted_wall_ms - $2::bigint) > $3::bigint END
     )
     INSERT INTO keystore_differences (holder, noted_wall_ms, family, purpose, key_index, stored, derived)
     SELECT $1, $2, * FROM unnest($4::text[], $5::text[], $6::integer[], $7::text[], $8::text[])
     ON CONFLICT (holder, family) DO UPDATE SET noted_wall_ms = excluded.noted_wall_ms,
       purpose = excluded.purpose, key_index = excluded.key_index, stored = excluded.stored, derived = excluded.derived`,
    [
      holder,
      wallMs,
      keptMs,
      differences.map(({ family }) => family),
      differences.map(({ purpose }) => purpose),
      differences.map(({ index }) => index),
      differences.map(({ stored }) => stored),
      differences.map(({ derived }) => derived),
    ],
  )
}
