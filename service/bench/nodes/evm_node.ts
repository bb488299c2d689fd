import { chanceFrom } from '../../test/harness/chance.ts'
import { type EvmBlock, type EvmShape, makeEvmBlock } from '../blocks/evm_block.ts'
import { LISTED_TOKENS } from '../blocks/own_addresses.ts'
import type { OpenBlockNode } from './block_node.ts'
import { isMissing, jsonRpcNode } from './json_rpc.ts'

/** `call`: the node is one that has no trace_block, like geth and bsc. */
type EvmNodeShape = EvmShape & { readonly traces: 'parity' | 'call' }

export function evmNode(chain: 'ETH' | 'BNB', shape: EvmNodeShape): OpenBlockNode {
  return (last) => {
    const chance = chanceFrom(2)
    const tokens = LISTED_TOKENS[chain]
    const blocks: EvmBlock[] = []
    for (let height = 0; height <= last; height += 1) {
      const parentHash = blocks.at(-1)?.hash ?? chance.hex(32)
      blocks.push(makeEvmBlock(chance, shape, { chain, parentHash, height, tokens }))
    }
    return nodeOf(blocks, shape)
  }
}

function nodeOf(blocks: readonly EvmBlock[], { traces }: EvmNodeShape) {
  const byHash = new Map(blocks.map((block) => [block.hash, block]))
  return jsonRpcNode(({ method, params }, head) => {
    const [first, second] = params
    switch (method) {
      case 'eth_getBlockByNumber': {
        const block = blocks[typeof first === 'string' && first.startsWith('0x') ? Number(first) : head]
        if (block === undefined || block.height > head) return 'null'
        return second === true ? block.block : block.header
      }
      case 'eth_getBlockReceipts':
        return byHash.get(String(first))?.receipts ?? 'null'
      case 'trace_block':
        return traces === 'call' ? isMissing : (blocks[Number(first)]?.parityTraces ?? 'null')
      case 'debug_traceBlockByHash':
        return byHash.get(String(first))?.callTraces ?? 'null'
      case 'eth_blockNumber':
        return JSON.stringify(`0x${head.toString(16)}`)
      case 'eth_getBalance':
        return typeof second === 'string'
          ? '"0x3b9aca00"'
          : JSON.stringify(`0x${gainedAt(byHash, second, `null ${first}`).toString(16)}`)
      case 'eth_gasPrice':
      case 'eth_maxPriorityFeePerGas':
        return '"0x3b9aca00"'
      case 'eth_call':
        return balanceOf(byHash, first as { to: string; data: string }, second)
      case 'eth_newPendingTransactionFilter':
        return '"0x1"'
      case 'eth_getFilterChanges':
        return '[]'
      default:
        return isMissing
    }
  })
}

/** `balanceOf` at a block. */
function balanceOf(
  byHash: ReadonlyMap<string, EvmBlock>,
  { to, data }: { readonly to: string; readonly data: string },
  at: unknown,
): string {
  const units = gainedAt(byHash, at, `${to} 0x${data.slice(-40)}`)
  return `"0x${units.toString(16).padStart(64, '0')}"`
}

/** Of ours what they got in that block, as if they had held nothing before. */
function gainedAt(byHash: ReadonlyMap<string, EvmBlock>, at: unknown, pair: string): bigint {
  const block = byHash.get((at as { blockHash?: string }).blockHash ?? '')
  return block?.gained.get(pair.toLowerCase()) ?? 0n
}
