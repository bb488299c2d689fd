import type { ChainId } from '../domain/catalog/networks.ts'
import type { World } from './world.ts'

/**
 * A node that is cut off from its network answers every question, and goes on telling the same. Gives a function that
 * is told the node's height at each look, and throws when it has been the same for too long.
 */
export function expectGrowth({ clock, policy }: World, chain: ChainId): (nodeHeight: number) => void {
  const { [chain]: longestMs = Number.POSITIVE_INFINITY } = policy.standstillMs
  let last = { height: -1, wallMs: 0 }
  return (height) => {
    const wallMs = clock.wallMs()
    if (height !== last.height) last = { height, wallMs }
    const standsMs = wallMs - last.wallMs
    if (standsMs < longestMs) return
    throw new Error(`the node of ${chain} has stood at block ${height} for ${Math.floor(standsMs / 1_000)} s`)
  }
}
