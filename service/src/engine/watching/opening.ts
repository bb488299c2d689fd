import type { Chain } from '../../chains/chain.ts'
import { type OwnAddress, readAddressesOfKeys, readLastKeyIndex } from '../../db/addresses.ts'
import type { AssetId } from '../../domain/catalog/assets.ts'
import type { BlockRef } from '../../domain/orders/order.ts'
import { atOnce } from '../at_once.ts'
import type { World } from '../world.ts'
import type { Move } from './moves.ts'

/** So many keys are asked about together, and apart only where together they hold something. */
const KEYS_A_QUESTION = 500

/**
 * What addresses of ours hold of these assets at a block, as what came there. Of what came before anybody told of it there is nothing
 * else to be known, and what is in no book would be a difference between books and chain for ever.
 */
export async function readOpening(
  { db, policy }: World,
  chain: Chain,
  assets: readonly AssetId[],
  block: BlockRef,
  keepLease: () => Promise<void>,
): Promise<readonly Move[]> {
  const lastIndex = await readLastKeyIndex(db, chain.family)
  const questions = Math.ceil((lastIndex + 1) / KEYS_A_QUESTION)
  const found = await atOnce(
    policy.atOnce,
    [...Array(questions).keys()],
    async (question): Promise<Move[]> => {
      await keepLease()
      const firstIndex = question * KEYS_A_QUESTION
      const ours = await readAddressesOfKeys(db, chain.family, firstIndex, firstIndex + KEYS_A_QUESTION)
      return heldBy(chain, assets, ours, block)
    },
  )
  return found.flat()
}

async function heldBy(
  chain: Chain,
  assets: readonly AssetId[],
  ours: readonly OwnAddress[],
  { height, hash }: BlockRef,
): Promise<Move[]> {
  const moves: Move[] = []
  for (const asset of assets) {
    const addresses = ours.map(({ address }) => address)
    if ((await chain.balance(asset, addresses, height)) === 0n) continue
    for (const own of ours) {
      const units = await chain.balance(asset, [own.address], height)
      if (units === 0n) continue
      const id = `opening:${own.address}:${asset}`
      moves.push({ transfer: { id, txHash: hash, to: own.address, asset, units, isOfBlock: true }, own })
    }
  }
  return moves
}
