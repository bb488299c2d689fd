import type { BlockRef } from '../../chains/chain.ts'
import { blockHashAt } from '../../db/chain_heads.ts'
import type { Look } from './look.ts'

/**
 * Up to where the branch that was read (to `height`) is final, where `before` was known of it and the network now calls `told` final. That
 * counts as soon as the block read at that height is the same one: each read block is the child of the one below it, so that all
 * below are final with it. Of another branch it says nothing, and what was known stays.
 */
export async function finalSoFar(
  { world, chain, finalAhead }: Pick<Look, 'world' | 'chain' | 'finalAhead'>,
  told: BlockRef,
  before: number,
  height: number,
): Promise<number> {
  const ahead = finalAhead.block
  let final = before
  for (const block of ahead === null ? [told] : [ahead, told]) {
    if (block.height <= final || block.height > height) continue
    if ((await blockHashAt(world.db, chain.id, block.height)) === block.hash) final = block.height
  }
  const isWaiting = ahead !== null && ahead.height > height && ahead.height <= told.height
  if (!isWaiting) finalAhead.block = told.height > height ? told : null
  return final
}
