import type { ChainId } from '../../src/domain/catalog/networks.ts'
import type { OpenBlockNode } from './block_node.ts'

/** A new chain is a file and a line here, and one in scanned_chains.ts. */
export const blockNodes: Readonly<Record<ChainId, () => Promise<OpenBlockNode>>> = {
  BTC: async () => (await import('./bitcoin_node.ts')).bitcoinNode,
  // Of a hundred transactions on BNB Smart Chain half are swaps; geth and bsc have no trace_block.
  ETH: async () => (await import('./evm_node.ts')).evmNode('ETH', { txs: 350, swaps: 35, traces: 'parity' }),
  BNB: async () => (await import('./evm_node.ts')).evmNode('BNB', { txs: 110, swaps: 50, traces: 'call' }),
  XRP: async () => (await import('./xrp_node.ts')).xrpNode,
  XLM: async () => (await import('./stellar_node.ts')).stellarNode,
  SOL: async () => (await import('./solana_node.ts')).solanaNode,
  EOS: async () => (await import('./eos_node.ts')).eosNode,
  TRX: async () => (await import('./tron_node.ts')).tronNode,
}
