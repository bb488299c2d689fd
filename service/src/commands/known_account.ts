import { findAccount } from '../accounts/accounts.ts'
import { CommandRefused } from '../command_refused.ts'
import type { Sql } from '../db/database.ts'

/** Refuses by throwing: of an account that is not there every list is empty. */
export async function refuseUnknownAccount(sql: Sql, accountId: string): Promise<void> {
  if ((await findAccount({ db: sql }, accountId)) !== null) return
  throw new CommandRefused(`There is no account ${accountId}: \`cambist keys accounts\` has them.`)
}
