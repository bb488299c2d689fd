import type { AssetId } from '../../domain/catalog/assets.ts'
import { fromChainUnits } from '../../domain/money/amount.ts'
import type { Intent, SolanaIntent } from '../../domain/payouts/intent.ts'
import { lastBlockOf, SOLANA_BLOCKS_OF_LIFE } from '../../domain/payouts/solana_life.ts'
import type { TxStatus } from '../chain.ts'
import type { Blocks, Header } from './blocks.ts'
import { inContext, integerIn, lamportsIn, listIn, objectIn } from './replies.ts'
import { type Fields, isObject, NoAnswer, type Rpc } from './rpc.ts'
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

/**
 * A transaction can only be in a block up to `lastHeight` on top of the block that it refers to. Once a final block is higher,
 * the node's blocks up to there either have it or never will. A node that has forgotten would say the same, so it has
 * to show afterwards that it has all of them: the one that is referred to, under its hash, and as many after it as their
 * heights say.
 * The newest final block is asked for before and after, so that a node that went backwards in between is not believed.
 */
export async function isOver(
  rpc: Rpc,
  blocks: Blocks,
  intent: Intent,
  txHash: string | null,
): Promise<boolean> {
  if (intent.family !== 'solana') throw new Error('a transaction of Solana is over on Solana')
  const head = await blocks.head()
  if (heightOf(head) <= lastBlockOf(intent)) return false
  // Never stored is never sent.
  if (txHash === null) return true
  if ((await readFinal(rpc, txHash)) !== null || (await isKnown(rpc, txHash))) return false
  await requireHistory(rpc, blocks, intent, head)
  return heightOf(await blocks.head()) > lastBlockOf(intent)
}

function heightOf({ blockHeight }: Header): number {
  if (blockHeight === null) throw new NoAnswer('getSlot', 'the newest final slot was skipped')
  return blockHeight
}

/** More slots than a transaction lives for in blocks, however many are skipped; a node tells so many at once. */
const SLOTS_MAX = 10_000

/** Rejects unless the node has every block in which the attempt could be. */
async function requireHistory(
  rpc: Rpc,
  blocks: Blocks,
  { reference }: SolanaIntent,
  head: Header,
): Promise<void> {
  const first = await readAgain(rpc, reference.slot)
  if (first !== reference.blockhash)
    throw new NoAnswer(
      'getBlock',
      'the node does not have the block that a payout refers to: it has forgotten',
    )
  const until = Math.min(head.height, reference.slot + SLOTS_MAX)
  const slots = listIn(
    await rpc.call('getBlocks', reference.slot, until, { commitment: 'finalized' }),
    'getBlocks',
  )
  const last = slots[SOLANA_BLOCKS_OF_LIFE]
  const end = last === undefined ? null : await blocks.header(integerIn(last, 'getBlocks'))
  if (end?.blockHeight !== lastBlockOf({ reference }))
    throw new NoAnswer('getBlocks', 'the node lacks blocks in which a payout could be')
}

/** Not what was remembered: whether the node still has it is the question. */
async function readAgain(rpc: Rpc, slot: number): Promise<unknown> {
  const options = { commitment: 'finalized', transactionDetails: 'none', rewards: false }
  return objectIn(await rpc.call('getBlock', slot, options), 'getBlock').blockhash
}
