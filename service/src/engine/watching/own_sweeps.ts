import type { Transfer } from '../../chains/chain.ts'
import { findOwnSweeps } from '../../db/outflows.ts'
import { depositsLie } from '../../domain/catalog/networks.ts'
import type { Look } from './look.ts'

/**
 * Our own money, from one address of ours to another: nothing arrived, and no order hears of it. The bytes of a sweep
 * are stored before anybody sees them, so that it is known whenever it is seen, unless the database was restored to a state before
 * that: then it is booked as what it looks like, and docs/operating/running.md says what to do about it.
 */
export async function withoutSweeps(
  { world, chain }: Look,
  transfers: readonly Transfer[],
): Promise<readonly Transfer[]> {
  if (depositsLie[chain.family] !== 'addresses' || transfers.length === 0) return transfers
  const sweeps = await findOwnSweeps(world.db, [...new Set(transfers.map(({ txHash }) => txHash))])
  return transfers.filter(({ txHash }) => !sweeps.has(txHash))
}
