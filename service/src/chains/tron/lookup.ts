import type { AssetId } from '../../domain/catalog/assets.ts'
import { fromChainUnits } from '../../domain/money/amount.ts'
import type { Intent, TronIntent } from '../../domain/payouts/intent.ts'
import type { TxStatus } from '../chain.ts'
import type { Blocks, Header } from './blocks.ts'
import { readPending } from './mempool.ts'
import { hasSucceeded, heightOfId, isOurFault, readHeader } from './moves.ts'
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
    ...(isOurFault(tx) && { fault: 'ours' }),
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
 * one stands on it; and the earlier ones, which are solid as well, either have it or never will. A node that does not remember
 * them would say the same, so it has to show afterwards that it does. The newest solid block is asked for before and after, so
 * that a node that went backwards in between is not believed.
 */
export async function isOver(
  rpc: Rpc,
  blocks: Blocks,
  intent: Intent,
  txHash: string | null,
): Promise<boolean> {
  if (intent.family !== 'tron') throw new Error('a transaction of TRON is over on TRON')
  const solid = await blocks.newest('solid')
  if (solid.timeMs < intent.expirationMs) return false
  // Never stored is never sent.
  if (txHash === null) return true
  if ((await readInfo(rpc, 'walletsolidity', txHash)) !== null) return false
  if (await isIndexed(rpc, txHash)) return false
  await requireHistory(rpc, intent, solid)
  return (await blocks.newest('solid')).timeMs >= intent.expirationMs
}

const INDEX = 'walletsolidity/gettransactionbyid'

async function isIndexed(rpc: Rpc, txHash: string): Promise<boolean> {
  return !isEmpty(await rpc.get(INDEX, { value: txHash }))
}

/**
 * Rejects unless the node knows transactions as old as the attempt. A lite node with `openHistoryQueryWhenLiteFN` answers of
 * those before its snapshot that there are none, and may have their blocks all the same. An index grows with its chain, so
 * one transaction that it knows is enough, of the first block on top of the reference that has any.
 */
async function requireHistory(
  rpc: Rpc,
  { reference, expirationMs }: TronIntent,
  solid: Header,
): Promise<void> {
  let parentHash = reference.id
  for (let height = heightOfId(parentHash) + 1; height <= solid.height; height += 1) {
    const { header, first } = await readSolid(rpc, height)
    if (header.parentHash !== parentHash)
      throw new NoAnswer(SOLID_BLOCK, `block ${height} does not stand on the one that a payout refers to`)
    if (first !== null && !(await isIndexed(rpc, first)))
      throw new NoAnswer(INDEX, `it does not know the transactions of block ${height}: it has forgotten`)
    if (first !== null || header.timeMs >= expirationMs) return
    parentHash = header.hash
  }
  throw new NoAnswer(SOLID_BLOCK, 'the node went backwards')
}

const SOLID_BLOCK = 'walletsolidity/getblock'

async function readSolid(rpc: Rpc, height: number) {
  const answer = await rpc.get(SOLID_BLOCK, { id_or_num: String(height), detail: 'true' })
  if (isEmpty(answer)) throw new NoAnswer(SOLID_BLOCK, `block ${height} is missing: it has forgotten`)
  const block = objectIn(answer, SOLID_BLOCK)
  const header = readHeader(block)
  if (header.height !== height) throw new NoAnswer(SOLID_BLOCK, `it is block ${header.height}, not ${height}`)
  const [tx] = listIn(block.transactions, 'block transactions')
  const first = tx === undefined ? null : hashIn(objectIn(tx, 'transaction').txID, 'transaction txID')
  return { header, first }
}
