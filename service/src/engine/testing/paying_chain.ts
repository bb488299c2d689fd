import type { Chain } from '../../chains/chain.ts'
import { assert } from '../../domain/assert.ts'
import { accept } from '../../domain/outcome.ts'
import type { BooksStage } from './books_stage.ts'

export const PAPER_FEES = { gasLimit: 21_000n, maxFeePerGasWei: 2n, maxPriorityFeePerGasWei: 1n }

/** Ethereum on paper, on which can be paid: it takes whatever is sent, and mines nothing by itself. */
export function payingChain(stage: BooksStage, overrides: Partial<Chain> = {}): Chain {
  const paper = stage.chain('ETH')
  return {
    ...paper,
    balance: (asset, addresses, height) => paper.balance(asset, addresses, height ?? 100),
    minedNonce: async () => 0,
    bid: async () => accept({ family: 'evm', ...PAPER_FEES }),
    draft: ({ payoutId, address: to, units }, _, funds) => {
      assert(funds.model === 'account', 'Ethereum has accounts')
      const { from, nonce } = funds
      const what = { payoutId, attempt: 1, from, nonce, to, token: null, units }
      return accept({ family: 'evm', chain: 'ETH', evmChainId: 1, ...what, ...PAPER_FEES })
    },
    raise: (previous) => {
      assert(previous.family === 'evm', 'Ethereum')
      const maxFeePerGasWei = 2n * previous.maxFeePerGasWei
      return accept({ ...previous, attempt: previous.attempt + 1, maxFeePerGasWei })
    },
    broadcast: async () => 'accepted',
    ...overrides,
  }
}
