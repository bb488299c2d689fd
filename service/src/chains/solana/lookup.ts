import type { BoundedMap } from '../../domain/bounded_map.ts'
import type { AssetId } from '../../domain/catalog/assets.ts'
import { fromChainUnits } from '../../domain/money/amount.ts'
import type { Intent } from '../../domain/payouts/intent.ts'
import { lastBlockOf } from '../../domain/payouts/solana_life.ts'
import type { TxStatus } from '../chain.ts'
import { type Fields, isObject } from '../replies.ts'
import type { Blocks, Header } from './blocks.ts'
import { inContext, integerIn, lamportsIn, listIn, objectIn } from './replies.ts'
import { NoAnswer, type Rpc } from './rpc.ts'
import { type Balances, readMeta } from './transactions.ts'

/** Where a transaction is now. What is in a block that is not final yet waits, as far as anybody here is concerned. */
export async function lookup(rpc: Rpc, blocks: Blocks, native: AssetId, txHash: string): Promise<TxStatus> {
  const found = await readFinal(rpc, txHash)
  if (found === null) return { where: (await isKnown(rpc, txHash)) ? 'mempool' : 'absent' }
  const slot = integerIn(found.slot, 'getTransaction slot')
  const block = await blocks.header(slot)
  if (block === null) throw new NoAnswer('getTransaction', `slot ${slot} is not final any more: ask again`)
  const meta = objectIn(found.meta, 'getTransaction meta')
  const accounts = listIn(meta.preBalances, 'meta preBalances').length
  const read = readMeta(meta, accounts)
  return {
    where: 'block',
    block: { height: slot, hash: block.hash },
    succeeded: read.succeeded,
    ...(isOurFault(meta.err) && { fault: 'ours' }),
    cost: fromChainUnits(native, lamportsIn(meta.fee, 'meta fee') + rentPaid(read)),
  }
}

/**
 * Whether it failed because there was too little of ours, whoever it was to pay: a program was to move more than we have, which those of
 * coin and of tokens both call 1, or the first account, which pays the fee, would have kept less than its rent.
 * https://github.com/anza-xyz/solana-sdk, transaction-error and system-interface; https://github.com/solana-program/token, interface/src/error.rs
 */
function isOurFault(err: unknown): boolean {
  if (!isObject(err)) return false
  const { InstructionError: ofProgram, InsufficientFundsForRent: ofRent } = err
  const reason: unknown = Array.isArray(ofProgram) ? ofProgram[1] : undefined
  return (isObject(reason) && reason.Custom === 1) || (isObject(ofRent) && ofRent.account_index === 0)
}

/** Who is paid in a token for the first time gets an account for it from us, which costs its rent, less what somebody sent there. */
function rentPaid({ tokensBefore, tokensAfter, before, after }: Balances): bigint {
  const made = tokensAfter.filter(({ at }) => !tokensBefore.some((each) => each.at === at))
  return made.reduce(
    (sum, { at }) => sum + lamportsIn(after[at], 'postBalances') - lamportsIn(before[at], 'preBalances'),
    0n,
  )
}

async function readFinal(rpc: Rpc, txHash: string): Promise<Fields | null> {
  const options = { commitment: 'finalized', encoding: 'base64', maxSupportedTransactionVersion: 255 }
  const found = await rpc.call('getTransaction', txHash, options)
  return found === null ? null : objectIn(found, 'getTransaction')
}

/** Asked without a commitment: in a block of whatever kind. */
async function isKnown(rpc: Rpc, txHash: string): Promise<boolean> {
  const answer = await rpc.call('getSignatureStatuses', [txHash], { searchTransactionHistory: true })
  const statuses = listIn(inContext(answer, 'getSignatureStatuses').value, 'getSignatureStatuses')
  if (statuses.length !== 1) throw new NoAnswer('getSignatureStatuses', 'not as many as were asked for')
  return statuses[0] !== null
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

/** `blockHeight`: in blocks, as lifetimes are. */
type LastRead = { readonly slot: number; readonly hash: string; readonly blockHeight: number }

/** More slots than a transaction lives for in blocks, however many are skipped; a node tells so many at once. */
const SLOTS_MAX = 10_000

/**
 * A transaction can only be in a block up to `lastBlockOf` on top of the block that it refers to. So once a final block is higher,
 * all of those are read, one by one and each the parent of the next from the one that it refers to: they either have it, or no
 * chain ever will. Who tells them makes no difference then, and neither does it how far each of several nodes is that answer in
 * turns. A node's index of signatures would not do: one that is behind, or has forgotten, says that there is none.
 */
export async function isOver(
  { rpc, blocks, soFar }: Looking,
  intent: Intent,
  txHash: string | null,
  between?: () => Promise<void>,
): Promise<boolean> {
  if (intent.family !== 'solana') throw new Error('a transaction of Solana is over on Solana')
  const head = await blocks.head()
  if (heightOf(head) <= lastBlockOf(intent)) return false
  // Never stored is never sent.
  if (txHash === null) return true
  const { slot, blockhash, height } = intent.reference
  const attempt = `${blockhash} ${txHash}`
  let parent = soFar.get(attempt) ?? { slot, hash: blockhash, blockHeight: height }
  if (parent.blockHeight === lastBlockOf(intent)) return true
  for (const next of await slotsAfter(rpc, parent.slot, head.height)) {
    await between?.()
    const block = await blocks.signed(next)
    if (block.parentHash !== parent.hash)
      throw new NoAnswer('getBlock', `slot ${next} does not stand on the block that a payout refers to`)
    if (block.signatures.includes(txHash)) return false
    parent = { slot: next, hash: block.hash, blockHeight: parent.blockHeight + 1 }
    soFar.set(attempt, parent)
    if (parent.blockHeight === lastBlockOf(intent)) return true
  }
  throw new NoAnswer('getBlocks', 'the node lacks blocks in which a payout could be')
}

/** Slots that have a block, and are final. */
async function slotsAfter(rpc: Rpc, slot: number, newest: number): Promise<readonly number[]> {
  const until = Math.min(newest, slot + SLOTS_MAX)
  const slots = await rpc.call('getBlocks', slot + 1, until, { commitment: 'finalized' })
  return listIn(slots, 'getBlocks').map((each) => integerIn(each, 'getBlocks'))
}

function heightOf({ blockHeight }: Header): number {
  if (blockHeight === null) throw new NoAnswer('getSlot', 'the newest final slot was skipped')
  return blockHeight
}
