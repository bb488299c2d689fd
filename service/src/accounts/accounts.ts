import { randomBytes } from 'node:crypto'
import type { Sql } from '../db/database.ts'
import { accept, type Outcome, refuse } from '../domain/outcome.ts'
import type { InstantMs } from '../domain/time.ts'

export type Account = { readonly accountId: string; readonly name: string; readonly createdAtMs: InstantMs }

/** What the accounts are kept with; `wallMs` is the time that signatures live by (clock.ts). */
export type AccountsPlace = { readonly db: Sql; wallMs(): InstantMs }

export async function createAccount({ db, wallMs }: AccountsPlace, name: string): Promise<Outcome<Account>> {
  const trimmed = name.trim()
  if (trimmed.length < 1 || trimmed.length > 100) {
    return refuse({ code: 'name_malformed', message: 'the name of an account has 1 to 100 characters' })
  }
  const account = {
    accountId: `acc_${randomBytes(8).toString('hex')}`,
    name: trimmed,
    createdAtMs: wallMs(),
  }
  await db.query('INSERT INTO accounts (account_id, name, created_at_ms) VALUES ($1, $2, $3)', [
    account.accountId,
    account.name,
    account.createdAtMs,
  ])
  return accept(account)
}

export async function findAccount({ db }: AccountsPlace, accountId: string): Promise<Account | null> {
  const [account] = await db.query<Account>(
    `SELECT account_id AS "accountId", name, created_at_ms AS "createdAtMs" FROM accounts WHERE account_id = $1`,
    [accountId],
  )
  return account ?? null
}
