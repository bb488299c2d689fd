import type { Posting } from '../ledger/postings.ts'
import * as ledger from '../ledger/postings.ts'
import type { InstantMs } from '../time.ts'
import { type Decision, ignore, move, takeBack } from './decision.ts'
import type { Fact } from './facts.ts'
import {
  compareToAsked,
  countedDeposits,
  type Deposit,
  type DepositRole,
  type EmergencyReason,
  isDust,
  type Order,
  type OrderState,
  received,
} from './order.ts'

/** Seen in a mempool or a block, for the first time or again after a reorganisation. */
export function onDepositSeen(
  order: Order,
  fact: Fact & { kind: 'DepositSeen' },
  nowMs: InstantMs,
): Decision {
  const known = findDeposit(order, fact.key)
  if (known?.state === 'confirmed') return ignore('it is confirmed already')
  const isBack = known === undefined || known.state === 'vanished'
  const deposit: Deposit = {
    key: fact.key,
    txHash: fact.txHash,
    amount: fact.amount,
    seenAtMs: known?.seenAtMs ?? fact.seenAtMs,
    role: isBack ? roleOf(order, fact) : known.role,
    isLate: (known?.seenAtMs ?? fact.seenAtMs) > order.terms.expiresAtMs,
    state: fact.block === null ? 'seen' : 'mined',
    block: fact.block,
  }
  return reconsider(withDeposit(order, deposit), nowMs)
}

function roleOf({ state, terms }: Order, { amount }: Fact & { kind: 'DepositSeen' }): DepositRole {
  if (amount.asset !== terms.from) return 'foreign'
  if (isDust(amount)) return 'dust'
  switch (state.status) {
    case 'NEW':
    case 'PENDING':
    case 'EXPIRED':
    case 'EMERGENCY':
      return 'counted'
    default:
      return 'extra'
  }
}

/**
 * A block left the best chain. What was booked from it is turned round; the order goes back unless its money may have
 * left already, in which case the missing deposit stands in the books until the transaction is mined again.
 */
export function onDepositUnmined(order: Order, key: string, nowMs: InstantMs): Decision {
  const deposit = findDeposit(order, key)
  if (deposit === undefined || deposit.block === null) return ignore('it is in no block')
  const next = withDeposit(order, { ...deposit, state: 'seen', block: null })
  if (deposit.state !== 'confirmed') return reconsider(next, nowMs)
  if (deposit.role !== 'counted')
    return move(next, order.state, nowMs, ledger.reversed(ledger.unclaimedReceived(deposit.amount)))
  if (hasMoneyLeft(order)) return move(next, order.state, nowMs, ledger.depositOrphaned(deposit.amount))
  const { postings, effects } = takeBack(order)
  const booked = ledger.reversed(ledger.depositReceived(deposit.amount))
  return move(next, openState(next, nowMs), nowMs, [...postings, ...booked], effects)
}

function hasMoneyLeft({ state, isOutflowCommitted }: Order): boolean {
  switch (state.status) {
    case 'WITHDRAW':
    case 'DONE':
    case 'REFUNDED':
      return true
    case 'EXCHANGE':
    case 'REFUND':
      return isOutflowCommitted
    default:
      return false
  }
}

export function onDepositVanished(order: Order, key: string, nowMs: InstantMs): Decision {
  const deposit = findDeposit(order, key)
  if (deposit === undefined || deposit.state !== 'seen') return ignore('it is not waiting in a mempool')
  return reconsider(withDeposit(order, { ...deposit, state: 'vanished' }), nowMs)
}

/** Deep enough: it is booked in every state, whatever else it means. */
export function onDepositConfirmed(order: Order, key: string, nowMs: InstantMs): Decision {
  const deposit = findDeposit(order, key)
  if (deposit === undefined || deposit.state !== 'mined') return ignore('it is not waiting for confirmations')
  const next = withDeposit(order, { ...deposit, state: 'confirmed' })
  if (deposit.role !== 'counted')
    return move(next, order.state, nowMs, ledger.unclaimedReceived(deposit.amount))
  // Counted, and yet the order is past counting: the deposit of a payout that has left comes back after a deep reorg.
  if (hasMoneyLeft(order))
    return move(next, order.state, nowMs, ledger.reversed(ledger.depositOrphaned(deposit.amount)))
  return reconsider(next, nowMs, ledger.depositReceived(deposit.amount))
}

/** What the order is, now that its deposits are these. */
function reconsider(order: Order, nowMs: InstantMs, postings: readonly Posting[] = []): Decision {
  return move(order, stateByDeposits(order, nowMs), nowMs, postings)
}

function stateByDeposits(order: Order, nowMs: InstantMs): OrderState {
  const { state } = order
  switch (state.status) {
    case 'NEW':
    case 'PENDING':
      return openState(order, nowMs)
    case 'EXPIRED':
      return areAllConfirmed(order) ? judge(order) : state
    case 'EMERGENCY':
      return emergencyState(order, state.reasons)
    default:
      return state
  }
}

function openState(order: Order, nowMs: InstantMs): OrderState {
  const deposits = countedDeposits(order)
  if (deposits.length === 0) return { status: 'NEW' }
  if (areAllConfirmed(order)) return judge(order)
  const isAllLate = deposits.every(({ isLate }) => isLate)
  return isAllLate && nowMs > order.terms.expiresAtMs ? { status: 'EXPIRED' } : { status: 'PENDING' }
}

function areAllConfirmed(order: Order): boolean {
  const deposits = countedDeposits(order)
  return deposits.length > 0 && deposits.every(({ state }) => state === 'confirmed')
}

/** All deposits are deep enough: is it what was asked, in time? */
function judge(order: Order): OrderState {
  const reasons = depositReasons(order)
  return reasons.length === 0 ? { status: 'EXCHANGE', settlement: null } : { status: 'EMERGENCY', reasons }
}

function depositReasons(order: Order): EmergencyReason[] {
  const reasons: EmergencyReason[] = []
  const comparison = compareToAsked(order, received(order))
  if (comparison === 'under') reasons.push('UNDERPAID')
  if (comparison === 'over') reasons.push('OVERPAID')
  if (countedDeposits(order).some(({ isLate, state }) => isLate && state === 'confirmed'))
    reasons.push('LATE_DEPOSIT')
  return reasons
}

/** A top-up that completes an order whose only trouble was its amount lets it go on. */
function emergencyState(order: Order, before: readonly EmergencyReason[]): OrderState {
  if (countedDeposits(order).length === 0) return { status: 'NEW' }
  const others = before.filter((reason) => !isAboutDeposits(reason))
  if (others.length === 0 && areAllConfirmed(order)) return judge(order)
  const reasons = [...depositReasons(order), ...others]
  return { status: 'EMERGENCY', reasons: reasons.length === 0 ? before : reasons }
}

function isAboutDeposits(reason: EmergencyReason): boolean {
  return reason === 'UNDERPAID' || reason === 'OVERPAID' || reason === 'LATE_DEPOSIT'
}

/** Once a person has chosen, what is still on its way can no longer be part of the choice. */
export function closeToDeposits(order: Order): Order {
  const deposits = order.deposits.map((deposit): Deposit => {
    const isOpen = deposit.role === 'counted' && deposit.state !== 'confirmed'
    return isOpen ? { ...deposit, role: 'extra' } : deposit
  })
  return { ...order, deposits }
}

function findDeposit(order: Order, key: string): Deposit | undefined {
  return order.deposits.find((deposit) => deposit.key === key)
}

function withDeposit(order: Order, deposit: Deposit): Order {
  const others = order.deposits.filter(({ key }) => key !== deposit.key)
  return { ...order, deposits: [...others, deposit] }
}
