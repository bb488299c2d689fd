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

/**
 * Whether outflows are stopped because the books hold more than the chain. Some deposit that is booked may not be there: nothing may be
 * paid for one on another chain either. Where the chain holds more, all deposits are there.
 */
export async function isMoneyMissing(sql: Sql, chain: ChainId): Promise<boolean> {
  const differing = await findDiffering(sql, chain, DIFFERENCES_TO_STOP)
  return differing.some(({ difference }) => difference < 0n)
}

/** All chains on which nothing new may be signed or sent. */
export async function readStoppedChains(sql: Sql): Promise<ReadonlySet<ChainId>> {
  const compared = await readReconciliations(sql)
  return new Set(
    compared.filter(({ differingCount }) => isStopping(differingCount)).map(({ chain }) => chain),
  )
}
