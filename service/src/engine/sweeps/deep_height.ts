import type { Chain } from '../../chains/chain.ts'
import { nativeAsset } from '../../domain/catalog/assets.ts'
import { chainFacts } from '../../domain/catalog/networks.ts'

/** The highest block whose money is final; what came in above it may go again. */
export async function deepHeight(chain: Chain): Promise<number> {
  const { height } = await chain.head()
  return Math.max(0, height + 1 - chainFacts[chain.id].confirmations)
}

/** The native coin at an address that is final, in ledger units. */
export async function heldDeep(chain: Chain, address: string): Promise<bigint> {
  return chain.balance(nativeAsset(chain.id).id, [address], await deepHeight(chain))
}
