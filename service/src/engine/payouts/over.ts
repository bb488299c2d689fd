import type { Chain } from '../../chains/chain.ts'
import type { Attempt } from '../../db/attempts.ts'
import type { ClaimedOutflow } from '../../db/outflows.ts'
import type { SigningWorld } from '../world.ts'
import { claimKeeper } from './claim.ts'

/** Whether attempts of this chain have neither a nonce nor a coin in common, and only time excludes one from another. */
export function excludesByTime(chain: Chain): chain is Chain & Required<Pick<Chain, 'isOver'>> {
  return chain.isOver !== undefined
}

/**
 * Whether none of these attempts is in a block or ever will be. True stays true, whatever happens meanwhile: a further
 * attempt may be drafted, or the outflow given up. The claim is held for as long as the answer takes.
 */
export async function areOver(
  world: SigningWorld,
  chain: Chain,
  outflow: ClaimedOutflow,
  attempts: readonly Attempt[],
): Promise<boolean> {
  if (!excludesByTime(chain)) return false
  const keep = claimKeeper(world, outflow)
  // The latest one first: as long as it is not, nothing has to be read.
  for (const { intent, tx } of attempts.toReversed()) {
    if (!(await chain.isOver(intent, tx?.txHash ?? null, keep))) return false
  }
  return true
}
