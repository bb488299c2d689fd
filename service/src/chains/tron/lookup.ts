import type { BoundedMap } from '../../domain/bounded_map.ts'
import type { AssetId } from '../../domain/catalog/assets.ts'
import { fromChainUnits } from '../../domain/money/amount.ts'
import type { Intent, TronIntent } from '../../domain/payouts/intent.ts'
import type { TxStatus } from '../chain.ts'
import { type Fields, isObject } from '../replies.ts'
import { verdictOn } from '../token_payment.ts'
import { hexOf } from './address.ts'
import type { Blocks, Header } from './blocks.ts'
import { readPending } from './mempool.ts'
import { actionOf, hasSucceeded, heightOfId, isOurFault, logMoves, readHeader } from './moves.ts'
import { addressIn, hashIn, integerIn, isEmpty, listIn, objectIn, sunIn } from './replies.ts'
import { NoAnswer, type Rpc } from './rpc.ts'

/** Where a transaction is now. The newest block comes first, because a line that answers nothing has none. */
export async function lookup(
  rpc: Rpc,
  blocks: Blocks,
  native: AssetId,
  txHash: string,
  attempt?: Intent,
): Promise<TxStatus> {
  await blocks.newest('head')
  // Asked before its block: what is mined in between is then found there, not missed by both.
  const pending = await readPending(rpc, txHash)
  const info = await readInfo(rpc, txHash)
  if (info === null) return pending === null ? { where: 'absent' } : { where: 'mempool' }
  const { header, tx } = await readPlace(rpc, integerIn(info.blockNumber, 'info blockNumber'), txHash)
  return {
    where: 'block',
    block: { height: header.height, hash: header.hash },
    ...(attempt?.family === 'tron' ? verdictOf(attempt, tx, info) : { succeeded: hasSucceeded(tx, info) }),
    ...(isOurFault(tx) && { fault: 'ours' }),
    cost: fromChainUnits(native, sunIn(info.fee, 'info fee')),
  }
}

/** A coin that succeeds moves as it says. Addresses in hex, as events have them. */
function verdictOf({ to, units, token }: TronIntent, tx: Fields, info: Fields) {
  if (token === null || !hasSucceeded(tx, info)) return { succeeded: hasSucceeded(tx, info) }
  const from = addressIn(actionOf(tx).value.owner_address, 'owner_address')
  const said = logMoves(hashIn(tx.txID, 'transaction txID'), info).map((move) => ({
    ...move,
    contract: move.token ?? '',
    units: move.units(),
  }))
  return verdictOn({ contract: hexOf(token), from, to: hexOf(to), units }, said)
}

async function readInfo(rpc: Rpc, txHash: string): Promise<Fields | null> {
  const answer = await rpc.get('wallet/gettransactioninfobyid', { value: txHash })
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

export type Looking = {
  readonly rpc: Rpc
  readonly blocks: Blocks
  readonly soFar: ReadSoFar
}

/**
 * Of attempts that are looked for, by what they refer to and their hashes, the last block that was read and does not have them. It is
 * final, so a line that breaks goes on there, and what was looked for to its end is not looked for again.
 */
type ReadSoFar = BoundedMap<string, LastRead>

type LastRead = Pick<Header, 'hash' | 'timeMs'>

/**
 * A transaction can only be in a block whose parent is older than its expiration. So once a solid block is not, all of those are
 * read, one by one and each the parent of the next from the one that it refers to: they either have it, or no chain ever will.
 * Who tells them makes no difference then, and neither does it how far each of several nodes is that answer in turns. A node's
 * index of transactions would not do: one that is behind, or has forgotten, says that there is none.
 */
export async function isOver(
  { rpc, blocks, soFar }: Looking,
  intent: Intent,
  txHash: string | null,
  between?: () => Promise<void>,
): Promise<boolean> {
  if (intent.family !== 'tron') throw new Error('a transaction of TRON is over on TRON')
  const { reference, expirationMs } = intent
  const solid = await blocks.newest('solid')
  if (solid.timeMs < expirationMs) return false
  // Never stored is never sent.
  if (txHash === null) return true
  const attempt = `${reference.id} ${txHash}`
  let parent = soFar.get(attempt) ?? { hash: reference.id, timeMs: reference.timeMs }
  while (parent.timeMs < expirationMs) {
    const height = heightOfId(parent.hash) + 1
    if (height > solid.height) throw new NoAnswer(SOLID_BLOCK, 'the node went backwards')
    await between?.()
    const { header, txHashes } = await readSolid(rpc, height)
    if (header.parentHash !== parent.hash)
      throw new NoAnswer(SOLID_BLOCK, `block ${height} does not stand on the one that a payout refers to`)
    if (txHashes.includes(txHash)) return false
    parent = header
    soFar.set(attempt, parent)
  }
  return true
}

const SOLID_BLOCK = 'walletsolidity/getblock'

async function readSolid(rpc: Rpc, height: number) {
  const answer = await rpc.get(SOLID_BLOCK, { id_or_num: String(height), detail: 'true' })
  if (isEmpty(answer))
    throw new NoAnswer(
      SOLID_BLOCK,
      `block ${height} is missing: the node has forgotten it, or is not as far yet`,
    )
  const block = objectIn(answer, SOLID_BLOCK)
  const header = readHeader(block)
  if (header.height !== height) throw new NoAnswer(SOLID_BLOCK, `it is block ${header.height}, not ${height}`)
  const txHashes = listIn(block.transactions, 'block transactions').map((tx) =>
    hashIn(objectIn(tx, 'transaction').txID, 'transaction txID'),
  )
  return { header, txHashes }
}
