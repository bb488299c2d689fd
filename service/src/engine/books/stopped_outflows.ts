import type { Sql } from '../../db/database.ts'
import { findDiffering, readReconciliations } from '../../db/reconciliations.ts'
import type { ChainId } from '../../domain/catalog/networks.ts'

export const DIFFERENCES_TO_STOP = 3

/** Whether so many differing comparisons in a row stop outflows. */
export function isStopping(differingCount: number): boolean {
  return differingCount >= DIFFERENCES_TO_STOP
}

/** Whether nothing new may be signed or sent on this chain, because it and the ledger disagree. */
export async function isOutflowStopped(sql: Sql, chain: ChainId): Promise<boolean> {
  return (await findDiffering(sql, chain, DIFFERENCES_TO_STOP)).length > 0
}

/** All chains of which that is so. */
export async function readStoppedChains(sql: Sql): Promise<ReadonlySet<ChainId>> {
  const compared = await readReconciliations(sql)
  return new Set(
    compared.filter(({ differingCount }) => isStopping(differingCount)).map(({ chain }) => chain),
  )
}
