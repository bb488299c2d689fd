import { blockHashAt, readHead } from '../../db/chain_heads.ts'
import { requireLease } from '../../db/leases.ts'
import { noteOpened, readUnopened, type UnopenedAsset } from '../../db/opened_assets.ts'
import { assert } from '../../domain/assert.ts'
import type { AssetId } from '../../domain/catalog/assets.ts'
import { depositsLie } from '../../domain/catalog/networks.ts'
import type { BlockRef } from '../../domain/orders/order.ts'
import { noteHouseDeposit } from '../books/house.ts'
import { keepLease, type Look } from './look.ts'
import type { Move } from './moves.ts'
import { readOpening } from './opening.ts'

/**
 * A token may be listed when addresses of ours have it already: whoever saw them on the chain can have sent it there, it was in no
 * book, and outflows would stop for good. So what is held of it at the first head that is looked at with it is booked as a sum, and what
 * later blocks bring is told. A block with a sum that leaves the chain takes the sum with it; then it is read anew where the
 * chain parted, and nothing that was told of later blocks is in it.
 */
export async function openAssets(look: Look): Promise<void> {
  const { world, chain } = look
  const unopened = await readUnopened(world.db, chain.assets)
  if (unopened.length === 0) return
  const head = await readHead(world.db, chain.id)
  assert(head !== null, 'a look begins with a head')
  for (const one of unopened) await openAsset(look, one, head.block)
}

async function openAsset(look: Look, { asset, height }: UnopenedAsset, head: BlockRef): Promise<void> {
  const { world, chain, lease } = look
  const block = height === null ? head : await blockAt(look, height)
  const opening = lieOnAddresses(chain)
    ? await readOpening(world, chain, [asset], block, () => keepLease(look))
    : []
  // Of a block that has left meanwhile the node tells what is held on the other branch.
  if ((await chain.blockHash(block.height)) !== block.hash)
    throw new Error(`${chain.id} has left block ${block.height} while ${asset} was opened there`)
  await world.db.transaction(async (tx) => {
    await requireLease(tx, lease)
    for (const { transfer, own } of opening) {
      await noteHouseDeposit({ ...world, db: tx }, chain.id, transfer, own, block)
    }
    await noteOpened(tx, [asset], block.height)
  })
  world.log.warn({ chain: chain.id, asset, block, holders: opening.length }, 'an asset was opened')
}

async function blockAt({ world, chain }: Look, height: number): Promise<BlockRef> {
  const hash = await blockHashAt(world.db, chain.id, height)
  assert(hash !== null, `block ${height} of ${chain.id} is known: the chain parted there`)
  return { height, hash }
}

/** Coins and what tags tell apart are native coin, which is told from a chain's first look on. */
function lieOnAddresses({ family }: Look['chain']): boolean {
  return depositsLie[family] === 'addresses'
}

/** Of what nothing is told yet: it will be in the sum. */
export async function readUntoldAssets({
  world: { db },
  chain,
}: Pick<Look, 'world' | 'chain'>): Promise<ReadonlySet<AssetId>> {
  if (!lieOnAddresses(chain)) return new Set()
  const unopened = await readUnopened(db, chain.assets)
  return new Set(unopened.filter(({ height }) => height === null).map(({ asset }) => asset))
}

export function isTold({ untoldAssets }: Pick<Look, 'untoldAssets'>, { transfer }: Move): boolean {
  return typeof transfer.asset !== 'string' || !untoldAssets.has(transfer.asset)
}
