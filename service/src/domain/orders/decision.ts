import type { Posting } from '../ledger/postings.ts'
import * as ledger from '../ledger/postings.ts'
import type { InstantMs } from '../time.ts'
import { payoutIdOf } from './identifiers.ts'
import type { EmergencyReason, Order, OrderState, Settlement } from './order.ts'

/** What the engine has to do because of a decision; rows, not calls. */
export type Effect =
  | { readonly kind: 'PlanPayout'; readonly payoutId: string }
  /** Only while nothing of it was ever written down as an exact transaction. */
  | { readonly kind: 'CancelPayout'; readonly payoutId: string }

/** OFFER_CHANGED: the amounts of the choice were worked out from another state; work them out again. */
export type Refusal = 'NOT_EMERGENCY' | 'INVALID_ACTION' | 'OFFER_CHANGED'

export type Decision =
  | {
      readonly kind: 'changed'
      readonly order: Order
      readonly postings: readonly Posting[]
      readonly effects: readonly Effect[]
    }
  /** The fact changes nothing here, and why that is right. */
  | { readonly kind: 'ignored'; readonly why: string }
  /** A choice that cannot be taken; the one who chose is told. */
  | { readonly kind: 'refused'; readonly code: Refusal; readonly why: string }

/** The exchange happens: the books change sides, and the payout is due. */
export function settle(order: Order, settlement: Settlement, nowMs: InstantMs): Decision {
  const number = order.outflowCount + 1
  const payoutId = payoutIdOf(order.terms.id, number)
  const state: OrderState = { status: 'EXCHANGE', settlement, payoutId }
  return move(
    { ...order, outflowCount: number, isOutflowCommitted: false },
    state,
    nowMs,
    ledger.exchanged(settlement),
    [{ kind: 'PlanPayout', payoutId }],
  )
}

export function ignore(why: string): Decision {
  return { kind: 'ignored', why }
}

/** The next state. A change of status takes the next sequence number; other changes only touch `updatedAtMs`. */
export function move(
  order: Order,
  state: OrderState,
  nowMs: InstantMs,
  postings: readonly Posting[] = [],
  effects: readonly Effect[] = [],
): Decision {
  const sequence = state.status === order.state.status ? order.sequence : order.sequence + 1
  return { kind: 'changed', order: { ...order, state, sequence, updatedAtMs: nowMs }, postings, effects }
}

/**
 * A person has to decide. Whatever was exchanged or owed is turned round first, so that in EMERGENCY the books say
 * exactly: this was received and is still the customer's.
 */
export function toEmergency(
  order: Order,
  reasons: readonly EmergencyReason[],
  nowMs: InstantMs,
  extraPostings: readonly Posting[] = [],
): Decision {
  const { postings, effects } = takeBack(order)
  return move(order, { status: 'EMERGENCY', reasons }, nowMs, [...extraPostings, ...postings], effects)
}

/** Undoes what an unfinished exchange or refund booked; only for outflows that provably never pay. */
export function takeBack(order: Order): { postings: readonly Posting[]; effects: readonly Effect[] } {
  const { state } = order
  switch (state.status) {
    case 'EXCHANGE':
      if (state.settlement === null) return { postings: [], effects: [] }
      return {
        postings: ledger.exchangeReturned(state.settlement),
        effects: [{ kind: 'CancelPayout', payoutId: state.payoutId }],
      }
    case 'WITHDRAW':
      return { postings: ledger.exchangeReturned(state.settlement), effects: [] }
    case 'REFUND':
      return {
        postings: ledger.refundReturned(state.refund.amount, state.refund.networkFee),
        effects: [{ kind: 'CancelPayout', payoutId: state.payoutId }],
      }
    default:
      return { postings: [], effects: [] }
  }
}
