import type { Block, Chain, Transfer } from '../../chains/chain.ts'
import { findOwnAddresses, type OwnAddress } from '../../db/addresses.ts'
import { advanceHead, beginBlock } from '../../db/chain_heads.ts'
import { upsertCoin } from '../../db/coins.ts'
import { requireLease } from '../../db/leases.ts'
import { assert } from '../../domain/assert.ts'
import { amountOf, toChainUnits } from '../../domain/money/amount.ts'
import type { BlockRef } from '../../domain/orders/order.ts'
import type { InstantMs } from '../../domain/time.ts'
import { noteHouseDeposit } from '../books/house.ts'
import type { World } from '../world.ts'
import { gatherCrumbs } from './crumbs.ts'
import { spareFullOrders } from './full_orders.ts'
import { keepLease, type Look } from './look.ts'
import { isForOrder, type Move } from './moves.ts'
import { isTold } from './open_assets.ts'
import { withoutSweeps } from './own_sweeps.ts'
import { tellOrders } from './tell_orders.ts'

/** A look takes at most so many blocks, so that confirmations and mempool are not kept waiting by a long way to go. */
const BLOCKS_A_LOOK = 50

/** How far it has come; `minedAtMs` of the last block that was read now, 0 when there was none. */
type ReadUpTo = { readonly height: number; readonly minedAtMs: InstantMs }

/** Every block above `from`, and how far that has come. Of `begun` some orders may have heard already. */
export async function readNewBlocks(
  look: Look,
  from: BlockRef,
  nodeHeight: number,
  begun: BlockRef | null,
): Promise<ReadUpTo> {
  const { world, chain } = look
  let head = { ...from, minedAtMs: 0 }
  const last = Math.min(nodeHeight, from.height + BLOCKS_A_LOOK)
  for (let height = from.height + 1; height <= last; height += 1) {
    const block = await readOwnBlock(world, chain, height)
    await keepLease(look)
    // Gone, or on another branch than the one we stand on: the next look finds the fork first.
    if (block === null || block.block.parentHash !== head.hash) return head
    // Another took its place since we asked: what was told of it is taken back first.
    if (begun?.height === height && begun.hash !== block.block.hash) return head
    const minedAtMs = await noteBlock(look, block)
    head = { height, hash: block.block.hash, minedAtMs }
  }
  return head
}

type OwnBlock = { readonly block: Block; readonly ours: ReadonlyMap<string, OwnAddress> }

async function readOwnBlock(world: World, chain: Chain, height: number): Promise<OwnBlock | null> {
  let ours = new Map<string, OwnAddress>()
  const block = await chain.readBlock(height, async (addresses) => {
    ours = await findOwnAddresses(world.db, chain.family, addresses)
    return new Set(ours.keys())
  })
  return block === null ? null : { block, ours }
}

/** Answers when it was made. */
async function noteBlock(look: Look, { block, ours }: OwnBlock): Promise<InstantMs> {
  const { world, chain, lease } = look
  const ref = { height: block.height, hash: block.hash }
  // The service's time when the block was made, unless its timestamp runs ahead of us.
  const minedAtMs = Math.min(world.clock.nowMs(), world.clock.fromWallMs(block.timeMs))
  const transfers = await withoutSweeps(look, block.transfers)
  const arrived = transfers.map((transfer): Move => {
    const own = ours.get(transfer.to)
    assert(own !== undefined, 'a chain tells only transfers to ours')
    return { transfer, own }
  })
  const ofUse = arrived.filter((move) => isTold(look, move))
  // As most blocks bring nothing, noting one is a single statement.
  if (ofUse.length === 0) {
    await advanceHead(world.db, lease, chain.id, ref)
    return minedAtMs
  }
  const moves = await spareFullOrders(world, chain, ref, await gatherCrumbs(world, chain, ref, ofUse))
  const forOrders = moves.filter((move) => isForOrder(chain, move))
  if (forOrders.length > 0) {
    await world.db.transaction(async (tx) => {
      await requireLease(tx, lease)
      await beginBlock(tx, chain.id, ref)
    })
  }
  await tellOrders(look, forOrders, `mined:${ref.hash}`, ref, minedAtMs)
  await world.db.transaction(async (tx) => {
    await requireLease(tx, lease)
    for (const move of moves) {
      const { transfer, own } = move
      if (chain.model === 'coins') await upsertCoin(tx, chain.id, toCoin(transfer, own), ref)
      if (isForOrder(chain, move)) continue
      await noteHouseDeposit({ ...world, db: tx }, chain.id, transfer, own, ref)
    }
    await advanceHead(tx, lease, chain.id, ref)
  })
  return minedAtMs
}

function toCoin(transfer: Transfer, own: OwnAddress) {
  const [txHash = '', index = ''] = transfer.id.split(':')
  assert(/^\d+$/.test(index) && typeof transfer.asset === 'string', 'a coin is named txid:vout')
  return {
    txHash,
    index: Number.parseInt(index, 10),
    satoshi: toChainUnits(amountOf(transfer.asset, transfer.units)),
    address: own.address,
    key: own.key,
  }
}
