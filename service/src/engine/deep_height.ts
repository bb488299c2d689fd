import type { Chain } from '../chains/chain.ts'
import { type ChainHead, readHead } from '../db/chain_heads.ts'
import type { Sql } from '../db/database.ts'
import { nativeAsset } from '../domain/catalog/assets.ts'
import { chainFacts } from '../domain/catalog/networks.ts'

/**
 * Up to where the network calls final what the watcher has read; infinite where it does not say, and depth decides alone. The node's own
 * word is of no use without that: of several behind one address one may tell what is final, and another stand on another branch.
 */
export function finalOnOurs(
  { finalBlock }: Chain,
  head: Pick<ChainHead, 'finalHeight' | 'leavingAboveHeight'> | null,
): number {
  if (finalBlock === undefined) return Number.POSITIVE_INFINITY
  return Math.min(head?.finalHeight ?? 0, head?.leavingAboveHeight ?? Number.POSITIVE_INFINITY)
}

/** The height that confirmations are counted from, with the head at `height`: capped so that the final block is deep and none above it is. */
export function countedHeight({ id }: Chain, height: number, final: number): number {
  return Math.min(height, final + chainFacts[id].confirmations - 1)
}

/** The highest block whose money is final; what came in above it may go again. */
export async function deepHeight(sql: Sql, chain: Chain): Promise<number> {
  const final = finalOnOurs(chain, chain.finalBlock === undefined ? null : await readHead(sql, chain.id))
  const { height } = await chain.head()
  return Math.max(0, countedHeight(chain, height, final) + 1 - chainFacts[chain.id].confirmations)
}

/** The native coin at an address that is final, in ledger units. */
export async function heldDeep(sql: Sql, chain: Chain, address: string): Promise<bigint> {
  return chain.balance(nativeAsset(chain.id).id, [address], await deepHeight(sql, chain))
}
