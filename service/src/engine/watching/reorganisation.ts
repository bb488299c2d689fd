import type { Chain } from '../../chains/chain.ts'
import { beginLeaving, blockHashAt, rewindHead } from '../../db/chain_heads.ts'
import type { LookedBefore } from '../../db/chain_looks.ts'
import { unmineCoins } from '../../db/coins.ts'
import { findDepositsInBlock } from '../../db/deposits.ts'
import { requireLease } from '../../db/leases.ts'
import { openAgain } from '../../db/opened_assets.ts'
import { wakeUnswept } from '../../db/unswept.ts'
import { assetIdsOn } from '../../domain/catalog/assets.ts'
import { chainFacts } from '../../domain/catalog/networks.ts'
import type { BlockRef } from '../../domain/orders/order.ts'
import { unmineHouseDeposits } from '../books/house.ts'
import { orphanOutflows } from '../payouts/orphan.ts'
import type { World } from '../world.ts'
import { keepLease, type Look } from './look.ts'
import { type News, tellOrderByOrder } from './tell_orders.ts'

/** A branch that wins may be shorter, by the slots that nobody used (EVM) or where the difficulty changes (Bitcoin), and no more than so. */
const SHORTER_MAX = 2

/**
 * A node that ends at a block we know and does not have the later ones is behind, and no proof that they left the chain: a
 * branch that replaces them has a block of its own where they part. A node whose head is far below ours counts as behind
 * too, whatever block that is: nodes that stand still often stand on a block that lost. Nothing is taken back on their word.
 */
export async function requireNotBehind({ db }: World, chain: Chain, block: BlockRef, nodeHead: BlockRef) {
  const missing = block.height - nodeHead.height
  if (missing <= 0) return
  const isBranch = (await blockHashAt(db, chain.id, nodeHead.height)) !== nodeHead.hash
  if (missing <= SHORTER_MAX && isBranch) return
  throw new Error(`the node of ${chain.id} is ${missing} blocks behind what it told before`)
}

/** Whether blocks that we told of are no longer on the best chain; asked here so that nothing is read in vain. */
async function hasForked({ chain }: Look, { head, begun }: LookedBefore, nodeHead: BlockRef) {
  const { block } = head
  if (head.leavingAboveHeight !== null) return true
  if (begun !== null && !(await isStillThere(chain, begun, nodeHead))) return true
  if (nodeHead.hash === block.hash) return false
  return !(await isStillThere(chain, block, nodeHead))
}

/**
 * Whether a block is on the best chain. Throws where the node tells of a later block and has none at this height: another one
 * behind the same address is behind, or the chain has become shorter just now, and the next look will tell which.
 */
async function isStillThere(chain: Chain, block: BlockRef, nodeHead: BlockRef): Promise<boolean> {
  const hash = await chain.blockHash(block.height)
  if (hash === null && block.height <= nodeHead.height)
    throw new Error(
      `the node of ${chain.id} tells of block ${nodeHead.height} and does not have block ${block.height}`,
    )
  return hash === block.hash
}

/**
 * Goes back to the last block that is still on the best chain, telling every deposit above it. Null: none has left. Who died
 * in the middle of it is followed by somebody who goes on, also when the chain has come back to what it had left.
 */
export async function followReorganisation(
  look: Look,
  before: LookedBefore,
  nodeHead: BlockRef,
): Promise<BlockRef | null> {
  const { world, chain, lease, branch } = look
  if (!(await hasForked(look, before, nodeHead))) return null
  const { head, begun } = before
  const orphans = begun === null ? [] : [begun]
  const knownHeight = head.leavingAboveHeight ?? Number.POSITIVE_INFINITY
  let fork: BlockRef = head.block
  while (fork.height > knownHeight || !(await isStillThere(chain, fork, nodeHead))) {
    await keepLease(look)
    orphans.push(fork)
    fork = await knownBlock(look, fork.height - 1)
  }
  const depth = head.block.height - fork.height
  world.log.warn({ chain: chain.id, depth, fork }, 'the chain was reorganised')
  // First of all: whoever hears that a deposit is gone from its address must know that its sweep is, too.
  await leaveBlocks(
    look,
    fork,
    orphans.filter(({ height }) => height <= knownHeight),
  )
  for (const { hash } of orphans) {
    const deposits = await findDepositsInBlock(world.db, chain.id, hash)
    const news = deposits.map(({ orderId, key }): News => {
      const fact = { kind: 'DepositUnmined', key } as const
      const wake: News['alongside'] = (tx, { terms }) => wakeUnswept(tx, chain.id, terms.depositAddress)
      return { orderId, what: `${key}:unmined:${hash}`, fact, alongside: wake }
    })
    await tellOrderByOrder(look, news)
  }
  await world.db.transaction(async (tx) => {
    await requireLease(tx, lease)
    for (const { hash } of orphans) {
      await unmineCoins(tx, chain.id, hash)
      await unmineHouseDeposits(tx, chain.id, hash, branch, world.clock.nowMs())
    }
    await openAgain(tx, assetIdsOn(chain.id), fork.height)
    await rewindHead(tx, chain.id, fork, cautiousUntil(chain, head.block, depth))
  })
  return fork
}

/** Notes what is about to be told, once: outflows that were final in these blocks are sent again from now on. */
async function leaveBlocks(look: Look, fork: BlockRef, blocks: readonly BlockRef[]): Promise<void> {
  const { world, chain, lease, branch } = look
  if (blocks.length === 0) return
  await orphanOutflows(world, chain.id, { kind: 'named', blocks }, branch, async (tx) => {
    await requireLease(tx, lease)
    await beginLeaving(tx, chain.id, fork)
  })
}

async function knownBlock({ world, chain }: Look, height: number): Promise<BlockRef> {
  const hash = await blockHashAt(world.db, chain.id, height)
  if (hash === null) {
    throw new Error(`${chain.id} was reorganised below every block we know; an operator must look at this`)
  }
  return { height, hash }
}

/** Deeper than half of what we wait for: somebody may be rewriting the chain, so nothing leaves on its word for a while. */
function cautiousUntil(chain: Chain, left: BlockRef, depth: number): number {
  const { confirmations } = chainFacts[chain.id]
  return depth * 2 > confirmations ? left.height + confirmations : 0
}
