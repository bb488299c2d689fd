import type { Chain } from '../../chains/chain.ts'
import { chainFacts } from '../../domain/catalog/networks.ts'

/** The highest block whose money is final; what came in above it may go again. */
export async function deepHeight(chain: Chain): Promise<number> {
  const { height } = await chain.head()
  return Math.max(0, height + 1 - chainFacts[chain.id].confirmations)
}
