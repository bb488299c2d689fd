import type { Chain } from '../chains/chain.ts'
import { nativeAsset } from '../domain/catalog/assets.ts'
import { chainFacts } from '../domain/catalog/networks.ts'

/**
 * The newest block that the network says is final; infinite where it does not say, and depth decides alone. Ask for it before the head
 * (or block) that it is compared with: that one is then built on it, whatever branch the node changes to in between.
 */
export async function finalHeight(chain: Chain): Promise<number> {
  return (await chain.finalHeight?.()) ?? Number.POSITIVE_INFINITY
}

/** The height that confirmations are counted from, with the head at `height`: capped so that the final block is deep and none above it is. */
export function countedHeight({ id }: Chain, height: number, final: number): number {
  return Math.min(height, final + chainFacts[id].confirmations - 1)
}

/** The highest block whose money is final; what came in above it may go again. */
export async function deepHeight(chain: Chain): Promise<number> {
  const final = await finalHeight(chain)
  const { height } = await chain.head()
  return Math.max(0, countedHeight(chain, height, final) + 1 - chainFacts[chain.id].confirmations)
}

/** The native coin at an address that is final, in ledger units. */
export async function heldDeep(chain: Chain, address: string): Promise<bigint> {
  return chain.balance(nativeAsset(chain.id).id, [address], await deepHeight(chain))
}
