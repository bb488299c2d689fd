import { assetOf } from '../domain/catalog/assets.ts'
import { type Amount, amountOf, toPrecision } from '../domain/money/amount.ts'
import { type Order, type OrderTerms, received } from '../domain/orders/order.ts'
import { type Quote, quoteAtRate, quoteReceived } from '../domain/quotes/quote.ts'
import { type MarketBoard, readMarketOf } from './market.ts'

/** What each emergency action would do now; null where it cannot be taken. */
export type Offers = {
  readonly continue: Quote | null
  readonly recalculate: Quote | null
  readonly refund: { readonly amount: Amount; readonly networkFee: Amount } | null
}

/**
 * DESIGN 3, Lifecycle. continue: received × the locked rate, or the current rate where no rate is locked any more
 * (float, late, or an hour past the order's expiry) or what was received is too small a part of what was asked. recalculate:
 * the current rate on what was received. refund: what was received less the network's cost.
 */
export function emergencyOffers(order: Order, board: MarketBoard): Offers {
  const { terms, state } = order
  const total = received(order)
  const market = readMarketOf(board, terms)
  const current = market && quoteReceived(market, total)
  const isLate = state.status === 'EMERGENCY' && state.reasons.includes('LATE_DEPOSIT')
  // What is not worth exchanging at the market is not exchanged at the lock either.
  const isWorthIt = market === null || current !== null
  const isOffered =
    terms.rateType === 'fixed' && !isLate && isWorthIt && board.isLockOffered(terms.expiresAtMs)
  const locked = isOffered ? quoteAtRate(terms.rate, total, terms.feeShare, terms.networkFee) : null
  const keepsRate = isOffered && (locked === null || paysForItself(terms, locked))
  return {
    continue: keepsRate ? locked : current,
    recalculate: current,
    refund: refundOffer(total, board.payoutCost(assetOf(terms.from))),
  }
}

/**
 * The locked rate is all-in for the amount asked, and what came brings only its share of the network's cost. The rest is
 * ours to bear, out of the fee and no further: otherwise an order of a large amount would be a cheap payout of a small one.
 */
function paysForItself({ asks, networkFee }: OrderTerms, { from, fee }: Quote): boolean {
  return (asks.units - from.units) * networkFee.units <= fee.units * asks.units
}

function refundOffer(total: Amount, cost: Amount | null): Offers['refund'] {
  if (cost === null || total.units <= cost.units) return null
  const amount = toPrecision(amountOf(total.asset, total.units - cost.units), 'down')
  if (amount.units < assetOf(total.asset).minPayout) return null
  return { amount, networkFee: amountOf(total.asset, total.units - amount.units) }
}
