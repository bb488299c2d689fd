import type { Amount } from '../money/amount.ts'
import type { PayoutId } from '../payouts/intent.ts'
import type { Quote } from '../quotes/quote.ts'
import type { InstantMs } from '../time.ts'
import type { BlockRef, Refund } from './order.ts'

/**
 * Everything that can happen to an order. A fact is past tense and comes with a key that names it in the outside
 * world, so that hearing it twice changes nothing. Customers and operators act by facts too: there is no second path.
 */
export type Fact =
  | {
      readonly kind: 'DepositSeen'
      readonly key: string
      readonly txHash: string
      readonly amount: Amount
      readonly seenAtMs: InstantMs
      /** Null while it waits in a mempool. */
      readonly block: BlockRef | null
    }
  /** Its block is no longer on the best chain; the transaction itself may come again. */
  | { readonly kind: 'DepositUnmined'; readonly key: string }
  /** Neither brought by a block nor in a mempool any more: replaced, dropped, or its transaction failed. */
  | { readonly kind: 'DepositVanished'; readonly key: string }
  | { readonly kind: 'DepositConfirmed'; readonly key: string }
  /** Judged by `atMs`, when the time was found to be up. That may be later than the time of the decision, when a clock was set back since. */
  | { readonly kind: 'OrderExpired'; readonly atMs: InstantMs }
  /** What the exchange comes to at this moment, for float at the market; null when what was received is too little for it. */
  | { readonly kind: 'ExchangePriced'; readonly quote: Quote | null }
  /** An exchange could not be priced for too long. It has no name of its own, only the order's number of that moment. */
  | { readonly kind: 'ExchangeStalled'; readonly payoutId: null; readonly sequence: number }
  /** A payout could not be begun for too long. */
  | { readonly kind: 'ExchangeStalled'; readonly payoutId: PayoutId }
  | { readonly kind: 'PayoutBroadcast'; readonly payoutId: PayoutId; readonly txHash: string }
  | {
      readonly kind: 'PayoutConfirmed'
      readonly payoutId: PayoutId
      readonly txHash: string
      readonly cost: Amount
    }
  /** The outflow provably never pays: refused before it was ever signed, or executed and rejected by the chain. */
  | {
      readonly kind: 'PayoutFailed'
      readonly payoutId: PayoutId
      readonly problem: 'DESTINATION_PROBLEM' | 'NETWORK_PROBLEM'
      /** What the failed transaction cost, if there was one: the customer's with a `DESTINATION_PROBLEM`, otherwise ours. */
      readonly cost: Amount | null
      /** What kept it from paying is over: made anew, it would pay. */
      readonly wouldPayNow?: boolean
    }
  | {
      readonly kind: 'ActionChosen'
      readonly action: 'continue' | 'recalculate'
      /** What it pays, as offered at the moment of the choice; null when too little was received. */
      readonly quote: Quote | null
    }
  | { readonly kind: 'ActionChosen'; readonly action: 'refund'; readonly refund: Refund | null }

export type FactKind = Fact['kind']

export const factKinds = [
  'DepositSeen',
  'DepositUnmined',
  'DepositVanished',
  'DepositConfirmed',
  'OrderExpired',
  'ExchangePriced',
  'ExchangeStalled',
  'PayoutBroadcast',
  'PayoutConfirmed',
  'PayoutFailed',
  'ActionChosen',
] as const satisfies readonly FactKind[]
