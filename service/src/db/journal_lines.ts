import type { LedgerAccount } from '../domain/ledger/accounts.ts'
import type { InstantMs } from '../domain/time.ts'
import type { Database } from './database.ts'

/** One movement as it stands in the journal. */
export type JournalLine = {
  readonly at_ms: InstantMs
  /** An order, or `house`. */
  readonly owner: string
  readonly entry_key: string
  readonly line: number
  readonly asset: string
  readonly debit: LedgerAccount
  readonly credit: LedgerAccount
  /** In ledger units, above zero. */
  readonly units: bigint
}

const LINES_A_PAGE = 1_000

/**
 * Every line that was booked from `fromMs` on and before `beforeMs`, the oldest first, as they all are at one moment: told a page after
 * the other, so that memory does not grow with their number. A page is read when the one before has been taken; `tell` answers whether
 * there is still somebody to take more. Answers how many were told.
 */
export function tellJournalLines(
  db: Database,
  { fromMs, beforeMs }: { readonly fromMs: InstantMs; readonly beforeMs: InstantMs },
  tell: (page: readonly JournalLine[]) => Promise<boolean>,
): Promise<number> {
  return db.transaction(async (tx) => {
    await tx.query('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY')
    await tx.query(
      `DECLARE lines NO SCROLL CURSOR FOR
       SELECT at_ms, owner, entry_key, line, asset, debit, credit, units FROM journal
       WHERE at_ms >= $1 AND at_ms < $2 ORDER BY at_ms, bucket, owner, entry_key, line`,
      [fromMs, beforeMs],
    )
    for (let count = 0; ; ) {
      const page = await tx.query<JournalLine>(`FETCH ${LINES_A_PAGE} FROM lines`)
      count += page.length
      const isWanted = page.length === 0 || (await tell(page))
      if (page.length < LINES_A_PAGE || !isWanted) return count
    }
  })
}
