import type { LedgerAccount } from '../../domain/ledger/accounts.ts'

/** Accounts that can only be on one side: assets by debit, debts by credit. */
const sides: Partial<Record<LedgerAccount, 'debit' | 'credit'>> = {
  wallet: 'debit',
  orphaned_deposits: 'debit',
  customer_deposits: 'credit',
  payouts_owed: 'credit',
  orphaned_payouts: 'credit',
  refunds_owed: 'credit',
  unclaimed: 'credit',
  fee_income: 'credit',
}

/** Whether all the entries of an account cannot come to this; a debit is positive. */
export function isOnWrongSide(account: LedgerAccount, units: bigint): boolean {
  const side = sides[account]
  return (side === 'debit' && units < 0n) || (side === 'credit' && units > 0n)
}

/**
 * The same of the entries of one order: what one owes does not make up for what is missing of another. Only the wallet is
 * everybody's: an order puts in one asset and takes out another.
 */
export function isOnWrongSideOfOrder(account: LedgerAccount, units: bigint): boolean {
  return account !== 'wallet' && isOnWrongSide(account, units)
}
