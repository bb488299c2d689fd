import { nativeAsset } from '../../domain/catalog/assets.ts'
import { amountOf } from '../../domain/money/amount.ts'
import type { Intent } from '../../domain/payouts/intent.ts'
import type { TxStatus } from '../chain.ts'
import { type Blocks, heightOfId, isNotTraced } from './blocks.ts'
import { hashIn, integerIn, objectIn } from './replies.ts'
import { type Fields, NoAnswer, type Rpc } from './rpc.ts'

/**
 * Where a transaction is now, by the node's traces. In a block that may be undone yet it still waits; in none it is absent,
 * whether it waits or was never sent, and is sent again as it is. Whether it never will be in one says `isOver`, which does
 * not rest on the node's index of transactions.
 */
export async function lookup(rpc: Rpc, blocks: Blocks, txHash: string): Promise<TxStatus> {
  const height = await heightOf(rpc, txHash)
  if (height === null) return { where: 'absent' }
  const block = await blocks.at(height)
  const found = block?.transactions.find(({ id }) => id === txHash)
  if (block == null || found === undefined)
    throw new NoAnswer('lookup', `block ${height} does not have ${txHash}: ask again`)
  if (!block.isIrreversible) return { where: 'mempool' }
  return {
    where: 'block',
    block: { height, hash: block.hash },
    succeeded: found.isExecuted,
    // It takes of what the account has of CPU and NET, which grows again.
    cost: amountOf(nativeAsset('EOS').id, 0n),
  }
}

async function heightOf(rpc: Rpc, txHash: string): Promise<number | null> {
  const path = 'trace_api/get_transaction_trace'
  let trace: Fields
  try {
    trace = objectIn(await rpc(path, { id: txHash }), path)
  } catch (error) {
    if (isNotTraced(error)) return null
    throw error
  }
  if (hashIn(trace.id, `${path} id`) !== txHash) throw new NoAnswer(path, 'it is of another transaction')
  return integerIn(trace.block_num, `${path} block_num`)
}

/**
 * A transaction can only be in a block that stands on the one it refers to, and in none that is later than its expiration.
 * So all of those are read, one by one and each the parent of the next, once an irreversible block is later: they either
 * have it, or no chain ever will. What the node cannot show it cannot say.
 */
export async function isOver(
  blocks: Blocks,
  intent: Intent,
  txHash: string | null,
  between?: () => Promise<void>,
): Promise<boolean> {
  if (intent.family !== 'eos') throw new Error('a transaction of EOS is over on EOS')
  const { irreversible } = await blocks.info()
  const last = await blocks.final(irreversible.height)
  if (last === null) throw new NoAnswer('get_info', 'the node went backwards')
  if (last.timeMs <= intent.expirationMs) return false
  // Never stored is never sent.
  if (txHash === null) return true
  let parentHash = intent.reference.id
  for (let height = heightOfId(parentHash) + 1; height <= last.height; height += 1) {
    await between?.()
    const block = await blocks.final(height)
    if (block?.parentHash !== parentHash)
      throw new NoAnswer('block', `block ${height} does not follow the one before`)
    if (block.timeMs > intent.expirationMs) return true
    if (block.transactions.some(({ id }) => id === txHash)) return false
    parentHash = block.hash
  }
  throw new NoAnswer('get_info', 'the node went backwards')
}
