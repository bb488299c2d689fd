import type { ChainId } from '../../domain/catalog/networks.ts'
import type { World } from '../world.ts'

export type NodeHead = { readonly height: number; readonly timeMs?: number }

/**
 * A node that is cut off from its network answers every question, and goes on telling the same; one that is catching up tells what
 * was new some time ago. Gives a function that is told the node's head at each look, and throws when it has been the same for too
 * long, or is too old: what was paid since would be missed, and orders would end that were paid in time.
 */
export function expectGrowth({ clock, policy }: World, chain: ChainId): (head: NodeHead) => void {
  const { [chain]: longestMs = Number.POSITIVE_INFINITY } = policy.standstillMs
  let last = { height: -1, wallMs: 0 }
  return ({ height, timeMs = Number.POSITIVE_INFINITY }) => {
    const wallMs = clock.wallMs()
    if (height !== last.height) last = { height, wallMs }
    const standsMs = wallMs - Math.min(last.wallMs, timeMs)
    if (standsMs < longestMs) return
    throw new Error(`the node of ${chain} has stood at block ${height} for ${Math.floor(standsMs / 1_000)} s`)
  }
}
