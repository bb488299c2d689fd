import type { Posting } from '../ledger/postings.ts'
import { type Quote, quoteAtRate, WHOLE_BASIS_POINTS } from '../quotes/quote.ts'
import type { InstantMs } from '../time.ts'
import { type Decision, ignore, settle, takeBack, toEmergency } from './decision.ts'
import type { Fact } from './facts.ts'
import { depositReasons, type Order, type OrderTerms, received } from './order.ts'

/** Spec 3, EXCHANGE: fixed at the promised rate, float at the market's, unless that slipped too far. */
export function onExchangePriced(
  order: Order,
  { quote }: Fact & { kind: 'ExchangePriced' },
  nowMs: InstantMs,
): Decision {
  const { state, terms } = order
  if (state.status !== 'EXCHANGE' || state.settlement !== null)
    return ignore('nothing is waiting to be exchanged')
  if (terms.rateType === 'fixed') {
    const { exchanged, pays, postings } = promised(order)
    return pays === null ? toEmergency(order, ['UNDERPAID'], nowMs) : settle(exchanged, pays, nowMs, postings)
  }
  if (quote !== null && quote.from.units !== received(order).units)
    return ignore('it was priced on another amount')
  if (quote === null || hasSlipped(terms, quote)) return toEmergency(order, ['RATE_SLIPPAGE'], nowMs)
  return settle(order, quote, nowMs)
}

/** Rates are compared, not what they bring: within the tolerance, what came may be less or more than what was asked. */
function hasSlipped({ asks, promises, slippage }: OrderTerms, { from, to }: Quote): boolean {
  const least = promises.units * from.units * (WHOLE_BASIS_POINTS - slippage)
  return to.units * asks.units * WHOLE_BASIS_POINTS < least
}

/** What a fixed order pays, of what it pays that, and what makes that so in the books. */
type Promised = {
  readonly exchanged: Order
  readonly pays: Quote | null
  readonly postings: readonly Posting[]
}

/**
 * Where what came is too little to be paid out, what came since counts with it, as it does for whoever is asked: who has sent the rest
 * is not told that it is too little. Null: it is too little all the same, or something else is wrong.
 */
export function promised(order: Order): Promised {
  const pays = promisedForReceived(order)
  if (pays !== null) return { exchanged: order, pays, postings: [] }
  const { next, postings } = takeBack(order)
  const isWhatWasAsked = depositReasons(next).length === 0
  return { exchanged: next, pays: isWhatWasAsked ? promisedForReceived(next) : null, postings }
}

/**
 * A fixed order that received what it asked for pays exactly what it promised. Where the tolerance let a little less
 * through, the locked rate holds for what came: otherwise everybody would pay the least that is tolerated.
 * Null when what came is too little to be paid out.
 */
function promisedForReceived(order: Order): Quote | null {
  const from = received(order)
  const { asks, promises: to, rate, fee, feeShare, networkFee } = order.terms
  return from.units < asks.units
    ? quoteAtRate(rate, from, feeShare, networkFee)
    : { from, to, rate, fee, networkFee }
}

/** Only what has waited itself: another engine may have settled the exchange meanwhile, or a reorganisation begun it anew. */
export function onExchangeStalled(
  order: Order,
  fact: Fact & { kind: 'ExchangeStalled' },
  nowMs: InstantMs,
): Decision {
  const { state } = order
  if (state.status !== 'EXCHANGE') return ignore('nothing is waiting')
  const isWhatWaits =
    fact.payoutId === null
      ? state.settlement === null && order.sequence === fact.sequence
      : state.settlement !== null && state.payoutId === fact.payoutId
  if (!isWhatWaits) return ignore('what has waited too long is not what is waiting')
  if (order.isOutflowCommitted) return ignore('the payout may be on its way; only the chain can say')
  return toEmergency(order, ['NETWORK_PROBLEM'], nowMs)
}
