import { assert } from '../assert.ts'
import type { Amount } from '../money/amount.ts'
import type { LedgerAccount } from './accounts.ts'

/**
 * One movement: `amount` is debited to one account and credited to another. A journal of movements cannot be out of
 * balance, because there is no half of one to store.
 */
export type Posting = {
  readonly debit: LedgerAccount
  readonly credit: LedgerAccount
  readonly amount: Amount
}

function move(debit: LedgerAccount, credit: LedgerAccount, amount: Amount): readonly Posting[] {
  assert(amount.units >= 0n, 'a posting is not negative')
  return amount.units === 0n ? [] : [{ debit, credit, amount }]
}

/** A deposit that counts for its order reached its confirmations. */
export function depositReceived(amount: Amount): readonly Posting[] {
  return move('wallet', 'customer_deposits', amount)
}

/** Money reached us that no order can use. */
export function unclaimedReceived(amount: Amount): readonly Posting[] {
  return move('wallet', 'unclaimed', amount)
}

/** The order it came to can use it after all. */
export function unclaimedCounted(amount: Amount): readonly Posting[] {
  return move('unclaimed', 'customer_deposits', amount)
}

/** The operator is done with unclaimed money: it was given back out of what is his, or is his. */
export function unclaimedClosed(amount: Amount): readonly Posting[] {
  return move('unclaimed', 'capital', amount)
}

/** The operator bears what is missing of an orphaned deposit. */
export function orphanWrittenOff(amount: Amount): readonly Posting[] {
  return move('capital', 'orphaned_deposits', amount)
}

/** A reorganisation took a confirmed deposit away after its payout had left: missing until it is mined again. */
export function depositOrphaned(amount: Amount): readonly Posting[] {
  return move('orphaned_deposits', 'wallet', amount)
}

/** The outflow against an orphaned deposit never left either: what is missing and what is owed cancel out. */
export function orphanCancelled(amount: Amount): readonly Posting[] {
  return move('customer_deposits', 'orphaned_deposits', amount)
}

/** The same movements the other way round. */
export function reversed(postings: readonly Posting[]): readonly Posting[] {
  return postings.map(({ debit, credit, amount }) => ({ debit: credit, credit: debit, amount }))
}

/** The operator funded the reserves. */
export function reserveFunded(amount: Amount): readonly Posting[] {
  return move('wallet', 'capital', amount)
}

/** The operator's word for what no book could see: the chain holds so much more than the books say or, negative, so much less. */
export function operatorBooked({ asset, units }: Amount): readonly Posting[] {
  return units < 0n ? reversed(reserveFunded({ asset, units: -units })) : reserveFunded({ asset, units })
}

export type ExchangeAmounts = {
  readonly received: Amount
  readonly paid: Amount
  readonly fee: Amount
  readonly networkFee: Amount
}

/** The customer's deposit becomes ours, and we owe the payout out of our position in the other asset. */
export function exchanged({ received, paid, fee, networkFee }: ExchangeAmounts): readonly Posting[] {
  return [
    ...move('customer_deposits', 'exchange_position', received),
    ...move('exchange_position', 'payouts_owed', paid),
    ...move('exchange_position', 'fee_income', fee),
    ...move('exchange_position', 'network_costs', networkFee),
  ]
}

/** The exchange of an order whose payout provably cannot happen, turned round. We go forward: nothing is erased. */
export function exchangeReturned(amounts: ExchangeAmounts): readonly Posting[] {
  return reversed(exchanged(amounts))
}

export function payoutConfirmed(paid: Amount): readonly Posting[] {
  return move('payouts_owed', 'wallet', paid)
}

/** Received is split into what goes back and what the customer is charged for the network. */
export function refundOwed(refund: Amount, networkFee: Amount): readonly Posting[] {
  return [
    ...move('customer_deposits', 'refunds_owed', refund),
    ...move('customer_deposits', 'network_costs', networkFee),
  ]
}

export function refundReturned(refund: Amount, networkFee: Amount): readonly Posting[] {
  return reversed(refundOwed(refund, networkFee))
}

export function refundConfirmed(refund: Amount): readonly Posting[] {
  return move('refunds_owed', 'wallet', refund)
}

/** What had left for good is back, because a reorganisation took its block: the wallet has it, and it is owed again. */
export function outflowOrphaned(paid: Amount): readonly Posting[] {
  return move('wallet', 'orphaned_payouts', paid)
}

/** The operator is done with what is owed of such an outflow: it is paid by hand, out of what is his. */
export function owedClosed(amount: Amount): readonly Posting[] {
  return move('orphaned_payouts', 'capital', amount)
}

/** What a network took for a transaction of ours, in its native asset. */
export function networkCostPaid(cost: Amount): readonly Posting[] {
  return move('network_costs', 'wallet', cost)
}
