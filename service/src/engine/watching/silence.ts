import { type ChainHead, silenceMs } from '../../db/chain_heads.ts'
import type { Lease } from '../../db/leases.ts'
import { type ChainId, tellsFinalOnly } from '../../domain/catalog/networks.ts'
import { MINUTE_MS, SECOND_MS } from '../../domain/time.ts'
import type { World } from '../world.ts'
import type { NodeHead } from './growth.ts'

/** Without a whole look for so long, the node may have been away. One slow answer is shorter. */
export const SILENCE_MS = 15 * SECOND_MS
/** Long enough for a node to find peers and hear of their blocks. Where a head's age is trouble sooner, it is not waited for longer. */
const CATCH_UP_MS_MAX = 5 * MINUTE_MS

/**
 * A node that has just come back tells the head it had, and knows of no newer block before it has found a peer: what was paid meanwhile
 * it tells later. Gives a function that is asked at each look, with what was known before it, and says whether the node may still be so:
 * until its head was made after the silence, or, where heads tell no time, for a few minutes. Never where a chain may stand still, nor
 * where only what is final is told: what was paid is known there up to the last block that was read, however old it is. Who
 * takes the lease does not know whether the one before it was still waiting, and waits as after a silence.
 */
export function awaitCatchUp(
  { clock, policy }: World,
  chain: ChainId,
): (lease: Pick<Lease, 'fence'>, known: Pick<ChainHead, 'lookedWallMs'>, nodeHead: NodeHead) => boolean {
  const longestMs = tellsFinalOnly(chain) ? 0 : Math.min(policy.standstillMs[chain] ?? 0, CATCH_UP_MS_MAX)
  let backWallMs = Number.NEGATIVE_INFINITY
  let heldFence: number | null = null
  return ({ fence }, known, { timeMs = Number.NEGATIVE_INFINITY }) => {
    const wallMs = clock.wallMs()
    if (fence !== heldFence || silenceMs(known, wallMs) >= SILENCE_MS) backWallMs = wallMs
    heldFence = fence
    // The distance: a clock that was set back would make it wait for as long as that.
    return Math.abs(wallMs - backWallMs) < longestMs && timeMs < backWallMs
  }
}
