import type { Posting } from '../ledger/postings.ts'
import * as ledger from '../ledger/postings.ts'
import type { PayoutId } from '../payouts/intent.ts'
import type { Quote } from '../quotes/quote.ts'
import type { InstantMs } from '../time.ts'
import { payoutIdOf } from './identifiers.ts'
import {
  type Deposit,
  depositReasons,
  type EmergencyReason,
  isAboutDeposits,
  type Order,
  type OrderState,
  orphaned,
} from './order.ts'

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
    return isOpen ? { ...deposit, role: 'extra' } : deposit
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
  const isAsked = isAnother && state.status === 'EMERGENCY'
  const firstEmergencyAtMs = order.firstEmergencyAtMs ?? (isAsked ? nowMs : null)
  const updatedAtMs = Math.max(order.updatedAtMs, nowMs)
  const next = { ...order, state, sequence, updatedAtMs, firstEmergencyAtMs }
  return { kind: 'changed', order: next, postings, effects }
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
  return askAbout(takeBack(order), reasons, nowMs, extraPostings)
}

/** The same, of what was turned round already. */
export function askAbout(
  { next, postings, effects }: TakenBack,
  reasons: readonly EmergencyReason[],
  nowMs: InstantMs,
  extraPostings: readonly Posting[] = [],
): Decision {
  // What its deposits say is worked out of all of them, also those that count only from here on.
  const about = depositReasons(next)
  const others = about.length === 0 ? reasons : reasons.filter((reason) => !isAboutDeposits(reason))
  const state: OrderState = { status: 'EMERGENCY', reasons: [...about, ...others] }
  return move(next, state, nowMs, [...extraPostings, ...postings], effects)
}

type TakenBack = {
  readonly next: Order
  readonly postings: readonly Posting[]
  readonly effects: readonly Effect[]
}

/**
 * Undoes what an unfinished exchange or refund booked; only for outflows that provably never pay. What came while the order could
 * not use it counts from here on: it may have been sent to replace what is gone, and the customer is asked about all that came.
 */
export function takeBack(order: Order): TakenBack {
  const { state } = order
  const { next, postings: counted } = countExtras({ ...order, isOutflowCommitted: false })
  const cancelled = ledger.orphanCancelled(orphaned(order))
  switch (state.status) {
    case 'EXCHANGE':
      if (state.settlement === null) return { next, postings: counted, effects: [] }
      return {
        next,
        postings: [...ledger.exchangeReturned(state.settlement), ...cancelled, ...counted],
        effects: [{ kind: 'CancelPayout', payoutId: state.payoutId }],
      }
    case 'WITHDRAW':
      return {
        next,
        postings: [...ledger.exchangeReturned(state.settlement), ...cancelled, ...counted],
        effects: [],
      }
    case 'REFUND': {
      const returned = ledger.refundReturned(state.refund.amount, state.refund.networkFee)
      return {
        next,
        postings: [...returned, ...cancelled, ...counted],
        effects: [{ kind: 'CancelPayout', payoutId: state.payoutId }],
      }
    }
    default:
      return { next, postings: counted, effects: [] }
  }
}

/** The other way round than `closeCounting`. */
function countExtras(order: Order): Pick<TakenBack, 'next' | 'postings'> {
  const extras = order.deposits.filter(({ role }) => role === 'extra')
  const booked = extras.filter(({ state }) => state === 'confirmed')
  const deposits = order.deposits.map(
    (deposit): Deposit => (deposit.role === 'extra' ? { ...deposit, role: 'counted' } : deposit),
  )
  return {
    next: { ...order, deposits },
    postings: booked.flatMap(({ amount }) => ledger.unclaimedCounted(amount)),
  }
}
