import { type Quote, WHOLE_BASIS_POINTS } from '../quotes/quote.ts'
import type { InstantMs } from '../time.ts'
import { type Decision, ignore, settle } from './decision.ts'
import { toEmergency } from './emergency.ts'
import type { Fact } from './facts.ts'
import { type Order, type OrderTerms, promised, received } from './order.ts'

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
    // Null: it was worth a payout when the exchange began, and the least that is paid out is more by now.
    const pays = promised(order)
    return pays === null ? toEmergency(order, ['UNDERPAID'], nowMs) : settle(order, pays, nowMs)
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
