import type { InstantMs } from '../time.ts'
import { type Decision, ignore, settle, toEmergency } from './decision.ts'
import type { Fact } from './facts.ts'
import { type Order, received, type Settlement } from './order.ts'

/** Spec 3, EXCHANGE: fixed at the promised rate, float at the market's, unless that slipped too far. */
export function onExchangePriced(
  order: Order,
  { quote }: Fact & { kind: 'ExchangePriced' },
  nowMs: InstantMs,
): Decision {
  const { state, terms } = order
  if (state.status !== 'EXCHANGE' || state.settlement !== null)
    return ignore('nothing is waiting to be exchanged')
  if (terms.rateType === 'fixed') return settle(order, promised(order), nowMs)
  const leastPaid = terms.promises.units * (WHOLE_BASIS_POINTS - terms.slippage)
  if (quote !== null && quote.from.units !== received(order).units) return ignore('it was priced on another amount')
  if (quote === null || quote.to.units * WHOLE_BASIS_POINTS < leastPaid) {
    return toEmergency(order, ['RATE_SLIPPAGE'], nowMs)
  }
  const { to: paid, rate, fee, networkFee } = quote
  return settle(order, { received: received(order), paid, rate, fee, networkFee }, nowMs)
}

const WHOLE_BASIS_POINTS = 10_000n

/** A fixed order that received what it asked for pays exactly what it promised. */
function promised(order: Order): Settlement {
  const { promises: paid, rate, fee, networkFee } = order.terms
  return { received: received(order), paid, rate, fee, networkFee }
}

export function onExchangeStalled(order: Order, nowMs: InstantMs): Decision {
  if (order.state.status !== 'EXCHANGE') return ignore('nothing is waiting')
  if (order.isOutflowCommitted) return ignore('the payout may be on its way; only the chain can say')
  return toEmergency(order, ['NETWORK_PROBLEM'], nowMs)
}
