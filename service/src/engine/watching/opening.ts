import type { Chain } from '../../chains/chain.ts'
import { type OwnAddress, readAddressesOfKeys, readLastKeyIndex } from '../../db/addresses.ts'
import type { AssetId } from '../../domain/catalog/assets.ts'
import type { BlockRef } from '../../domain/orders/order.ts'
import { atOnce } from '../at_once.ts'
import { keepWhile } from '../lease.ts'
import { keepLease, type Look } from './look.ts'
import type { Move } from './moves.ts'

/** So many keys are asked about together, and apart only where together they hold something. */
const KEYS_A_QUESTION = 500

/**
 * What addresses of ours hold of these assets at a block, as what came there. Of what came before anybody told of it there is nothing
 * else to be known, and what is in no book would be a difference between books and chain for ever. The lease is kept meanwhile:
 * TRON is asked about one address at a time, so that one question takes longer than a lease lasts.
 */
export function readOpening(
  look: Pick<Look, 'world' | 'chain' | 'lease' | 'hold'>,
  assets: readonly AssetId[],
  block: BlockRef,
): Promise<readonly Move[]> {
  return keepWhile(look.world, look, () => findMoves(look, assets, block))
}

async function findMoves(
  look: Pick<Look, 'world' | 'chain' | 'lease' | 'hold'>,
  assets: readonly AssetId[],
  block: BlockRef,
): Promise<readonly Move[]> {
  const { world, chain } = look
  const { db, policy } = world
  const lastIndex = await readLastKeyIndex(db, chain.family)
  const questions = Math.ceil((lastIndex + 1) / KEYS_A_QUESTION)
  const found = await atOnce(
    policy.atOnce,
    [...Array(questions).keys()],
    async (question): Promise<Move[]> => {
      await keepLease(look)
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
    const ask = (some: readonly OwnAddress[]) =>
      chain.balance(
        asset,
        some.map(({ address }) => address),
        height,
      )
    for (const { own, units } of await findHolders(ours, await ask(ours), ask)) {
      const id = `opening:${own.address}:${asset}`
      moves.push({ transfer: { id, txHash: hash, to: own.address, asset, units, isOfBlock: true }, own })
    }
  }
  return moves
}

type Holder = { readonly own: OwnAddress; readonly units: bigint }

/**
 * Those of `ours`, which hold `units` together, that hold any of it. By halves: a holder among so many costs no more questions than the
 * number of them has binary digits, and what one half does not hold the other does.
 */
async function findHolders(
  ours: readonly OwnAddress[],
  units: bigint,
  ask: (some: readonly OwnAddress[]) => Promise<bigint>,
): Promise<readonly Holder[]> {
  if (units < 0n) throw new Error('the node tells that some addresses hold more than all of them together')
  if (units === 0n) return []
  const [own, ...others] = ours
  if (own === undefined) throw new Error('the node tells that no address holds something')
  if (others.length === 0) return [{ own, units }]
  const middle = ours.length >> 1
  const [left, right] = [ours.slice(0, middle), ours.slice(middle)]
  const heldLeft = await ask(left)
  return [...(await findHolders(left, heldLeft, ask)), ...(await findHolders(right, units - heldLeft, ask))]
}
