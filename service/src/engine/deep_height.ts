import type { Chain } from '../chains/chain.ts'
import { nativeAsset } from '../domain/catalog/assets.ts'
import { chainFacts } from '../domain/catalog/networks.ts'

/**
 * The newest block that the network says is final; infinite where it does not say, and depth decides alone. Asked for before the
 * head, or the block, that it is held against: that one stands on it then, whatever branch the node goes over to meanwhile.
 */
export async function finalHeight(chain: Chain): Promise<number> {
  return (await chain.finalHeight?.()) ?? Number.POSITIVE_INFINITY
}

/** How far confirmations are counted, with the head at `height`: no further than makes what is final deep, and nothing above it. */
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
