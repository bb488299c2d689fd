import { BoundedMap } from '../../domain/bounded_map.ts'
import type { BlockRef } from '../chain.ts'
import type { Fields } from '../replies.ts'
import { hashIn, integerIn, listIn, numeralIn, objectIn, textIn, timeMsIn } from './replies.ts'
import { NoAnswer, NodeRefusal, type Rpc } from './rpc.ts'
import { readTransfer, type TransferAction } from './transfer_action.ts'

/**
 * A transfer that a token contract says it made, when it ran itself. What else was written there is forgotten: anybody may call a
 * contract of theirs with half a megabyte, and hundreds of blocks are remembered.
 */
export type Call = {
  /** Every run of a contract has a number of its own, for ever. */
  readonly sequence: string
  readonly contract: string
  readonly transfer: TransferAction
}

export type TracedTransaction = {
  readonly id: string
  /** Only what was executed did anything: nodes also list what failed. */
  readonly isExecuted: boolean
  readonly calls: readonly Call[]
}

export type EosBlock = BlockRef & {
  readonly parentHash: string
  readonly timeMs: number
  readonly isIrreversible: boolean
  readonly transactions: readonly TracedTransaction[]
}

export type Info = {
  readonly irreversible: BlockRef
  readonly head: BlockRef & { readonly timeMs: number }
}

export type Blocks = {
  info(): Promise<Info>
  /** What a node has traced at that height, which may be undone yet; null when it has no such trace. */
  at(height: number): Promise<EosBlock | null>
  /** An irreversible block, or null when that height is not irreversible yet. */
  final(height: number): Promise<EosBlock | null>
  /** The block that has this id; rejects when the chain no longer has it. */
  named(block: BlockRef): Promise<EosBlock>
}

/** Some minutes: what is not irreversible yet, and the life of an attempt. */
const REMEMBERED = 500
/** Nodes count blocks in 32 bits, and do not understand larger numbers. */
const HEIGHT_MAX = 2 ** 32 - 1

/**
 * Blocks of a node of this chain. One that was read is not asked for again: by its id never, by its height not once it is
 * irreversible.
 */
export function blocksOf(rpc: Rpc, chainId: string): Blocks {
  const byHash = new BoundedMap<string, EosBlock>(REMEMBERED)
  const byHeight = new BoundedMap<number, EosBlock>(REMEMBERED)
  const info = () => readInfo(rpc, chainId)
  const at = async (height: number) => {
    const known = byHeight.get(height)
    if (known !== undefined || height > HEIGHT_MAX) return known ?? null
    const block = await readTraced(rpc, height)
    if (block === null) return null
    byHash.set(block.hash, block)
    if (block.isIrreversible) byHeight.set(height, block)
    return block
  }
  return {
    info,
    at,
    final: async (height) => {
      const block = await at(height)
      if (block?.isIrreversible) return block
      if ((await info()).irreversible.height < height) return null
      const again = await at(height)
      if (again?.isIrreversible) return again
      throw new NoAnswer('trace_api/get_block', `it has no trace of the irreversible block ${height}`)
    },
    named: async ({ height, hash }) => {
      const block = byHash.get(hash) ?? (await at(height))
      if (block?.hash !== hash) throw new NoAnswer('block', `block ${height} changed: ask again`)
      return block
    },
  }
}

/** Whose answer it is it says each time: a node may become another network's. */
async function readInfo(rpc: Rpc, chainId: string): Promise<Info> {
  const info = objectIn(await rpc('chain/get_info', {}), 'get_info')
  const told = hashIn(info.chain_id, 'chain_id')
  if (told !== chainId) throw new NoAnswer('get_info', `it is of the chain ${told}, configured is ${chainId}`)
  const ref = (height: unknown, id: unknown, what: string) =>
    refOf(integerIn(height, `${what}_num`), hashIn(id, `${what}_id`))
  return {
    irreversible: ref(
      info.last_irreversible_block_num,
      info.last_irreversible_block_id,
      'last_irreversible_block',
    ),
    head: {
      ...ref(info.head_block_num, info.head_block_id, 'head_block'),
      timeMs: timeMsIn(info.head_block_time, 'head_block_time'),
    },
  }
}

/** The first four bytes of an id are the height. */
export function heightOfId(id: string): number {
  return Number.parseInt(id.slice(0, 8), 16)
}

function refOf(height: number, hash: string): BlockRef {
  if (heightOfId(hash) !== height) throw new NoAnswer('block', 'its id is of another height')
  return { height, hash }
}

/** Whether the node says that its traces do not have it; other 404 mean that it keeps no traces. */
export function isNotTraced(error: unknown): boolean {
  return error instanceof NodeRefusal && error.status === 404 && /missing/i.test(error.message)
}

/** https://docs.antelope.io/leap/latest/nodeos/plugins/trace_api_plugin/api-reference */
async function readTraced(rpc: Rpc, height: number): Promise<EosBlock | null> {
  let block: Fields
  try {
    block = objectIn(await rpc('trace_api/get_block', { block_num: height }), 'trace_api/get_block')
  } catch (error) {
    if (isNotTraced(error)) return null
    throw error
  }
  if (block.number !== height)
    throw new NoAnswer('trace_api/get_block', `it is block ${String(block.number)}, not ${height}`)
  return {
    ...refOf(height, hashIn(block.id, 'block id')),
    parentHash: hashIn(block.previous_id, 'block previous_id'),
    timeMs: timeMsIn(block.timestamp, 'block timestamp'),
    isIrreversible: block.status === 'irreversible',
    transactions: listIn(block.transactions, 'block transactions').map((transaction) =>
      readTransaction(objectIn(transaction, 'transaction')),
    ),
  }
}

/** An action is traced once for its own contract, and once for everybody who is told of it: the first alone did it. */
function readTransaction(transaction: Fields): TracedTransaction {
  // Traces that were written before nodes told it do not say what became of it: that is no word of a deposit, nor of none.
  const isExecuted = textIn(transaction.status, 'transaction status') === 'executed'
  const actions = isExecuted ? listIn(transaction.actions, 'transaction actions') : []
  const calls = actions.flatMap((each): Call[] => {
    const { receiver, account, action, data, global_sequence } = objectIn(each, 'action')
    if (action !== 'transfer' || receiver !== account) return []
    const sequence = numeralIn(global_sequence, 'action global_sequence')
    const contract = textIn(account, 'action account')
    const transfer = readTransfer(textIn(data, 'action data'))
    return transfer === null ? [] : [{ sequence, contract, transfer }]
  })
  return { id: hashIn(transaction.id, 'transaction id'), isExecuted, calls }
}
