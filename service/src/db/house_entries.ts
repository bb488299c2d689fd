import type { LedgerAccount } from '../domain/ledger/accounts.ts'
import { DEPOSIT_ENTRY, IS_OF_HOUSE, OPERATOR, OUTFLOW_ENTRY } from './books.ts'
import type { Sql } from './database.ts'

/** One line of an entry of the house that no table of deposits or outflows accounts for. */
export type HouseEntry = {
  readonly key: string
  readonly asset: string
  readonly debit: LedgerAccount
  readonly credit: LedgerAccount
  /** In ledger units, above zero. */
  readonly units: bigint
}

type Maker = {
  /** What the keys of its entries look like, as a regular expression of PostgreSQL. */
  readonly keys: string
  /** Between which two accounts it moves money, either way. */
  readonly between: readonly [LedgerAccount, LedgerAccount]
}

/**
 * Whatever books for the house, apart from what operators book of differences. That there is such a deposit, outflow or word, and that it
 * came to so much, is looked at where those are read (false_books.ts): between these accounts, and so between no others.
 */
const makers: readonly Maker[] = [
  { keys: DEPOSIT_ENTRY, between: ['wallet', 'capital'] },
  { keys: DEPOSIT_ENTRY, between: ['wallet', 'unclaimed'] },
  { keys: OUTFLOW_ENTRY, between: ['wallet', 'network_costs'] },
  { keys: ':block_(lost|found):.*$', between: ['wallet', 'orphaned_payouts'] },
  { keys: `^${OPERATOR}closed_unclaimed:`, between: ['unclaimed', 'capital'] },
  { keys: `^${OPERATOR}written_off:`, between: ['orphaned_deposits', 'capital'] },
  { keys: `^${OPERATOR}closed_owed:`, between: ['orphaned_payouts', 'capital'] },
]

const IS_OF_A_MAKER = makers
  .map(({ keys, between: [one, other] }) => {
    const moves = `(debit = '${one}' AND credit = '${other}' OR debit = '${other}' AND credit = '${one}')`
    return `${moves} AND entry_key ~ '${keys}'`
  })
  .join(' OR ')

const LINE = 'SELECT entry_key AS key, line, asset, debit, credit, units FROM journal j'

/**
 * Lines of the house that are neither of a deposit nor of an outflow, and such as give back, owe again or close what a payout paid that
 * does not exist: what that one paid is compared with its order. Those of operators are among them, for the audit log to account for.
 */
export function readHouseEntriesToExplain(tx: Sql): Promise<HouseEntry[]> {
  return tx.query<HouseEntry>(
    `SELECT key, asset, debit, credit, units FROM (
       ${LINE} WHERE ${IS_OF_HOUSE} AND NOT (${IS_OF_A_MAKER})
       UNION ALL
       ${LINE} WHERE ${IS_OF_HOUSE} AND (debit = 'orphaned_payouts' OR credit = 'orphaned_payouts')
         AND entry_key ~ '(:block_(lost|found):.*$|^${OPERATOR}closed_owed:)'
         AND NOT EXISTS (SELECT 1 FROM outflows o WHERE o.kind IN ('payout', 'refund')
           AND o.payout_id = regexp_replace(j.entry_key, '(:block_(lost|found):.*$|^${OPERATOR}closed_owed:[^:]*:|:[0-9]+$)', '', 'g'))
     ) AS lines ORDER BY key, line`,
  )
}
