import * as ledger from '../ledger/postings.ts'
import type { InstantMs } from '../time.ts'
import { type Decision, move, nextOutflow, settle } from './decision.ts'
import type { Fact } from './facts.ts'
import { type Order, type Refund, received } from './order.ts'

/**
 * What the customer chose for an order in EMERGENCY (spec 4.6). One choice wins: the state is left at once, so the next
 * one finds no emergency any more. The amounts come with the fact, as they were offered at the moment of the choice.
 */
export function onActionChosen(
  order: Order,
  fact: Fact & { kind: 'ActionChosen' },
  nowMs: InstantMs,
): Decision {
  if (order.state.status !== 'EMERGENCY') {
    return { kind: 'refused', code: 'NOT_EMERGENCY', why: `the order is ${order.state.status}` }
  }
  if (fact.action === 'refund') return refund(order, fact.refund, nowMs)
  if (fact.quote === null) {
    return {
      kind: 'refused',
      code: 'INVALID_ACTION',
      why: 'what was received is too little to be exchanged; choose refund',
    }
  }
  if (fact.quote.from.units !== received(order).units) return OFFER_CHANGED
  return settle(order, fact.quote, nowMs)
}

function refund(order: Order, asked: Refund | null, nowMs: InstantMs): Decision {
  const total = received(order)
  if (asked === null || asked.amount.units <= 0n || asked.amount.units > total.units) {
    return {
      kind: 'refused',
      code: 'INVALID_ACTION',
      why: 'what was received does not cover the cost of sending it back',
    }
  }
  if (asked.amount.units + asked.networkFee.units !== total.units) return OFFER_CHANGED
  const { next, payoutId } = nextOutflow(order)
  return move(
    { ...next, refundAddress: asked.address },
    { status: 'REFUND', refund: asked, payoutId, txHash: null },
    nowMs,
    ledger.refundOwed(asked.amount, asked.networkFee),
    [{ kind: 'PlanPayout', payoutId }],
  )
}

/** Something arrived or left between the offer and the choice. */
const OFFER_CHANGED: Decision = {
  kind: 'refused',
  code: 'OFFER_CHANGED',
  why: 'what was received changed at this moment',
}
