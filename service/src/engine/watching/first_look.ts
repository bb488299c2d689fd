import type { Chain } from '../../chains/chain.ts'
import { startHead } from '../../db/chain_heads.ts'
import { type LookedBefore, readLookedBefore, wasEverTold } from '../../db/chain_looks.ts'
import { requireLease } from '../../db/leases.ts'
import { noteOpened } from '../../db/opened_assets.ts'
import { assert } from '../../domain/assert.ts'
import { type AddressFamily, chainFacts, chainIds } from '../../domain/catalog/networks.ts'
import type { BlockRef } from '../../domain/orders/order.ts'
import { noteHouseDeposit } from '../books/house.ts'
import { countedHeight } from '../deep_height.ts'
import { REACH_BLOCKS } from '../reach.ts'
import type { Look } from './look.ts'
import { readOpening } from './opening.ts'

/** What was known before this look; at the very first one the chain begins where its node is now, or a little deeper. */
export async function lookedBefore(
  look: Pick<Look, 'world' | 'chain' | 'lease' | 'hold'>,
  { nodeHead, toldFinal }: { readonly nodeHead: BlockRef; readonly toldFinal: BlockRef | null },
): Promise<LookedBefore> {
  const { world, chain, lease } = look
  const known = await readLookedBefore(world.db, chain.id, chain.assets)
  if (known !== null) return known
  const below = await blocksBelow(chain, nodeHead, toldFinal)
  const deepest = below.at(-1)
  // One that is so young is a local one, and its tokens may be younger.
  const isOpened = sharesAddresses(chain.family) && deepest !== undefined && deepest.height > REACH_BLOCKS
  // What addresses hold of a chain that something was told of before is in the books, whatever became of its head.
  const wasTold = await wasEverTold(world.db, chain.id)
  const opening = isOpened && !wasTold ? await readOpening(look, chain.assets, deepest) : []
  // Whole or not at all: a head without blocks to go back to could not follow a reorganisation.
  await world.db.transaction(async (tx) => {
    await requireLease(tx, lease)
    const nowMs = world.clock.nowMs()
    // What is held is known of a block that is never taken back, and what came since is read.
    if (isOpened) await startHead(tx, chain.id, deepest, nowMs)
    else await startHead(tx, chain.id, nodeHead, nowMs, below)
    if (!wasTold) await noteOpened(tx, chain.assets, 0)
    for (const { transfer, own } of opening) {
      await noteHouseDeposit({ ...world, db: tx }, chain.id, transfer, own, deepest ?? nodeHead)
    }
  })
  const started = await readLookedBefore(world.db, chain.id, chain.assets)
  assert(started !== null, 'a head that was just stored is there')
  return started
}

/** Whether another chain has the same addresses: whoever saw one there may have sent to it here before this chain is offered. */
function sharesAddresses(family: AddressFamily): boolean {
  return chainIds.filter((id) => chainFacts[id].family === family).length > 1
}

/** As many as a reorganisation may take before what is deeper counts as final. */
async function blocksBelow(
  chain: Chain,
  { height }: BlockRef,
  toldFinal: BlockRef | null,
): Promise<readonly BlockRef[]> {
  const final = toldFinal?.height ?? Number.POSITIVE_INFINITY
  // No block was read yet that it could be compared with. Where it is another node's word, the next look asks again.
  if (toldFinal !== null && (await chain.blockHash(final)) !== toldFinal.hash)
    throw new Error(
      `the node of ${chain.id} calls block ${final} final, and has another or none at that height`,
    )
  const deep = countedHeight(chain, height, final) + 1 - chainFacts[chain.id].confirmations
  const lowest = Math.max(0, deep, height - REACH_BLOCKS)
  const below: BlockRef[] = []
  for (let at = height - 1; at >= lowest; at -= 1) {
    const hash = await chain.blockHash(at)
    if (hash !== null) below.push({ height: at, hash })
  }
  return below
}
