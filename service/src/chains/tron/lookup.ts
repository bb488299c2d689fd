import type { AssetId } from '../../domain/catalog/assets.ts'
import { fromChainUnits } from '../../domain/money/amount.ts'
import type { Intent } from '../../domain/payouts/intent.ts'
import type { TxStatus } from '../chain.ts'
import type { Blocks } from './blocks.ts'
import { readPending } from './mempool.ts'
import { hasSucceeded, readHeader } from './moves.ts'
import { hashIn, integerIn, isEmpty, listIn, objectIn, sunIn } from './replies.ts'
import { type Fields, isObject, NoAnswer, type Rpc } from './rpc.ts'

/** Where a transaction is now. The newest block comes first, because a line that answers nothing has none. */
export async function lookup(rpc: Rpc, blocks: Blocks, native: AssetId, txHash: string): Promise<TxStatus> {
  await blocks.newest('head')
  // Asked before its block: what is mined in between is then found there, not missed by both.
  const pending = await readPending(rpc, txHash)
  const info = await readInfo(rpc, 'wallet', txHash)
  if (info === null) return pending === null ? { where: 'absent' } : { where: 'mempool' }
  const { header, tx } = await readPlace(rpc, integerIn(info.blockNumber, 'info blockNumber'), txHash)
  return {
    where: 'block',
    block: { height: header.height, hash: header.hash },
    succeeded: hasSucceeded(tx, info),
    cost: fromChainUnits(native, sunIn(info.fee, 'info fee')),
  }
}

async function readInfo(rpc: Rpc, end: 'wallet' | 'walletsolidity', txHash: string): Promise<Fields | null> {
  const answer = await rpc.get(`${end}/gettransactioninfobyid`, { value: txHash })
  if (isEmpty(answer)) return null
  const info = objectIn(answer, 'gettransactioninfobyid')
  if (hashIn(info.id, 'gettransactioninfobyid id') !== txHash)
    throw new NoAnswer('gettransactioninfobyid', 'it is of another transaction')
  return info
}

/** The block now at that height has to have it: between two questions it may have lost its place. */
async function readPlace(rpc: Rpc, height: number, txHash: string) {
  const block = objectIn(await rpc.get('wallet/getblockbynum', { num: String(height) }), 'getblockbynum')
  const header = readHeader(block)
  const tx = listIn(block.transactions, 'block transactions').find(
    (each): each is Fields => isObject(each) && each.txID === txHash,
  )
  if (tx === undefined || header.height !== height)
    throw new NoAnswer('getblockbynum', `block ${height} does not have ${txHash}: ask again`)
  return { header, tx }
}

/**
 * A transaction can only be in a block whose parent is older than its expiration. Once a solid block is not, every later
 * one stands on it; and the earlier ones, which are solid as well, either have it or never will. The newest solid block
 * is asked for before and after, so that a node that went backwards in between is not believed.
 */
export async function isOver(
  rpc: Rpc,
  blocks: Blocks,
  intent: Intent,
  txHash: string | null,
): Promise<boolean> {
  if (intent.family !== 'tron') throw new Error('a transaction of TRON is over on TRON')
  if ((await blocks.newest('solid')).timeMs < intent.expirationMs) return false
  // Never stored is never sent.
  if (txHash === null) return true
  if ((await readInfo(rpc, 'walletsolidity', txHash)) !== null) return false
  const found = await rpc.get('walletsolidity/gettransactionbyid', { value: txHash })
  return isEmpty(found) && (await blocks.newest('solid')).timeMs >= intent.expirationMs
}
