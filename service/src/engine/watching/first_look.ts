import type { Chain } from '../../chains/chain.ts'
import { startHead } from '../../db/chain_heads.ts'
import { type LookedBefore, readLookedBefore } from '../../db/chain_looks.ts'
import { type Lease, requireLease } from '../../db/leases.ts'
import { assert } from '../../domain/assert.ts'
import { chainFacts } from '../../domain/catalog/networks.ts'
import type { BlockRef } from '../../domain/orders/order.ts'
import { countedHeight } from '../deep_height.ts'
import { REACH_BLOCKS } from '../reach.ts'
import type { World } from '../world.ts'

/** What was known before this look; at the very first one the chain begins where its node is now. */
export async function lookedBefore(
  world: World,
  chain: Chain,
  lease: Lease,
  { nodeHead, final }: { readonly nodeHead: BlockRef; readonly final: number },
): Promise<LookedBefore> {
  const known = await readLookedBefore(world.db, chain.id, chain.assets)
  if (known !== null) return known
  const below = await blocksBelow(chain, nodeHead, final)
  // Whole or not at all: a head without blocks to go back to could not follow a reorganisation.
  await world.db.transaction(async (tx) => {
    await requireLease(tx, lease)
    await startHead(tx, chain.id, nodeHead, world.clock.nowMs(), below)
  })
  const started = await readLookedBefore(world.db, chain.id, chain.assets)
  assert(started !== null, 'a head that was just stored is there')
  return started
}

/** As many as a reorganisation may take before what is deeper counts as final. */
async function blocksBelow(chain: Chain, { height }: BlockRef, final: number): Promise<readonly BlockRef[]> {
  const deep = countedHeight(chain, height, final) + 1 - chainFacts[chain.id].confirmations
  const lowest = Math.max(0, deep, height - REACH_BLOCKS)
  const below: BlockRef[] = []
  for (let at = height - 1; at >= lowest; at -= 1) {
    const hash = await chain.blockHash(at)
    if (hash !== null) below.push({ height: at, hash })
  }
  return below
}
