import type { Posting } from '../ledger/postings.ts'
import * as ledger from '../ledger/postings.ts'
import type { PayoutId } from '../payouts/intent.ts'
import type { Quote } from '../quotes/quote.ts'
import type { InstantMs } from '../time.ts'
import { payoutIdOf } from './identifiers.ts'
import { type Deposit, isDust, type Order, type OrderState } from './order.ts'

/** What the engine has to do because of a decision; rows, not calls. */
export type Effect =
  | { readonly kind: 'PlanPayout'; readonly payoutId: PayoutId }
  /** Only while nothing of it was ever written down as an exact transaction. */
  | { readonly kind: 'CancelPayout'; readonly payoutId: PayoutId }

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

/** The exchange of all that was received happens: the books change sides, and the payout is due. */
export function settle(order: Order, quote: Quote, nowMs: InstantMs): Decision {
  const { from: received, to: paid, rate, fee, networkFee } = quote
  const settlement = { received, paid, rate, fee, networkFee }
  const { next, payoutId } = nextOutflow(order)
  const state: OrderState = { status: 'EXCHANGE', settlement, payoutId }
  return move(next, state, nowMs, ledger.exchanged(settlement), [{ kind: 'PlanPayout', payoutId }])
}

/** The order with a new outflow. What is not confirmed by now can no longer be part of what is paid out. */
export function nextOutflow(order: Order): { readonly next: Order; readonly payoutId: PayoutId } {
  const number = order.outflowCount + 1
  return {
    next: { ...closeCounting(order), outflowCount: number },
    payoutId: payoutIdOf(order.terms.id, number),
  }
}

/** What is not confirmed yet counts no more, should it ever be. */
export function closeCounting(order: Order): Order {
  const deposits = order.deposits.map((deposit): Deposit => {
    const isOpen = deposit.role === 'counted' && deposit.state !== 'confirmed'
    return isOpen ? { ...deposit, role: isDust(deposit.amount) ? 'dust' : 'extra' } : deposit
  })
  return { ...order, deposits }
}

export function ignore(why: string): Decision {
  return { kind: 'ignored', why }
}

/**
 * The next state. A change of status takes the next sequence number, and the first to EMERGENCY is noted; other changes only
 * touch `updatedAtMs`, which never goes back, although the clocks of two machines differ.
 */
export function move(
  order: Order,
  state: OrderState,
  nowMs: InstantMs,
  postings: readonly Posting[] = [],
  effects: readonly Effect[] = [],
): Decision {
  const isAnother = state.status !== order.state.status
  const sequence = isAnother ? order.sequence + 1 : order.sequence
  const becomesEmergency = isAnother && state.status === 'EMERGENCY'
  const firstEmergencyAtMs = order.firstEmergencyAtMs ?? (becomesEmergency ? nowMs : null)
  const updatedAtMs = Math.max(order.updatedAtMs, nowMs)
  const next = { ...order, state, sequence, updatedAtMs, firstEmergencyAtMs }
  return { kind: 'changed', order: next, postings, effects }
}
