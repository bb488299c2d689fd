import type { Posting } from '../ledger/postings.ts'
import * as ledger from '../ledger/postings.ts'
import type { InstantMs } from '../time.ts'
import { type Decision, type Effect, move } from './decision.ts'
import { type Recounted, recountDust } from './dust_that_counts.ts'
import {
  compareToAsked,
  countedDeposits,
  type Deposit,
  type EmergencyReason,
  type Order,
  type OrderState,
  orphaned,
  promised,
  received,
} from './order.ts'

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
  return toEmergencyAfter(takeBack(order), reasons, nowMs, extraPostings)
}

/** The same, of what was turned round already. */
export function toEmergencyAfter(
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

type TakenBack = Recounted & { readonly effects: readonly Effect[] }

/**
 * Undoes what an unfinished exchange or refund booked; only for outflows that provably never pay. What came while the order could
 * not use it counts from here on: it may have been sent to replace what is gone, and the customer is asked about all that came.
 */
export function takeBack(order: Order): TakenBack {
  const { next, postings, effects } = undoOutflow(order)
  const recounted = recountDust(next)
  return { next: recounted.next, postings: [...postings, ...recounted.postings], effects }
}

/** The same, where a deposit is about to change, and dust is counted with it. */
export function undoOutflow(order: Order): TakenBack {
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
function countExtras(order: Order): Recounted {
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

/** What is wrong about what was received; empty: it is what was asked, in time, and where the rate is fixed it is worth a payout. */
export function depositReasons(order: Order): EmergencyReason[] {
  const reasons: EmergencyReason[] = []
  const comparison = compareToAsked(order, received(order))
  // Checked here too, and not only when the exchange is priced: otherwise that would begin again at every deposit that comes into a mempool.
  const isTooLittle = order.terms.rateType === 'fixed' && promised(order) === null
  if (comparison === 'under' || isTooLittle) reasons.push('UNDERPAID')
  if (comparison === 'over') reasons.push('OVERPAID')
  if (countedDeposits(order).some(({ isLate, state }) => isLate && state === 'confirmed'))
    reasons.push('LATE_DEPOSIT')
  return reasons
}

export function isAboutDeposits(reason: EmergencyReason): boolean {
  return reason === 'UNDERPAID' || reason === 'OVERPAID' || reason === 'LATE_DEPOSIT'
}
