import { assert } from '../../domain/assert.ts'
import type { BoundedMap } from '../../domain/bounded_map.ts'
import { nativeAsset } from '../../domain/catalog/assets.ts'
import { amountOf } from '../../domain/money/amount.ts'
import type { Intent } from '../../domain/payouts/intent.ts'
import type { TxStatus } from '../chain.ts'
import type { Fields } from '../replies.ts'
import { type Blocks, type EosBlock, heightOfId, isNotTraced, type TracedTransaction } from './blocks.ts'
import { hashIn, integerIn, objectIn } from './replies.ts'
import { isNodeTrouble, NoAnswer, type Rpc } from './rpc.ts'

export type Looking = {
  readonly rpc: Rpc
  readonly blocks: Blocks
  readonly soFar: ReadSoFar
}

/**
 * Of attempts that are looked for, by what they refer to and their hashes, the last irreversible block that was read and does not have
 * them: none of those before is looked at again.
 */
type ReadSoFar = BoundedMap<string, Pick<EosBlock, 'hash' | 'timeMs'>>

/**
 * Where a transaction is now. In a block that may be undone yet it still waits; in none it is absent, whether it waits or was never
 * sent, and is sent again as it is. The blocks in which an attempt may be are read first, as far as they are irreversible: the node's index
 * of transactions may lack one that is in a block (it began with a snapshot, https://github.com/AntelopeIO/spring/issues/1693), and of what
 * it does not have a node reads every file of it that it keeps, which may take longer than we wait. It is asked where those blocks do not
 * say it: one that may be undone yet may have it, or the node lacks some of them. What it has is in the block that it names.
 */
export async function lookup(looking: Looking, txHash: string, attempt?: Intent): Promise<TxStatus> {
  const read = attempt === undefined ? 'not yet' : await searchIfShown(looking, attempt, txHash)
  if (read === 'nowhere') return { where: 'absent' }
  if (read !== 'not yet' && !(read instanceof Error)) return statusIn(read.block, read.transaction)
  const height = await heightOf(looking.rpc, txHash)
  if (height === null) {
    if (read instanceof Error) throw read
    return { where: 'absent' }
  }
  const block = await looking.blocks.at(height)
  const found = block?.transactions.find(({ id }) => id === txHash)
  if (block == null || found === undefined)
    throw new NoAnswer('lookup', `block ${height} does not have ${txHash}: ask again`)
  return statusIn(block, found)
}

/** What `search` says, or why the node could not show those blocks. */
async function searchIfShown(looking: Looking, attempt: Intent, txHash: string) {
  try {
    return await search(looking, attempt, txHash)
  } catch (error) {
    if (isNodeTrouble(error)) return error
    throw error
  }
}

function statusIn({ height, hash, isIrreversible }: EosBlock, { isExecuted }: TracedTransaction): TxStatus {
  if (!isIrreversible) return { where: 'mempool' }
  return {
    where: 'block',
    block: { height, hash },
    succeeded: isExecuted,
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

/** Whether an attempt is in no irreversible block and never will be. What the node cannot show it cannot say. */
export async function isOver(
  looking: Looking,
  intent: Intent,
  txHash: string | null,
  between?: () => Promise<void>,
): Promise<boolean> {
  assert(intent.family === 'eos', 'a transaction of EOS is over on EOS')
  const { irreversible } = await looking.blocks.info()
  const last = await looking.blocks.final(irreversible.height)
  if (last === null) throw new NoAnswer('get_info', 'the node went backwards')
  if (last.timeMs <= intent.expirationMs) return false
  // Never stored is never sent.
  if (txHash === null) return true
  const found = await search(looking, intent, txHash, between)
  if (found === 'not yet') throw new NoAnswer('get_info', 'the node went backwards')
  return found === 'nowhere'
}

type Found = { readonly block: EosBlock; readonly transaction: TracedTransaction }

/**
 * A transaction can only be in a block that stands on the one it refers to, and in none that is later than its expiration. So all of
 * those that are irreversible are read, one by one and each the parent of the next. Nowhere: one of them is later, and no chain
 * ever will have it. Not yet: the node has shown as many as it has.
 */
async function search(
  { blocks, soFar }: Looking,
  intent: Intent,
  txHash: string,
  between?: () => Promise<void>,
): Promise<Found | 'nowhere' | 'not yet'> {
  assert(intent.family === 'eos', 'a transaction of EOS is looked for on EOS')
  const { reference, expirationMs } = intent
  const attempt = `${reference.id} ${txHash}`
  let parent = soFar.get(attempt) ?? { hash: reference.id, timeMs: reference.timeMs }
  const { irreversible } = await blocks.info()
  while (parent.timeMs <= expirationMs) {
    const height = heightOfId(parent.hash) + 1
    if (height > irreversible.height) return 'not yet'
    await between?.()
    const block = await blocks.final(height)
    if (block?.parentHash !== parent.hash)
      throw new NoAnswer('block', `block ${height} does not follow the one before`)
    const transaction = block.transactions.find(({ id }) => id === txHash)
    if (transaction !== undefined) return { block, transaction }
    parent = { hash: block.hash, timeMs: block.timeMs }
    soFar.set(attempt, parent)
  }
  return 'nowhere'
}
