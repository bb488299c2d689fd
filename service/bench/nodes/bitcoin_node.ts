import { chanceFrom } from '../../test/harness/chance.ts'
import { type BitcoinBlock, makeBitcoinBlock } from '../blocks/bitcoin_block.ts'
import type { OpenBlockNode } from './block_node.ts'
import { isMissing, jsonRpcNode } from './json_rpc.ts'

/** What bitcoind answers. */
export const bitcoinNode: OpenBlockNode = (last) => {
  const chance = chanceFrom(1)
  const blocks: BitcoinBlock[] = []
  for (let height = 0; height <= last; height += 1) {
    blocks.push(makeBitcoinBlock(chance, blocks.at(-1)?.hash ?? '00'.repeat(32), height))
  }
  return jsonRpcNode(({ method, params }, head) => {
    switch (method) {
      case 'getblockchaininfo':
        return JSON.stringify({ blocks: head, headers: head, bestblockhash: blocks[head]?.hash })
      case 'getblockhash':
        return (params[0] as number) > head
          ? { code: -8, message: 'Block height out of range' }
          : JSON.stringify(blocks[params[0] as number]?.hash)
      case 'getblock':
        return `"${blocks.find(({ hash }) => hash === params[0])?.hex}"`
      case 'getrawmempool':
        return '[]'
      case 'estimatesmartfee':
        return '{"feerate":0.00010000,"blocks":2}'
      case 'getmempoolinfo':
        return '{"mempoolminfee":0.00001000,"minrelaytxfee":0.00001000}'
      default:
        return isMissing
    }
  }, true)
}
