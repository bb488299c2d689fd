import type { Posting } from '../ledger/postings.ts'
import * as ledger from '../ledger/postings.ts'
import type { Amount } from '../money/amount.ts'
import type { InstantMs } from '../time.ts'
import { closeCounting, type Decision, ignore, move } from './decision.ts'
import { isOpen, type Recounted, recountDust } from './dust_that_counts.ts'
import { depositReasons, isAboutDeposits, undoOutflow } from './emergency.ts'
import type { Fact } from './facts.ts'
import { AWAITED_MS, isLockOffered } from './lock_held.ts'
import {
  countedDeposits,
  type Deposit,
  type DepositRole,
  type EmergencyReason,
  hasFailedAtCost,
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
  // A mempool takes nothing out of a block: only DepositUnmined does.
  const isOnItsWay = known !== undefined && known.state !== 'vanished'
  if (isOnItsWay && fact.block === null) return ignore('it is known already')
  const { key, txHash, amount, block } = fact
  const deposit: Deposit = {
    key,
    txHash,
    amount,
    seenAtMs: known?.seenAtMs ?? fact.seenAtMs,
    role: roleOf(order, amount, known),
    isLate: (known?.isLate ?? isLate(order, fact.seenAtMs)) || isPastLock(order, fact),
    state: block === null ? 'seen' : 'mined',
    block,
  }
  return reconsider(withDeposit(order, deposit), nowMs)
}

/** A block's time may lie before the moment at which the order was ended without a deposit: that is late all the same. */
function isLate({ state, terms }: Order, seenAtMs: InstantMs): boolean {
  return seenAtMs >= terms.expiresAtMs || state.status === 'EXPIRED'
}

/**
 * A deposit that was seen in time keeps the locked rate only while that rate is offered, and not for as long as its sender leaves it
 * unmined or replaces it: that would be an option on the rate.
 */
function isPastLock({ terms }: Order, { block, seenAtMs }: Fact & { kind: 'DepositSeen' }): boolean {
  return block !== null && terms.rateType === 'fixed' && !isLockOffered(terms.expiresAtMs, seenAtMs)
}

/** Worked out at every sighting: mined again elsewhere, a contract may move another amount, or another asset. */
function roleOf(order: Order, amount: Amount, known: Deposit | undefined): DepositRole {
  if (amount.asset !== order.terms.from) return 'foreign'
  // What the outflow was made of is back after a deep reorganisation; anything else came too late to be used.
  const isOrphan = mayHavePaid(order) && known?.role === 'counted' && known.amount.units === amount.units
  if (isOrphan) return 'counted'
  // Until it is counted with all the others: `recountDust`.
  if (isDust(amount)) return 'dust'
  return isOpen(order.state) ? 'counted' : 'extra'
}

/**
 * A block left the best chain. What was booked from it is turned round; the order goes back unless its money may have
 * left already, in which case the missing deposit stands in the books until the transaction is mined again. No exchange begins
 * because of it: the block that took its place may hold the deposit as well, and is read next (decision 0038).
 */
export function onDepositUnmined(order: Order, key: string, nowMs: InstantMs): Decision {
  const deposit = findDeposit(order, key)
  if (deposit === undefined || deposit.block === null) return ignore('it is in no block')
  const unmined: Deposit = { ...deposit, state: 'seen', block: null }
  if (deposit.state !== 'confirmed') {
    const { next, postings } = recount(withDeposit(order, unmined))
    const state = stateByDeposits(next)
    return move(next, state.status === 'EXCHANGE' ? order.state : state, nowMs, postings)
  }
  if (deposit.role !== 'counted') {
    const booked = ledger.reversed(ledger.unclaimedReceived(deposit.amount))
    return move(withDeposit(order, unmined), order.state, nowMs, booked)
  }
  if (mayHavePaid(order)) {
    return move(withDeposit(order, unmined), order.state, nowMs, ledger.depositOrphaned(deposit.amount))
  }
  const { next, postings, effects } = undoOutflow(order)
  const booked = ledger.reversed(ledger.depositReceived(deposit.amount))
  const { next: reopened, postings: recounted } = recountDust(withDeposit(next, unmined))
  return move(reopened, openState(reopened), nowMs, [...postings, ...booked, ...recounted], effects)
}

/** Once an exact transaction was written down, only the chain can say that it never pays. */
function mayHavePaid({ state, isOutflowCommitted }: Order): boolean {
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
  if (mayHavePaid(order))
    return move(next, order.state, nowMs, ledger.reversed(ledger.depositOrphaned(deposit.amount)))
  return reconsider(next, nowMs, ledger.depositReceived(deposit.amount))
}

/**
 * The time is up: for an order without a deposit at once; for one that has received something, when it has waited long enough
 * for what only lies in a mempool. Told only after the chain was looked at since then. A fact about a deposit cannot stand in
 * for that: it is told in the middle of a look, whose next block may bring back what the last one took.
 */
export function onOrderExpired(order: Order, atMs: InstantMs, nowMs: InstantMs): Decision {
  const { state, terms } = order
  if (atMs < terms.expiresAtMs) return ignore('it is still open')
  if (state.status === 'NEW') return move(order, { status: 'EXPIRED' }, nowMs)
  const isAwaited = atMs < terms.expiresAtMs + AWAITED_MS || !hasOnlyMempoolLeft(order)
  if (isAwaited) return ignore('it is ended, or waits for what may still come')
  if (state.status === 'PENDING') return become(order, judge(order), nowMs)
  // Whose customer was asked already, and has paid the rest since: else he would choose when it goes on, by what he leaves in a mempool.
  const next = state.status === 'EMERGENCY' ? emergencyState(order, state.reasons) : state
  return next.status === state.status ? ignore('it waits for nothing') : become(order, next, nowMs)
}

/** What the order is, now that its deposits are these. */
function reconsider(order: Order, nowMs: InstantMs, postings: readonly Posting[] = []): Decision {
  const { next, postings: recounted } = recount(order)
  return become(next, stateByDeposits(next), nowMs, [...postings, ...recounted])
}

function recount(order: Order): Recounted {
  return isOpen(order.state) ? recountDust(order) : { next: order, postings: [] }
}

function become(
  order: Order,
  state: OrderState,
  nowMs: InstantMs,
  postings: readonly Posting[] = [],
): Decision {
  const begins = state.status === 'EXCHANGE' && order.state.status !== 'EXCHANGE'
  return move(begins ? closeCounting(order) : order, state, nowMs, postings)
}

function stateByDeposits(order: Order): OrderState {
  const { state } = order
  switch (state.status) {
    case 'NEW':
    case 'PENDING':
    case 'EXPIRED':
      return isPaid(order) || hasOnlyLateLeft(order) ? judge(order) : openState(order)
    case 'EMERGENCY':
      return emergencyState(order, state.reasons)
    default:
      return state
  }
}

/**
 * An order with late deposits alone does not open again before one is deep enough for a person to decide about; what then still lies
 * in a mempool does not delay that. Nor do they end one that is open: a block that is read next may hold what was paid in time, and only
 * a whole look says that none does. A customer who was told that the payment was seen is not told afterwards that there was none.
 */
export function openState(order: Order): OrderState {
  const { state, terms } = order
  const deposits = countedDeposits(order)
  if (deposits.length === 0) return { status: state.status === 'EXPIRED' ? 'EXPIRED' : 'NEW' }
  if (deposits.some(({ isLate }) => !isLate)) return { status: 'PENDING' }
  if (hasOnlyMempoolLeft(order)) return judge(order)
  const wasSeen = deposits.some(({ seenAtMs }) => seenAtMs < terms.expiresAtMs)
  if (state.status !== 'EXPIRED' && wasSeen) return { status: 'PENDING' }
  return { status: state.status === 'NEW' ? 'NEW' : 'EXPIRED' }
}

/**
 * What was asked is there, in time, and nothing else but what lies in a mempool: anybody may send more to an address and let
 * it lie there for weeks.
 */
function isPaid(order: Order): boolean {
  return hasOnlyMempoolLeft(order) && depositReasons(order).length === 0
}

/** Something is there, and all that it waits for lies in a mempool and came late. */
function hasOnlyLateLeft(order: Order): boolean {
  if (!hasOnlyMempoolLeft(order)) return false
  return countedDeposits(order).every(({ state, isLate }) => state === 'confirmed' || isLate)
}

/** Something is there, and all that it waits for lies in a mempool. */
function hasOnlyMempoolLeft(order: Order): boolean {
  return received(order).units > 0n && countedDeposits(order).every(({ state }) => state !== 'mined')
}

/**
 * All deposits are deep enough: is it what was asked, in time? Where an outflow has failed at its customer's cost and a
 * reorganisation has taken the order back since, the customer is asked all the same: what is offered then has that cost
 * taken off, and the exchange would not (decision 0039). So is who was asked before and had an outflow that was taken back: who
 * has chosen his money is not given the exchange because a block was lost (decision 0046).
 */
function judge(order: Order): OrderState {
  const reasons = depositReasons(order)
  if (hasFailedAtCost(order)) reasons.push('DESTINATION_PROBLEM')
  // Said beside what a top-up would end, or nobody would hear that more than that is asked.
  else if (mayHaveChosen(order) && !reasons.some((reason) => reason !== 'UNDERPAID'))
    reasons.push('NETWORK_PROBLEM')
  return reasons.length === 0 ? { status: 'EXCHANGE', settlement: null } : { status: 'EMERGENCY', reasons }
}

function mayHaveChosen({ firstEmergencyAtMs, outflowCount }: Order): boolean {
  return firstEmergencyAtMs !== null && outflowCount > 0
}

/** A top-up that completes an order whose only trouble was its amount lets it go on: nothing else was told to its customer. */
function emergencyState(order: Order, before: readonly EmergencyReason[]): OrderState {
  const others = before.filter((reason) => !isAboutDeposits(reason))
  if (others.length === 0 && isPaid(order)) return { status: 'EXCHANGE', settlement: null }
  const reasons = [...depositReasons(order), ...others]
  return { status: 'EMERGENCY', reasons: reasons.length === 0 ? before : reasons }
}

function findDeposit(order: Order, key: string): Deposit | undefined {
  return order.deposits.find((deposit) => deposit.key === key)
}

function withDeposit(order: Order, deposit: Deposit): Order {
  const isKnown = order.deposits.some(({ key }) => key === deposit.key)
  const deposits = isKnown
    ? order.deposits.map((known) => (known.key === deposit.key ? deposit : known))
    : [...order.deposits, deposit]
  return { ...order, deposits }
}
