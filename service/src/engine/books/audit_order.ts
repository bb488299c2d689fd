import type { AuditedDeposit, AuditedOrder, AuditedOutflow } from '../../db/audited_orders.ts'
import { type AssetId, isAssetId } from '../../domain/catalog/assets.ts'
import { amountOf, exactAmount } from '../../domain/money/amount.ts'
import type { OrderStatus } from '../../domain/orders/order.ts'
import { paysSomebody } from '../../domain/payouts/intent.ts'
import { isOnWrongSideOfOrder } from './audit_sides.ts'

/** Something that does not fit; `subject` is the order, deposit, asset or chain to look at. */
export type Problem = { readonly subject: string; readonly check: Check; readonly message: string }

/** `missing` is the only one that is a loss, and no fault of the books. */
export type Check = 'balances' | 'deposits' | 'missing' | 'events' | 'outflows' | 'journal' | 'chain'

export function problem(subject: string, check: Check, message: string): Problem {
  return { subject, check, message }
}

/** Everything about one order that does not fit together. Pure. */
export function auditOrder(order: AuditedOrder): Problem[] {
  const told = [
    ...checkBalances(order).map((message) => ({ check: 'balances' as const, message })),
    ...checkSides(order).map((message) => ({ check: 'balances' as const, message })),
    ...order.deposits.flatMap(checkDeposit).map((message) => ({ check: 'deposits' as const, message })),
    ...checkMissing(order).map((message) => ({ check: 'missing' as const, message })),
    ...checkEvents(order).map((message) => ({ check: 'events' as const, message })),
    ...checkOutflows(order).map((message) => ({ check: 'outflows' as const, message })),
  ]
  return told.map((problem) => ({ subject: order.orderId, ...problem }))
}

export function show(asset: string, units: bigint): string {
  return isAssetId(asset) ? `${exactAmount(amountOf(asset, units))} ${asset}` : `${units} units of ${asset}`
}

/**
 * What a network really took is known only to the chain, and moves between these two accounts: together they are
 * exactly what the order's state says, whatever the cost was.
 */
const COSTED = 'wallet with network_costs'

function checkBalances(order: AuditedOrder): string[] {
  const expected = expectedBalances(order)
  const actual = new Balances()
  for (const { asset, account, units } of order.balances) actual.add(asset, accountOf(account), units)
  const keys = new Set([...expected.units.keys(), ...actual.units.keys()])
  return [...keys].sort().flatMap((key) => {
    const [asset = '', account = ''] = key.split('|')
    const is = actual.units.get(key) ?? 0n
    const should = expected.units.get(key) ?? 0n
    if (is === should) return []
    return [`${account} is ${show(asset, is)}, while an order in ${order.status} has ${show(asset, should)}`]
  })
}

/**
 * Deposits and state may agree on what cannot be: more came back than was ever missing, or more is owed to us than we owe. Added
 * up over all orders it would hide behind what another one really misses.
 */
function checkSides({ balances }: AuditedOrder): string[] {
  return balances
    .filter(({ account, units }) => isOnWrongSideOfOrder(account, units))
    .map(({ asset, account, units }) => `${account} is ${show(asset, units)}, on the wrong side`)
}

function accountOf(account: string): string {
  return account === 'wallet' || account === 'network_costs' ? COSTED : account
}

class Balances {
  readonly units = new Map<string, bigint>()

  /** A debit is positive, a credit negative. */
  add(asset: string, account: string, units: bigint): void {
    const key = `${asset}|${account}`
    this.units.set(key, (this.units.get(key) ?? 0n) + units)
  }
}

/** The balances that the order's state and deposits stand for; the postings of domain/ledger, added up. */
function expectedBalances(order: AuditedOrder): Balances {
  const { from, to, settlement, refund, status } = order
  const balances = new Balances()
  for (const { asset, units } of confirmed(order).filter(({ role }) => role !== 'counted')) {
    balances.add(asset, COSTED, units)
    balances.add(asset, 'unclaimed', -units)
  }
  const counted = sumOf(confirmed(order).filter(({ role }) => role === 'counted'))
  balances.add(from, COSTED, counted)
  if (settlement !== null) {
    const { received, paid, fee, charged } = settlement
    balances.add(from, 'orphaned_deposits', received - counted)
    balances.add(from, 'exchange_position', -received)
    balances.add(to, 'exchange_position', paid + fee + charged)
    balances.add(to, 'fee_income', -fee)
    balances.add(to, COSTED, -charged)
    balances.add(to, status === 'DONE' ? COSTED : 'payouts_owed', -paid)
  } else if (refund !== null) {
    balances.add(from, 'orphaned_deposits', refund.units + refund.charged - counted)
    balances.add(from, COSTED, -refund.charged)
    balances.add(from, status === 'REFUNDED' ? COSTED : 'refunds_owed', -refund.units)
  } else {
    balances.add(from, 'customer_deposits', -counted)
  }
  return balances
}

function confirmed({ deposits }: AuditedOrder): readonly AuditedDeposit[] {
  return deposits.filter(({ state }) => state === 'confirmed')
}

function sumOf(deposits: readonly AuditedDeposit[]): bigint {
  return deposits.reduce((sum, { units }) => sum + units, 0n)
}

export function checkDeposit(deposit: {
  readonly key: string
  readonly asset: AssetId
  readonly units: bigint
  readonly state: string
  readonly booked: bigint
}): string[] {
  const { key, asset, units, state, booked } = deposit
  const should = state === 'confirmed' ? units : 0n
  if (booked === should) return []
  return [`the ${state} deposit ${key} of ${show(asset, units)} is booked with ${show(asset, booked)}`]
}

/** What waits to be mined again may come back by itself, and is silent; what vanished, or came back as something else, does not. */
function checkMissing({ status, from, settlement, refund, deposits, writtenOff }: AuditedOrder): string[] {
  if (status !== 'DONE' && status !== 'REFUNDED') return []
  const used = settlement?.received ?? (refund === null ? 0n : refund.units + refund.charged)
  const counted = deposits.filter(({ role }) => role === 'counted')
  const unconfirmed = used - sumOf(counted.filter(({ state }) => state === 'confirmed'))
  // More than was ever missing may be there as well: the side of its account tells of that.
  if (writtenOff > 0n && writtenOff > unconfirmed) {
    const [is, should] = [show(from, writtenOff), show(from, unconfirmed)]
    return [`it is ${status}, and ${is} of it is written off, while ${should} is missing`]
  }
  const missing = used - sumOf(counted.filter(({ state }) => state !== 'vanished')) - writtenOff
  if (missing <= 0n) return []
  return [`it is ${status}, and of what came for it ${show(from, missing)} has left its chain`]
}

function checkEvents({ events, sequence, status }: AuditedOrder): string[] {
  if (events === null) return ['it has no events']
  const problems: string[] = []
  if (events.first !== 1 || events.count !== events.last) {
    problems.push(`its ${events.count} events are numbered ${events.first} to ${events.last}`)
  }
  if (events.last !== sequence) problems.push(`its last event is ${events.last}, the order is at ${sequence}`)
  if (events.lastStatus !== status)
    problems.push(`its last event says ${events.lastStatus}, the order ${status}`)
  if (events.broken.length > 0)
    problems.push(`the events ${events.broken.join(', ')} do not follow the one before`)
  if (events.unexplained.length > 0) {
    problems.push(`the events ${events.unexplained.join(', ')} have no fact that changed the order`)
  }
  return problems
}

function checkOutflows(order: AuditedOrder): string[] {
  const { outflows } = order
  const ended = outflows.filter(hasPaid)
  const tooMany =
    ended.length > 1 ? [`it was paid ${ended.length} times: ${ended.map(nameOf).join(', ')}`] : []
  return [...tooMany, ...checkLiveOutflows(order), ...outflows.flatMap(checkBookings), ...checkEnd(order)]
}

/**
 * One that lost its block after it was final pays all the same: it is sent until it is mined again, or, where it never is, an operator has
 * paid what it owes.
 */
function hasPaid({ state, closed }: AuditedOutflow): boolean {
  return state === 'confirmed' || state === 'orphaned' || closed !== 0n
}

function nameOf({ payoutId }: AuditedOutflow): string {
  return payoutId
}

/** The state of the order decides whether something is on its way, and what. */
const kindUnderWay: Partial<Record<OrderStatus, 'payout' | 'refund'>> = {
  EXCHANGE: 'payout',
  WITHDRAW: 'payout',
  REFUND: 'refund',
}

function checkLiveOutflows({ status, payoutId, outflows }: AuditedOrder): string[] {
  const live = outflows.filter(
    ({ state }) => state === 'planned' || state === 'signed' || state === 'broadcast',
  )
  const kind = kindUnderWay[status]
  const isExpected = (outflow: AuditedOutflow) => outflow.payoutId === payoutId && outflow.kind === kind
  const problems = live
    .filter((outflow) => !isExpected(outflow))
    .map(
      (outflow) => `the ${outflow.kind} ${outflow.payoutId} is ${outflow.state} while the order is ${status}`,
    )
  if (kind !== undefined && payoutId !== null && !live.some(isExpected)) {
    problems.push(`it is ${status} and its ${kind} ${payoutId} is not under way`)
  }
  return problems
}

export function checkBookings(outflow: AuditedOutflow): string[] {
  const { payoutId, kind, state, asset, units, bookings, booked, owedAgain, closed, isFree } = outflow
  const leaves = paysSomebody(outflow) ? units : 0n
  const owes = state === 'orphaned' ? leaves : 0n
  if (owedAgain - closed !== owes) {
    const [is, should] = [show(asset, owedAgain - closed), show(asset, owes)]
    return [`the ${state} ${kind} ${payoutId} is booked as orphaned with ${is}, and that is ${should}`]
  }
  if (!hasPaid(outflow)) {
    // What only moved our own money may fail after it was final, in another block: its costs say what is booked of it then.
    if (bookings === 0 || !paysSomebody(outflow)) return []
    return [`the ${kind} ${payoutId} is ${state} and booked as confirmed`]
  }
  if (booked !== leaves) {
    return [`the ${state} ${kind} ${payoutId} of ${show(asset, units)} is booked with ${show(asset, booked)}`]
  }
  return bookings === 0 && !isFree ? [`the ${state} ${kind} ${payoutId} has no postings`] : []
}

/** A finished order was paid what it settled for, by a transaction of ours. */
function checkEnd(order: AuditedOrder): string[] {
  const { status, payoutId, payoutTxHash, settlement, refund, from, to } = order
  if (status !== 'DONE' && status !== 'REFUNDED') return []
  const owed =
    status === 'DONE' ? { asset: to, units: settlement?.paid } : { asset: from, units: refund?.units }
  const outflow = order.outflows.find((one) => one.payoutId === payoutId)
  if (outflow === undefined || !hasPaid(outflow))
    return [`it is ${status} and its outflow ${payoutId} is not confirmed`]
  const problems: string[] = []
  if (outflow.asset !== owed.asset || outflow.units !== owed.units) {
    problems.push(
      `${payoutId} paid ${show(outflow.asset, outflow.units)} and owed ${show(owed.asset, owed.units ?? 0n)}`,
    )
  }
  if (payoutTxHash === null || !outflow.txHashes.includes(payoutTxHash)) {
    problems.push(`the transaction ${payoutTxHash} is none of ${payoutId}`)
  }
  return problems
}
