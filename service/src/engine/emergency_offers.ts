import { type Asset, type AssetId, assetOf } from '../domain/catalog/assets.ts'
import { type Amount, add, amountOf, toPrecision } from '../domain/money/amount.ts'
import { type Order, type OrderTerms, received } from '../domain/orders/order.ts'
import { accept, type Outcome, refuse } from '../domain/outcome.ts'
import { type Market, type Quote, quoteAtRate, quoteLess, quoteReceived } from '../domain/quotes/quote.ts'
import { type MarketBoard, type MarketRejection, noPrice } from './market.ts'

/** What each emergency action would do now; null where it cannot be taken. */
export type Offers = {
  readonly continue: Quote | null
  readonly recalculate: Quote | null
  readonly refund: { readonly amount: Amount; readonly networkFee: Amount } | null
  /** Whether null says that too little was received; false while some action may be offered later, as `whyNotNow` says. */
  readonly areKnown: boolean
}

/**
 * docs/api.md, Emergencies. continue: received × the locked rate; × the current rate where no rate is locked any more (float; late; an
 * hour past expiry or, where only the house is in trouble, past when the customer was first asked), where what was received is too small a
 * part of what was asked, and where it is more than could have been asked. recalculate: received × the current rate. Neither is offered
 * while the reserve does not cover it. refund: what was received less the network's cost. What failed attempts have cost is taken off each.
 */
export function emergencyOffers(order: Order, board: MarketBoard): Offers {
  const exchanges = priceExchanges(order, board)
  const covered = (quote: Quote | null) => (quote !== null && isCovered(order, quote, board) ? quote : null)
  const returning = refundCost(order, board)
  const isKnown = (action: 'continue' | 'recalculate') => whyNotNow(order, action, board) === null
  return {
    continue: covered(exchanges.continue),
    recalculate: covered(exchanges.recalculate),
    refund: refundOffer(received(order), returning),
    areKnown: returning !== null && isKnown('continue') && isKnown('recalculate'),
  }
}

/**
 * Why an exchange that may well be worth it is not offered at this moment: that passes, and says nothing about how much was
 * received. Null where it is offered, or too little was received.
 */
export function whyNotNow(
  order: Order,
  action: 'continue' | 'recalculate',
  board: MarketBoard,
): MarketRejection | null {
  const quote = priceExchanges(order, board)[action]
  if (quote !== null) return isCovered(order, quote, board) ? null : reserveTooLow(assetOf(quote.to.asset))
  const market = readOfferMarket(order, board)
  return market.ok ? null : market.rejection
}

/** What they come to, whether or not that could be paid. */
function priceExchanges(order: Order, board: MarketBoard): Pick<Offers, 'continue' | 'recalculate'> {
  const { terms, state } = order
  const total = received(order)
  const market = readOfferMarket(order, board)
  const current = market.ok ? quoteReceived(market.value, total) : null
  const isLate = state.status === 'EMERGENCY' && state.reasons.includes('LATE_DEPOSIT')
  // What is not worth exchanging at the market is not exchanged at the lock either.
  const isWorthIt = !market.ok || current !== null
  const mayKeepRate = terms.rateType === 'fixed' && !isLate && isWorthIt && couldBeAsked(total, terms)
  const isOffered = mayKeepRate && board.isLockHeld(order)
  const locked = isOffered ? quoteAtRate(terms, total) : null
  const keepsRate = isOffered && (locked === null || paysForItself(terms, locked))
  const failed = failedCostIn(terms.to, order, board)
  return {
    continue: keepsRate ? locked && failed && quoteLess(locked, failed) : current,
    recalculate: current,
  }
}

/**
 * No rate is ever locked for more than a currency's maximum: a small order would be an option on any amount. At the market it
 * may be more, because the range limits what is asked for (spec 8, Amount range: rate, create) and this has come already.
 */
function couldBeAsked(total: Amount, { from, tolerance }: OrderTerms): boolean {
  return total.units <= assetOf(from).maxAmount + tolerance.units
}

function isCovered({ terms }: Order, { to }: Quote, board: MarketBoard): boolean {
  return to.units <= board.reserve(assetOf(to.asset), terms.id).units
}

function reserveTooLow({ currency, network }: Asset): MarketRejection {
  return {
    code: 'MAINTENANCE',
    message: `the reserve of ${currency} on ${network} does not cover this at the moment; try again later, or choose refund`,
  }
}

/** The market for what was received, on which a payout costs as much more as failed ones have cost already. */
function readOfferMarket(order: Order, board: MarketBoard): Outcome<Market, MarketRejection> {
  const { from, to, rateType } = order.terms
  const market = board.read(assetOf(from), assetOf(to), rateType)
  if (!market.ok) return market
  const failed = failedCostIn(to, order, board)
  if (failed === null) return refuse(noPrice)
  // The same one, for which what quotes need again and again is worked out once.
  if (failed.units === 0n) return market
  return accept({ ...market.value, networkFee: add(market.value.networkFee, failed) })
}

/** What returning the deposit costs its customer, in itself; null while nobody knows. */
export function refundCost(order: Order, board: MarketBoard): Amount | null {
  const { from } = order.terms
  const cost = board.payoutCost(assetOf(from))
  const failed = failedCostIn(from, order, board)
  return cost && failed && add(cost, failed)
}

/** Null while nobody knows what that is in this asset. */
function failedCostIn(asset: AssetId, { failedCosts }: Order, board: MarketBoard): Amount | null {
  let sum = amountOf(asset, 0n)
  for (const cost of [failedCosts.payouts, failedCosts.refunds]) {
    if (cost.units === 0n) continue
    const told = board.costOf(assetOf(asset), cost)
    if (told === null) return null
    sum = add(sum, told)
  }
  return sum
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
