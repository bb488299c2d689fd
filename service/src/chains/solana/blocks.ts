import { BoundedMap } from '../../domain/bounded_map.ts'
import type { BlockRef } from '../chain.ts'
import type { Fields } from '../replies.ts'
import { integerIn, listIn, objectIn, textIn } from './replies.ts'
import { type Reward, readRewards } from './rewards.ts'
import { NoAnswer, NodeRefusal, type Rpc } from './rpc.ts'
import { readTransaction, type Transaction } from './transactions.ts'

/** A slot that is final. `height` is the slot's number: some are skipped, and count as blocks without anything in them. */
export type Header = BlockRef & {
  readonly parentHash: string
  readonly timeMs: number
  /** What lifetimes of transactions are counted in: skipped slots left out. Null: this one was skipped. */
  readonly blockHeight: number | null
}
export type SolanaBlock = Header & {
  readonly transactions: readonly Transaction[]
  readonly rewards: readonly Reward[]
}

export type Blocks = {
  head(): Promise<Header>
  /** Null when it is not final yet. */
  header(slot: number): Promise<Header | null>
  at(slot: number): Promise<SolanaBlock | null>
  /** A final block by the signatures of its transactions, which name them. Rejects where the slot has none. */
  signed(slot: number): Promise<SignedBlock>
}

/** Named and linked by hashes of blocks alone: a slot that was skipped has none. */
export type SignedBlock = {
  readonly hash: string
  readonly parentHash: string
  readonly signatures: readonly unknown[]
}

/** Beyond what nodes of one network, or a node and its watcher, are ever apart. */
const REMEMBERED = 64

/** Nothing but what is final is ever asked for: https://solana.com/docs/rpc#configuring-state-commitment */
const FINAL = { commitment: 'finalized' } as const

/** Blocks of a node. One that was read, or is being read, is not asked for again: what is final stays. */
export function blocksOf(rpc: Rpc): Blocks {
  const known = new BoundedMap<number, Promise<SolanaBlock | null>>(REMEMBERED)
  let newest = -1
  const askNewest = async () => {
    const slot = integerIn(await rpc.call('getSlot', FINAL), 'getSlot')
    newest = Math.max(newest, slot)
    return slot
  }
  const read = async (slot: number, details: 'accounts' | 'none') => {
    // A node says of a slot that is to come what it says of one that was skipped.
    if (slot > newest && slot > (await askNewest())) return null
    return readSlot(rpc, slot, newest, details)
  }
  return {
    head: async () => readSlot(rpc, await askNewest(), newest, 'none'),
    header: async (slot) => known.get(slot) ?? read(slot, 'none'),
    signed: (slot) => readSigned(rpc, slot),
    at: async (slot) => {
      const asked = known.get(slot)
      if (asked !== undefined) return asked
      const block = read(slot, 'accounts')
      known.set(slot, block)
      let isFinal = false
      try {
        isFinal = (await block) !== null
        return block
      } finally {
        if (!isFinal && known.get(slot) === block) known.delete(slot)
      }
    },
  }
}

async function readSigned(rpc: Rpc, slot: number): Promise<SignedBlock> {
  const made = await readBlock(rpc, slot, 'signatures')
  if (made === null) throw new NoAnswer('getBlock', `slot ${slot} has no block: the node has forgotten it`)
  return {
    hash: textIn(made.blockhash, 'getBlock blockhash'),
    parentHash: textIn(made.previousBlockhash, 'getBlock previousBlockhash'),
    signatures: listIn(made.signatures, 'getBlock signatures'),
  }
}

type Details = 'accounts' | 'signatures' | 'none'

async function readSlot(
  rpc: Rpc,
  slot: number,
  newest: number,
  details: Exclude<Details, 'signatures'>,
): Promise<SolanaBlock> {
  const made = await readBlock(rpc, slot, details)
  if (made === null) return readSkipped(rpc, slot, newest)
  const { blockHeight, blockhash, blockTime, parentSlot, previousBlockhash } = made
  const parent = integerIn(parentSlot, 'getBlock parentSlot')
  const parentHash = textIn(previousBlockhash, 'getBlock previousBlockhash')
  return {
    height: slot,
    hash: textIn(blockhash, 'getBlock blockhash'),
    parentHash: parent === slot - 1 ? parentHash : hashOfSkipped(slot - 1),
    timeMs: integerIn(blockTime, 'getBlock blockTime') * 1_000,
    blockHeight: integerIn(blockHeight, 'getBlock blockHeight'),
    transactions: details === 'none' ? [] : listIn(made.transactions, 'transactions').map(readTransaction),
    rewards: details === 'none' ? [] : readRewards(made.rewards),
  }
}

/** A slot that was skipped has no hash, and one is wanted. */
function hashOfSkipped(slot: number): string {
  return `skipped:${slot}`
}

/** In the slots after, somebody has made a block again: hours without one were outages that were mended by hand. */
const SKIPPED_MAX = 1_000

/**
 * "Skipped" and "lost" is one answer of a node, and money may lie in what was lost. So it is believed only when the next block
 * says that its parent is older than this slot.
 */
async function readSkipped(rpc: Rpc, slot: number, newest: number): Promise<SolanaBlock> {
  const until = Math.min(newest, slot + SKIPPED_MAX)
  const [next] = listIn(await rpc.call('getBlocks', slot, until, FINAL), 'getBlocks')
  if (next === undefined) throw new NoAnswer('getBlocks', `no block follows slot ${slot}`)
  const nextSlot = integerIn(next, 'getBlocks')
  if (nextSlot <= slot) throw new NoAnswer('getBlock', `slot ${slot} was not skipped: ask again`)
  const block = await readBlock(rpc, nextSlot, 'none')
  if (block === null || integerIn(block.parentSlot, 'getBlock parentSlot') >= slot)
    throw new NoAnswer(
      'getBlock',
      `slot ${slot} was not skipped and is not there: the node needs more history`,
    )
  const isFirst = block.parentSlot === slot - 1
  return {
    height: slot,
    hash: hashOfSkipped(slot),
    parentHash: isFirst
      ? textIn(block.previousBlockhash, 'getBlock previousBlockhash')
      : hashOfSkipped(slot - 1),
    timeMs: integerIn(block.blockTime, 'getBlock blockTime') * 1_000,
    blockHeight: null,
    transactions: [],
    rewards: [],
  }
}

/**
 * Slot skipped or lost, and the same in what a node keeps elsewhere for long. Providers that limit how often they are asked say -32007
 * as well.
 */
const NOT_THERE = [-32_007, -32_009]

/** Of transactions only who holds how much is read, so that whatever version they have makes no difference. */
const VERSION_MAX = 255

async function readBlock(rpc: Rpc, slot: number, transactionDetails: Details): Promise<Fields | null> {
  const options = {
    ...FINAL,
    transactionDetails,
    rewards: transactionDetails === 'accounts',
    maxSupportedTransactionVersion: VERSION_MAX,
  }
  try {
    return objectIn(await rpc.call('getBlock', slot, options), 'getBlock')
  } catch (error) {
    if (error instanceof NodeRefusal && NOT_THERE.includes(error.code)) return null
    throw error
  }
}
