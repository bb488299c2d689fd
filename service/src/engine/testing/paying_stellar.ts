import type { Chain } from '../../chains/chain.ts'
import { assert } from '../../domain/assert.ts'
import { accept } from '../../domain/outcome.ts'
import type { BooksStage } from './books_stage.ts'

export const STELLAR_PRICES = { feeStroops: 100n, maxTimeS: 60, sequenceBase: 0n }

/**
 * Stellar on paper, on which can be paid: everybody has an account, what is behind a `+` is an id on it, and it takes whatever is sent, and
 * closes no ledger by itself.
 */
export function payingStellar(stage: BooksStage, overrides: Partial<Chain> = {}): Chain {
  return {
    ...stage.chain('XLM'),
    balance: async () => 10n ** 30n,
    minedNonce: async () => 1,
    accountOf: (address) => address.replace(/\+\d+$/, ''),
    bid: async () => accept({ family: 'stellar', ...STELLAR_PRICES, creates: false }),
    draft: ({ payoutId, kind, address: to, units: stroops }, bid, funds) => {
      assert(bid.family === 'stellar' && funds.model === 'account', 'Stellar has accounts')
      const { creates, feeStroops, maxTimeS } = bid
      const payment = kind === 'filler' ? null : { to, memo: null, stroops, creates }
      const what = { payoutId, attempt: 1, from: funds.from, sequence: BigInt(funds.nonce), payment }
      const passphrase = 'on paper'
      return accept({ family: 'stellar', chain: 'XLM', passphrase, ...what, feeStroops, maxTimeS })
    },
    raise: (previous) => {
      assert(previous.family === 'stellar', 'Stellar')
      return accept({ ...previous, attempt: previous.attempt + 1, maxTimeS: previous.maxTimeS + 61 })
    },
    broadcast: async () => 'accepted',
    ...overrides,
  }
}
