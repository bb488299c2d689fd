import type { Chain } from '../../chains/chain.ts'
import { readLinkedChain, silenceMs } from '../../db/chain_heads.ts'
import { chainFacts, tellsFinalOnly } from '../../domain/catalog/networks.ts'
import type { BlockRef } from '../../domain/orders/order.ts'
import { countedHeight, finalOnOurs } from '../deep_height.ts'
import type { SigningWorld } from '../world.ts'
import { type Progress, troubled } from './progress.ts'

const LOOK_AGAIN_MS = 700

/**
 * Why nothing ends in this block yet; null: it is as deep as it has to be. Of several nodes behind one address one tells of the
 * transaction, another one how high the chain is, and each may be on a branch of its own. So depth is counted on the blocks that the
 * watcher read, each of which names the one before it, and the block has to be one of them.
 */
export async function whyWaitUntilDeep(
  world: SigningWorld,
  chain: Chain,
  block: BlockRef,
): Promise<Progress | null> {
  const looked = await findLooked(world, chain, block)
  const deepAt = block.height + chainFacts[chain.id].confirmations - 1
  if (looked.height < deepAt && looked.isSilent)
    return troubled(`it is in block ${block.height}, and ${chain.id} was not looked at whole for long`)
  if (countedHeight(chain, looked.height, looked.final) < deepAt)
    return { kind: 'again', inMs: LOOK_AGAIN_MS, atHeight: looked.height < deepAt ? deepAt : 'next' }
  // Asked as well: the watcher may have stopped, or not have heard yet that its branch has lost.
  const told = await chain.blockHash(block.height)
  if (told === block.hash && (looked.hash ?? told) === block.hash) return null
  return {
    kind: 'trouble',
    message: `block ${block.height} is another one at present`,
    inMs: LOOK_AGAIN_MS,
  }
}

type Looked = {
  readonly height: number
  /** As `finalOnOurs` has it. */
  readonly final: number
  /** Of the block at the height that was asked about. Null: it is below those that are remembered, and stands on what any node says. */
  readonly hash: string | null
  readonly isSilent: boolean
}

async function findLooked(
  { db, clock, policy }: SigningWorld,
  chain: Chain,
  block: BlockRef,
): Promise<Looked> {
  // There is no other branch, and whichever node tells of a block, that block is final.
  if (tellsFinalOnly(chain.id)) {
    const { height } = await chain.head()
    return { height, final: height, hash: null, isSilent: false }
  }
  const linked = await readLinkedChain(db, chain.id, block.height)
  const final = finalOnOurs(chain, linked)
  if (linked === null) return { height: -1, final, hash: null, isSilent: true }
  const isSilent = silenceMs(linked, clock.wallMs()) >= policy.chainTroubleMs
  return { height: linked.height, final, hash: linked.hash, isSilent }
}
