import type { Chain } from '../../chains/chain.ts'
import { type OwnAddress, readAddressesOfKeys, readLastKeyIndex } from '../../db/addresses.ts'
import { wasEverTold } from '../../db/chain_looks.ts'
import { type AddressFamily, chainFacts, chainIds } from '../../domain/catalog/networks.ts'
import type { BlockRef } from '../../domain/orders/order.ts'
import { atOnce } from '../at_once.ts'
import type { World } from '../world.ts'
import type { Move } from './moves.ts'

/** So many keys are asked about together, and apart only where together they hold something. */
const KEYS_A_QUESTION = 500

/**
 * What addresses of ours hold at the block where a chain is first looked at, as what came there. Chains of one family have
 * the same addresses: whoever saw one on the other chain may have sent to it here before this one is offered, and what is
 * in no book would be a difference between books and chain for ever. Empty for a chain that something was told of before:
 * what its addresses hold is in the books, whatever became of its head.
 */
export async function readOpening(
  { db, policy }: World,
  chain: Chain,
  { height, hash }: BlockRef,
  keepLease: () => Promise<void>,
): Promise<readonly Move[]> {
  if (await wasEverTold(db, chain.id)) return []
  const lastIndex = await readLastKeyIndex(db, chain.family)
  const questions = Math.ceil((lastIndex + 1) / KEYS_A_QUESTION)
  const found = await atOnce(
    policy.atOnce,
    [...Array(questions).keys()],
    async (question): Promise<Move[]> => {
      await keepLease()
      const firstIndex = question * KEYS_A_QUESTION
      const ours = await readAddressesOfKeys(db, chain.family, firstIndex, firstIndex + KEYS_A_QUESTION)
      return heldBy(chain, ours, { height, hash })
    },
  )
  return found.flat()
}

async function heldBy(
  chain: Chain,
  ours: readonly OwnAddress[],
  { height, hash }: BlockRef,
): Promise<Move[]> {
  const moves: Move[] = []
  for (const asset of chain.assets) {
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

/** Whether another chain has the same addresses. */
export function sharesAddresses(family: AddressFamily): boolean {
  return chainIds.filter((id) => chainFacts[id].family === family).length > 1
}
