import { assert } from '../../assert.ts'
import { type AssetId, assetOf, assets } from '../../catalog/assets.ts'
import type { LedgerAccount } from '../../ledger/accounts.ts'
import type { Amount } from '../../money/amount.ts'
import { hasFailedAtCost, type Order, type OrderStatus, orderStatuses } from '../order.ts'
import { debitOf, type Story } from './story.ts'

/** Every change of status that there may be (docs/api.md, Lifecycle). */
export const legalMoves: Readonly<Record<OrderStatus, readonly OrderStatus[]>> = {
  // EMERGENCY: what came late is deep before a whole look has ended it.
  NEW: ['PENDING', 'EXPIRED', 'EMERGENCY'],
  // NEW and EXPIRED: all that was seen has vanished, or only what came late is left.
  PENDING: ['NEW', 'EXPIRED', 'EXCHANGE', 'EMERGENCY'],
  // PENDING: what was seen in time and vanished is back.
  EXPIRED: ['PENDING', 'EMERGENCY'],
  // PENDING, EXPIRED: a reorganisation took a deposit back before money could leave. NEW: and it vanished.
  // DONE: the chain has a payout whose broadcast nobody ever heard of.
  EXCHANGE: ['WITHDRAW', 'EMERGENCY', 'PENDING', 'EXPIRED', 'NEW', 'DONE'],
  // EXCHANGE: its payout failed, and another one would pay.
  WITHDRAW: ['DONE', 'EMERGENCY', 'PENDING', 'EXPIRED', 'NEW', 'EXCHANGE'],
  DONE: [],
  EMERGENCY: ['EXCHANGE', 'REFUND', 'PENDING', 'EXPIRED'],
  REFUND: ['REFUNDED', 'EMERGENCY', 'PENDING', 'EXPIRED', 'NEW'],
  REFUNDED: [],
}

export const finalStatuses: readonly OrderStatus[] = orderStatuses.filter(
  (status) => legalMoves[status].length === 0,
)

/** Compares two amounts of units with a sentence; `expect` would be too slow for so many. */
function same(actual: bigint, expected: bigint, what: string): void {
  assert(actual === expected, `${what}: the books say ${actual}, the world says ${expected}`)
}

/** Throws unless the books say exactly what the order is and what the chains hold. */
export function checkBooks(story: Story): void {
  const { order, chain } = story
  const { from, to } = order.terms
  const { state } = order
  const settlement = 'settlement' in state ? state.settlement : null
  const refund = 'refund' in state ? state.refund : null
  const confirmed = Object.entries(chain.confirmed)
  const counted = confirmed.filter(([key]) => roleOf(order, key) === 'counted')
  const countedUnits = total(from, counted)
  const settledUnits =
    settlement?.received.units ?? (refund === null ? null : refund.amount.units + refund.networkFee.units)
  const creditOf = (asset: AssetId, account: LedgerAccount) => -debitOf(story, asset, account)

  const isToBeExchanged = state.status === 'EXCHANGE' && settlement === null
  assert(
    !(hasFailedAtCost(order) && isToBeExchanged),
    'who has let an outflow fail is asked before another is made',
  )
  assert(
    !(order.refundAddress !== null && isToBeExchanged),
    'who has chosen a refund is asked before anything is exchanged',
  )
  assert(
    settledUnits !== null || isToBeExchanged || order.deposits.every(({ role }) => role !== 'extra'),
    'an order that can use what comes counts what came while it could not',
  )
  checkDust(order)
  // By that deposit db/deposits.ts finds what is booked for an order that has expired, or is about to.
  const isWaiting = order.deposits.some(
    (one) => one.role === 'counted' && one.state === 'mined' && one.isLate,
  )
  assert(
    !['NEW', 'EXPIRED'].includes(state.status) || countedUnits === 0n || isWaiting,
    'an order that is new or has expired holds money only while it waits for more that came late and is in a block',
  )
  same(creditOf(from, 'customer_deposits'), settledUnits === null ? countedUnits : 0n, 'customer deposits')
  same(
    debitOf(story, from, 'orphaned_deposits'),
    settledUnits === null ? 0n : settledUnits - countedUnits,
    'orphaned',
  )
  const isPayoutOwed = state.status === 'EXCHANGE' || state.status === 'WITHDRAW'
  same(creditOf(to, 'payouts_owed'), isPayoutOwed ? (settlement?.paid.units ?? 0n) : 0n, 'payouts owed')
  same(
    creditOf(from, 'refunds_owed'),
    state.status === 'REFUND' ? state.refund.amount.units : 0n,
    'refunds owed',
  )
  same(creditOf(from, 'exchange_position'), settlement?.received.units ?? 0n, 'taken in by the exchange')
  const gross =
    settlement === null ? 0n : settlement.paid.units + settlement.fee.units + settlement.networkFee.units
  same(debitOf(story, to, 'exchange_position'), gross, 'given out by the exchange')
  same(creditOf(to, 'fee_income'), settlement?.fee.units ?? 0n, 'fee income')
  for (const [account, units] of Object.entries(story.books)) {
    if (NEVER_IN_DEBT.test(account)) assert(units <= 0n, `${account} is never owed to us: ${units}`)
  }
  for (const { id } of assets) checkWallet(story, id, confirmed, counted)
}

/**
 * Dust is no part of an order, but for one alone that makes what blocks have brought just what was asked; and then there is one. Once the
 * order is past counting, what it was settled with stays.
 */
function checkDust({ terms, state, deposits }: Order): void {
  const { minCredit, decimals, precision } = assetOf(terms.from)
  const grain = 10n ** BigInt(decimals - precision)
  const own = deposits.filter(({ amount }) => amount.asset === terms.from)
  const dust = own.filter(({ amount }) => amount.units < minCredit)
  assert(
    dust.every(({ role }) => role === 'counted' || role === 'dust'),
    'dust that does not count is dust',
  )
  if (!['NEW', 'PENDING', 'EXPIRED', 'EMERGENCY'].includes(state.status)) return
  const inBlocks = (one: Order['deposits'][number]) => one.state === 'mined' || one.state === 'confirmed'
  const others = own.filter((one) => inBlocks(one) && !dust.includes(one))
  const units = others.reduce((sum, { amount }) => sum + amount.units, 0n)
  const [least, most] = [terms.asks.units - terms.tolerance.units, terms.asks.units + terms.tolerance.units]
  // What is beyond the digits of the interface is not looked at.
  const isShort = (sum: bigint) => sum - (sum % grain) < least
  const isRight = (sum: bigint) => !isShort(sum) && sum - (sum % grain) <= most
  const fitting = dust.filter(
    (one) => one.state !== 'vanished' && isShort(units) && isRight(units + one.amount.units),
  )
  const counted = dust.filter(({ role }) => role === 'counted')
  assert(
    counted.length === Math.min(1, fitting.length),
    `${fitting.length} deposits of dust would complete the order, and ${counted.length} count`,
  )
  assert(
    counted.every((one) => fitting.includes(one) && (inBlocks(one) || !fitting.some(inBlocks))),
    'dust that counts completes the order, and is in a block where one is',
  )
}

/** Debts and income: they grow by credit, and there is no less than none of them. */
const NEVER_IN_DEBT = / (customer_deposits|payouts_owed|refunds_owed|unclaimed|fee_income|capital)$/

type Entries = readonly (readonly [string, Amount])[]

function checkWallet(story: Story, asset: AssetId, confirmed: Entries, counted: Entries): void {
  const unclaimed = confirmed.filter((entry) => !counted.includes(entry))
  same(-debitOf(story, asset, 'unclaimed'), total(asset, unclaimed), `unclaimed ${asset}`)
  const spent = story.chain.spent.map((amount) => ['spent', amount] as const)
  same(debitOf(story, asset, 'wallet'), total(asset, confirmed) - total(asset, spent), `wallet of ${asset}`)
}

function total(asset: AssetId, entries: Entries): bigint {
  return entries.reduce((sum, [, amount]) => (amount.asset === asset ? sum + amount.units : sum), 0n)
}

function roleOf(order: Order, key: string) {
  return order.deposits.find((deposit) => deposit.key === key)?.role
}
