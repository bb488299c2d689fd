/**
 * The accounts of the ledger; each exists once for every asset.
 * Assets and expenses grow by debit, debts and income by credit.
 */
export const ledgerAccounts = [
  /** What the chain holds for us, once it is confirmed. */
  'wallet',
  /** Received for orders, neither exchanged nor returned yet. */
  'customer_deposits',
  /** Exchanged and owed to destinations. */
  'payouts_owed',
  /** Owed back to customers. */
  'refunds_owed',
  /** Arrived without an order that can use it; somebody's, to be looked at by the operator. */
  'unclaimed',
  /** Deposits that were confirmed, paid out against, and then lost to a reorganisation. */
  'orphaned_deposits',
  /** Payouts and refunds that were final and lost their block to a reorganisation: owed until they are mined again. */
  'orphaned_payouts',
  /** What we hold more (credit) or less (debit) of an asset because of exchanges. */
  'exchange_position',
  'fee_income',
  /** Fees paid to networks (debit) against what customers were charged for them (credit). */
  'network_costs',
  /** What the operator put in as reserves. */
  'capital',
] as const

export type LedgerAccount = (typeof ledgerAccounts)[number]
