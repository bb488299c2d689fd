import { assert } from '../assert.ts'
import type { Posting } from '../ledger/postings.ts'
import * as ledger from '../ledger/postings.ts'
import { type Amount, amountOf } from '../money/amount.ts'
import type { PayoutId } from '../payouts/intent.ts'
import type { InstantMs } from '../time.ts'
import { type Decision, ignore, move, nextOutflow } from './decision.ts'
import { openState } from './deposits.ts'
import { takeBack, toEmergencyAfter } from './emergency.ts'
import type { Fact } from './facts.ts'
import { hasFailedAtCost, type Order, type OrderState, orphaned, received } from './order.ts'

/** The network has the payout; with a fee bump the hash is another one than before. */
export function onPayoutBroadcast(
  order: Order,
  { payoutId, txHash }: Fact & { kind: 'PayoutBroadcast' },
  nowMs: InstantMs,
): Decision {
  const { state } = order
  switch (state.status) {
    case 'EXCHANGE':
      if (state.settlement === null || state.payoutId !== payoutId) return ignore(NOT_LIVE)
      return move(order, { ...state, status: 'WITHDRAW', txHash }, nowMs)
    case 'WITHDRAW':
    case 'REFUND':
      if (state.payoutId !== payoutId) return ignore(NOT_LIVE)
      return move(order, { ...state, txHash }, nowMs)
    default:
      return ignore(NOT_LIVE)
  }
}

/** As deep as a deposit has to be on the same chain: from here on it is final. */
export function onPayoutConfirmed(
  order: Order,
  { payoutId, txHash, cost }: Fact & { kind: 'PayoutConfirmed' },
  nowMs: InstantMs,
): Decision {
  const { state } = order
  // As `move` has it: by a clock that is behind it would be over before it last changed.
  const completedAtMs = Math.max(order.updatedAtMs, nowMs)
  switch (state.status) {
    // From EXCHANGE too: the chain has it, even if nobody ever heard that the broadcast had worked.
    case 'EXCHANGE':
    case 'WITHDRAW': {
      if (state.settlement === null || state.payoutId !== payoutId) return ignore(NOT_LIVE)
      const postings = [...ledger.payoutConfirmed(state.settlement.paid), ...ledger.networkCostPaid(cost)]
      return move(order, { ...state, status: 'DONE', txHash, completedAtMs }, nowMs, postings)
    }
    case 'REFUND': {
      if (state.payoutId !== payoutId) return ignore(NOT_LIVE)
      const postings = [...ledger.refundConfirmed(state.refund.amount), ...ledger.networkCostPaid(cost)]
      return move(order, { ...state, status: 'REFUNDED', txHash, completedAtMs }, nowMs, postings)
    }
    // It had lost its block and is final again, maybe by another attempt. What that changes in the books is the house's matter.
    case 'DONE':
    case 'REFUNDED':
      if (state.payoutId !== payoutId) return ignore(NOT_LIVE)
      return state.txHash === txHash ? ignore('it is told already') : move(order, { ...state, txHash }, nowMs)
    default:
      return ignore(NOT_LIVE)
  }
}

/**
 * It provably never pays: the customer gets the choice again, unless all that was received was lost meanwhile. Where another one
 * would pay, there is one; once, because who is paid may be behind it each time.
 */
export function onPayoutFailed(
  order: Order,
  { payoutId, problem, cost, wouldPayNow = false }: Fact & { kind: 'PayoutFailed' },
  nowMs: InstantMs,
): Decision {
  const { state } = order
  const isLive =
    (state.status === 'EXCHANGE' && state.settlement !== null) ||
    state.status === 'WITHDRAW' ||
    state.status === 'REFUND'
  if (!isLive || state.payoutId !== payoutId) return ignore(NOT_LIVE)
  const spent = cost === null ? [] : ledger.networkCostPaid(cost)
  const isCharged = cost !== null && problem === 'DESTINATION_PROBLEM'
  const charged = isCharged ? chargeFailure(order, cost) : order
  const isPaidFor = orphaned(order).units === 0n
  if (wouldPayNow && isPaidFor && !hasFailedAtCost(order)) return planAnew(charged, state, nowMs, spent)
  const takenBack = takeBack(charged)
  const { next, postings, effects } = takenBack
  if (received(next).units > 0n) return toEmergencyAfter(takenBack, [problem], nowMs, spent)
  return move(next, openState(next), nowMs, [...spent, ...postings], effects)
}

type UnderWay = Extract<
  OrderState,
  { readonly status: 'EXCHANGE' | 'WITHDRAW' | 'REFUND'; readonly payoutId: PayoutId }
>

/** The same again, under the next name: what was agreed and booked stays as it is. */
function planAnew(order: Order, state: UnderWay, nowMs: InstantMs, postings: readonly Posting[]): Decision {
  const { next, payoutId } = nextOutflow({ ...order, isOutflowCommitted: false })
  const planned: OrderState =
    state.status === 'REFUND'
      ? { ...state, payoutId, txHash: null }
      : { status: 'EXCHANGE', settlement: state.settlement, payoutId }
  return move(next, planned, nowMs, postings, [{ kind: 'PlanPayout', payoutId }])
}

function chargeFailure(order: Order, cost: Amount): Order {
  const which = order.state.status === 'REFUND' ? 'refunds' : 'payouts'
  const before = order.failedCosts[which]
  assert(before.asset === cost.asset, 'a network takes its native asset')
  const sum = amountOf(cost.asset, before.units + cost.units)
  return { ...order, failedCosts: { ...order.failedCosts, [which]: sum } }
}

const NOT_LIVE = 'it is not the live outflow of this order'
