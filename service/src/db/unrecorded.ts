import { assets } from '../domain/catalog/assets.ts'
import { chainIds } from '../domain/catalog/networks.ts'
import type { PayoutId } from '../domain/payouts/intent.ts'
import { HOUR_MS, type InstantMs } from '../domain/time.ts'
import type { Sql } from './database.ts'
import { LIVE } from './outflows.ts'

const LIVE_MAX = 1_000
const MINED_MAX = 100

type Signed = { readonly payout_id: PayoutId; readonly attempt: number }

/** What was signed counts against limits for a day, and may have been drafted, and signed, a day before it was sent. */
const COUNTED_MS = 48 * HOUR_MS

/**
 * Outflows that the service has bytes for, and `record`, the signer's database, does not know: of those that are under way, and of the
 * ones mined last on each chain. All others would take the longer the more there ever were. What is mined, counts against no limit any
 * more, and is older than all that the record knows is missed only by an empty one: a record that was lost and begun anew is not
 * complained of for ever, and one of an earlier state is.
 */
export async function findUnrecorded(service: Sql, record: Sql, nowMs: InstantMs): Promise<PayoutId[]> {
  const knownFromMs = (await readBeginning(record)) ?? 0
  const signed = await service.query<Signed>(
    `SELECT DISTINCT payout_id, attempt FROM attempts JOIN (
       (SELECT bucket, payout_id, true AS is_live FROM outflows WHERE state IN ${LIVE} LIMIT $1)
       UNION ALL
       SELECT bucket, payout_id, false FROM unnest($2::text[]) AS of_chain CROSS JOIN LATERAL (
         SELECT bucket, payout_id FROM outflows WHERE chain = of_chain AND mined_height IS NOT NULL
         ORDER BY mined_height DESC LIMIT $3
       ) AS mined
     ) AS looked_at USING (bucket, payout_id)
     WHERE bytes IS NOT NULL
       AND (is_live OR drafted_at_ms >= $4 OR greatest(drafted_at_ms, broadcast_at_ms) >= $5)`,
    [LIVE_MAX, chainIds, MINED_MAX, knownFromMs, nowMs - COUNTED_MS],
  )
  const unknown = await record.query<{ payout_id: PayoutId }>(
    `SELECT DISTINCT payout_id FROM unnest($1::text[], $2::smallint[]) AS asked (payout_id, attempt)
     WHERE NOT EXISTS (
       SELECT FROM signer.signed_transactions AS known
       WHERE known.payout_id = asked.payout_id AND known.attempt = asked.attempt
     ) ORDER BY payout_id`,
    [signed.map(({ payout_id }) => payout_id), signed.map(({ attempt }) => attempt)],
  )
  return unknown.map(({ payout_id }) => payout_id)
}

/**
 * When the record begins; null: it is empty. Out of `signed_transactions_recent`, asset by asset: a record of years is read in no time. A
 * first attempt is signed before any other.
 */
async function readBeginning(record: Sql): Promise<InstantMs | null> {
  const [begun] = await record.query<{ at_ms: InstantMs | null }>(
    `SELECT min(earliest.at_ms) AS at_ms FROM unnest($1::text[]) AS of_asset CROSS JOIN LATERAL (
       SELECT at_ms FROM signer.signed_transactions WHERE asset = of_asset AND attempt = 1 ORDER BY at_ms LIMIT 1
     ) AS earliest`,
    [assets.map(({ id }) => id)],
  )
  return begun?.at_ms ?? null
}
