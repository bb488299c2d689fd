import type { Posting } from '../ledger/postings.ts'
import * as ledger from '../ledger/postings.ts'
import { amountOf } from '../money/amount.ts'
import { compareToAsked, type Deposit, isDust, type Order, type OrderState } from './order.ts'

/** An order in one of these uses what comes. */
export function isOpen({ status }: OrderState): boolean {
  return status === 'NEW' || status === 'PENDING' || status === 'EXPIRED' || status === 'EMERGENCY'
}

export type Recounted = { readonly next: Order; readonly postings: readonly Posting[] }

/**
 * Dust counts where it is all that an order is short of: a withdrawal fee leaves such a rest. Worked out anew of everything that is in a
 * block, whatever came first, as a reorganisation may take away what it completes. Not of what lies in a mempool: anybody could let more
 * than was asked lie there, and keep the rest from counting.
 */
export function recountDust(order: Order): Recounted {
  const completing = findCompleting(order)
  const postings: Posting[] = []
  const deposits = order.deposits.map((deposit): Deposit => {
    if (!isOwnDust(order, deposit)) return deposit
    const role = deposit === completing ? 'counted' : 'dust'
    if (role === deposit.role) return deposit
    if (deposit.state === 'confirmed') {
      const counted = ledger.unclaimedCounted(deposit.amount)
      postings.push(...(role === 'counted' ? counted : ledger.reversed(counted)))
    }
    return { ...deposit, role }
  })
  return { next: { ...order, deposits }, postings }
}

/** Of several it is one that is in a block, and rather one that counts already. */
function findCompleting(order: Order): Deposit | undefined {
  const { from } = order.terms
  const own = order.deposits.filter(({ amount, state }) => amount.asset === from && state !== 'vanished')
  const units = own.reduce(
    (sum, { amount, block }) => (isDust(amount) || block === null ? sum : sum + amount.units),
    0n,
  )
  if (compareToAsked(order, amountOf(from, units)) !== 'under') return undefined
  const completing = own.filter(
    ({ amount }) => isDust(amount) && compareToAsked(order, amountOf(from, units + amount.units)) === 'exact',
  )
  const inBlocks = completing.filter(({ block }) => block !== null)
  const choice = inBlocks.length > 0 ? inBlocks : completing
  return choice.find(({ role }) => role === 'counted') ?? choice[0]
}

function isOwnDust({ terms }: Order, { amount }: Deposit): boolean {
  return amount.asset === terms.from && isDust(amount)
}
