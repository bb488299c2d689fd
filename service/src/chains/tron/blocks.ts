import { BoundedMap } from '../../domain/bounded_map.ts'
import type { BlockRef } from '../chain.ts'
import { type Moves, readHeader, readMoves } from './moves.ts'
import { isEmpty, listIn, objectIn } from './replies.ts'
import { NoAnswer, type Rpc } from './rpc.ts'

export type Header = BlockRef & { readonly parentHash: string; readonly timeMs: number }
export type TronBlock = Header & Moves

export type Blocks = {
  /** The newest block, or the newest that is solid. */
  newest(of: 'head' | 'solid'): Promise<Header>
  /** The first block of all that the node tells, or of what it says is solid: some tell that at another address. Null: none. */
  first(of: 'head' | 'solid'): Promise<Header | null>
  /** Null when there is none yet at that height. */
  header(height: number): Promise<Header | null>
  at(height: number): Promise<TronBlock | null>
  /** The block that has this id; rejects when the chain no longer has it. */
  named(block: BlockRef): Promise<TronBlock>
}

/** Balances are counted from the solid block on, and from no further than this; a busy block takes a quarter of a megabyte. */
const REMEMBERED = 256
/** Java counts blocks in 64 bits, JSON in 53; beyond this a node answers with an error instead of nothing. */
const HEIGHT_MAX = 2 ** 40

/** Blocks of a node. One that was read is not asked for again: its id is what it says. */
export function blocksOf(rpc: Rpc): Blocks {
  const known = new BoundedMap<string, TronBlock>(REMEMBERED)
  const at = async (height: number) => {
    const block = await readBlock(rpc, height)
    if (block !== null) known.set(block.hash, block)
    return block
  }
  return {
    newest: (of) => readNewest(rpc, of),
    first: (of) => readFirst(rpc, of),
    header: (height) => readHead(rpc, height, false).then((read) => read?.header ?? null),
    at,
    named: async ({ height, hash }) => {
      const block = known.get(hash) ?? (await at(height))
      if (block?.hash !== hash) throw new NoAnswer('block', `block ${height} changed: ask again`)
      return block
    },
  }
}

/** Its header alone, which is asked for several times a second: `getnowblock` brings all transactions as well. */
async function readNewest(rpc: Rpc, of: 'head' | 'solid'): Promise<Header> {
  const path = BLOCK_OF[of]
  return readHeader(objectIn(await rpc.get(path, { detail: 'false' }), path))
}

const BLOCK_OF = { head: 'wallet/getblock', solid: 'walletsolidity/getblock' } as const

async function readFirst(rpc: Rpc, of: 'head' | 'solid'): Promise<Header | null> {
  const path = BLOCK_OF[of]
  const answer = await rpc.get(path, { id_or_num: '0', detail: 'false' })
  return isEmpty(answer) ? null : readHeader(objectIn(answer, path))
}

async function readHead(rpc: Rpc, height: number, detail: boolean) {
  if (height >= HEIGHT_MAX) return null
  const answer = await rpc.get('wallet/getblock', { id_or_num: String(height), detail: String(detail) })
  // No block yet, and no block at all: a node has a newest one, and a line that answers nothing does not.
  if (isEmpty(answer)) {
    const newest = await readNewest(rpc, 'head')
    if (newest.height >= height) throw new NoAnswer('wallet/getblock', `block ${height} is missing`)
    return null
  }
  const block = objectIn(answer, 'wallet/getblock')
  const header = readHeader(block)
  if (header.height !== height)
    throw new NoAnswer('wallet/getblock', `it is block ${header.height}, not ${height}`)
  return { header, transactions: listIn(block.transactions, 'block transactions') }
}

/** Results are asked for by height: the block is looked at once more afterwards, so that two blocks are never mixed. */
async function readBlock(rpc: Rpc, height: number): Promise<TronBlock | null> {
  const read = await readHead(rpc, height, true)
  if (read === null) return null
  const { header, transactions } = read
  if (transactions.length === 0) return { ...header, moves: [], costs: [] }
  const infos = await rpc.get('wallet/gettransactioninfobyblocknum', { num: String(height) })
  const moves = readMoves(transactions, listIn(infos, 'gettransactioninfobyblocknum'))
  const after = await readHead(rpc, height, false)
  if (after?.header.hash !== header.hash)
    throw new NoAnswer('wallet/getblock', `block ${height} changed while it was being read: read it again`)
  return { ...header, ...moves }
}
