import { chanceFrom } from '../../test/harness/chance.ts'
import { makeSolanaBlock, type SolanaBlock } from '../blocks/solana_block.ts'
import type { OpenBlockNode } from './block_node.ts'
import { jsonRpcNode } from './json_rpc.ts'

/** What an Agave answers, of what is final: https://solana.com/docs/rpc/http */
export const solanaNode: OpenBlockNode = (last) => {
  const chance = chanceFrom(6)
  const blocks: SolanaBlock[] = []
  for (let slot = 0; slot <= last; slot += 1)
    blocks.push(makeSolanaBlock(chance, blocks.at(-1)?.hash ?? '1'.repeat(32), slot))
  return jsonRpcNode(({ method, params }, head) => {
    switch (method) {
      case 'getSlot':
        return String(head)
      case 'getBlock': {
        const [slot, { transactionDetails }] = params as [number, { transactionDetails: string }]
        const block = slot > head ? undefined : blocks[slot]
        if (block === undefined) return { code: -32004, message: 'Block not available' }
        return transactionDetails === 'none' ? block.header : block.whole
      }
      case 'getMultipleAccounts': {
        const [addresses] = params as [readonly string[]]
        return JSON.stringify({ context: { slot: head }, value: addresses.map(() => null) })
      }
      case 'getRecentPrioritizationFees':
        return PRIORITY
      case 'getMinimumBalanceForRentExemption':
        return params[0] === 0 ? '890880' : '2039280'
      default:
        throw new Error(`a watcher does not ask ${method}`)
    }
  })
}

const PRIORITY = JSON.stringify(
  Array.from({ length: 150 }, (_, slot) => ({ slot, prioritizationFee: slot * 100 })),
)
