import type { AssetId } from '../../domain/catalog/assets.ts'
import { fromChainUnits } from '../../domain/money/amount.ts'
import { EOS_TOKEN_CONTRACT } from '../../domain/payouts/eos_transfer.ts'
import type { BlockRef } from '../chain.ts'
import type { Blocks } from './blocks.ts'
import { listIn, unitsIn } from './replies.ts'
import { NoAnswer, type Rpc } from './rpc.ts'
import { hexOfName, movedIn } from './transfers.ts'

/** Further than a node and its watcher are ever apart; blocks were irreversible after 330 for years. */
const BLOCKS_APART_MAX = 1_000
const TRIES = 10

/**
 * A node knows what an account holds at its head alone. What the blocks since `height` (or since the irreversible one) moved is taken
 * back.
 */
export async function balance(
  { rpc, blocks }: { readonly rpc: Rpc; readonly blocks: Blocks },
  asset: AssetId,
  accounts: ReadonlySet<string>,
  height: number | undefined,
): Promise<bigint> {
  const holders = new Set([...accounts].map(hexOfName))
  const { head, irreversible, held } = await heldAtHead(rpc, blocks, [...accounts], holders)
  const lowest = height ?? irreversible.height
  if (lowest > irreversible.height) throw new NoAnswer('balance', `block ${lowest} is not irreversible yet`)
  if (head.height - lowest > BLOCKS_APART_MAX)
    throw new NoAnswer('balance', `block ${lowest} is too far from the head`)
  let units = held
  for (let next: BlockRef = head; next.height > lowest; ) {
    const block = await blocks.named(next)
    units -= movedIn(block, holders)
    next = { height: block.height - 1, hash: block.parentHash }
  }
  return fromChainUnits(asset, units).units
}

/**
 * Together, and all of the same block: either it is the head before and after they are asked for, or no block that came meanwhile
 * changed anything. There are two a second, and a node may be as far away as that.
 */
async function heldAtHead(
  rpc: Rpc,
  blocks: Blocks,
  accounts: readonly string[],
  holders: ReadonlySet<string>,
) {
  for (let tried = 0; tried < TRIES; tried += 1) {
    const { head: before } = await blocks.info()
    const held = await Promise.all(accounts.map((account) => heldBy(rpc, account)))
    const { head, irreversible } = await blocks.info()
    if (!(await heldTheSame(blocks, holders, before, head))) continue
    return { head, irreversible, held: held.reduce((sum, units) => sum + units, 0n) }
  }
  throw new NoAnswer('balance', 'more moves than balances can be asked for')
}

/** In every block from one up to another that stands on it. */
async function heldTheSame(
  blocks: Blocks,
  holders: ReadonlySet<string>,
  from: BlockRef,
  to: BlockRef,
): Promise<boolean> {
  let next = to
  while (next.height > from.height) {
    const block = await blocks.named(next)
    if (movedIn(block, holders) !== 0n) return false
    next = { height: block.height - 1, hash: block.parentHash }
  }
  return next.hash === from.hash
}

/** Nothing at all is an empty list. */
async function heldBy(rpc: Rpc, account: string): Promise<bigint> {
  const path = 'chain/get_currency_balance'
  const held = listIn(await rpc(path, { code: EOS_TOKEN_CONTRACT, account, symbol: 'EOS' }), path)
  if (held.length > 1) throw new NoAnswer(path, 'there is one balance of EOS')
  return held.length === 0 ? 0n : unitsIn(held[0], 'balance')
}
