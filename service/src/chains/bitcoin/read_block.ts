import { assert } from '../../domain/assert.ts'
import type { BitcoinNetwork } from '../../domain/catalog/networks.ts'
import { SECOND_MS } from '../../domain/time.ts'
import type { Block, BlockRef, FindOurs } from '../chain.ts'
import { integerIn, objectIn, textIn } from './replies.ts'
import { NoAnswer, type Rpc } from './rpc.ts'
import { transfersToOurs } from './transfers.ts'
import { parseBlock, type WireBlock } from './wire.ts'

const OUT_OF_RANGE = -8
/** The node counts blocks in 32 bits and calls anything above malformed rather than out of range. */
const HEIGHT_MAX = 2 ** 31 - 1

export async function head(rpc: Rpc): Promise<BlockRef> {
  const info = objectIn(await rpc.call('getblockchaininfo'), 'getblockchaininfo')
  const missing = integerIn(info.headers, 'headers') - integerIn(info.blocks, 'blocks')
  // What is paid in a block that it knows of and has not fetched, it does not tell. The last one is on its way with every block.
  if (missing > 1)
    throw new NoAnswer('getblockchaininfo', `the node is catching up: it lacks ${missing} blocks`)
  return { height: integerIn(info.blocks, 'blocks'), hash: textIn(info.bestblockhash, 'bestblockhash') }
}

export async function readBlock(
  rpc: Rpc,
  network: BitcoinNetwork,
  height: number,
  findOurs: FindOurs,
): Promise<Block | null> {
  const hash = await blockHash(rpc, height)
  if (hash === null) return null
  const block = parse(hash, textIn(await rpc.call('getblock', hash, 0), 'getblock'))
  return {
    height,
    hash,
    parentHash: block.parentHash,
    timeMs: block.timeSeconds * SECOND_MS,
    transfers: await transfersToOurs(network, block.txs, findOurs),
  }
}

export async function blockHash(rpc: Rpc, height: number): Promise<string | null> {
  assert(Number.isSafeInteger(height) && height >= 0, `${height} is a height`)
  if (height > HEIGHT_MAX) return null
  const [outcome] = await rpc.batch([['getblockhash', height]])
  if (outcome?.ok) return textIn(outcome.value, 'getblockhash')
  if (outcome?.rejection.code === OUT_OF_RANGE) return null
  throw outcome?.rejection ?? new NoAnswer('getblockhash', 'no reply')
}

/** The bytes, proven to be the block of that hash: half a block is an error, never a block with fewer deposits. */
function parse(hash: string, hex: string): WireBlock {
  let block: WireBlock
  try {
    block = parseBlock(Buffer.from(hex, 'hex'))
  } catch (error) {
    throw new NoAnswer('getblock', error instanceof Error ? error.message : 'no block')
  }
  if (block.hash !== hash) throw new NoAnswer('getblock', `the block hashes to ${block.hash}, not ${hash}`)
  return block
}
