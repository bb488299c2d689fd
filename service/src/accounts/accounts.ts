import { randomBytes } from 'node:crypto'
import { appendAudit, type By } from '../db/audit_log.ts'
import type { Database, Sql } from '../db/database.ts'
import { isUniqueViolation } from '../db/database.ts'
import { accept, type Outcome, refuse } from '../domain/outcome.ts'
import type { InstantMs } from '../domain/time.ts'
import { parseEmail } from './email_address.ts'

export type Account = {
  readonly accountId: string
  readonly name: string
  /** Where its mails go, and with what its owner signs in; null: nobody can sign in. */
  readonly email: string | null
  readonly createdAtMs: InstantMs
}

/** What the accounts are kept with; `wallMs` is the time that signatures live by (clock.ts). */
export type AccountsPlace = { readonly db: Database; wallMs(): InstantMs }

export type NewAccount = { readonly name: string; readonly email: string | null }

export async function createAccount(
  place: AccountsPlace,
  by: By,
  { name, email }: NewAccount,
): Promise<Outcome<Account>> {
  const trimmed = name.trim()
  if (trimmed.length < 1 || trimmed.length > NAME_LENGTH_MAX) {
    return refuse({
      code: 'name_malformed',
      message: `the name of an account has 1 to ${NAME_LENGTH_MAX} characters`,
    })
  }
  const address = email === null ? accept(null) : parseEmail(email)
  if (!address.ok) return address
  return place.db
    .transaction(async (tx) =>
      accept(await insertAccount(tx, place, by, { name: trimmed, email: address.value })),
    )
    .catch((error: unknown) => refuseTaken(error, email))
}

/** `email` has been parsed. A unique violation where it is another account's. */
export async function insertAccount(
  tx: Sql,
  { wallMs }: Pick<AccountsPlace, 'wallMs'>,
  by: By,
  { name, email }: NewAccount,
): Promise<Account> {
  const account = {
    accountId: `acc_${randomBytes(8).toString('hex')}`,
    name,
    email,
    createdAtMs: wallMs(),
  }
  await tx.query('INSERT INTO accounts (account_id, name, email, created_at_ms) VALUES ($1, $2, $3, $4)', [
    account.accountId,
    account.name,
    account.email,
    account.createdAtMs,
  ])
  await appendAudit(tx, {
    chain: account.accountId,
    atMs: account.createdAtMs,
    act: 'account_created',
    by,
    subject: account.accountId,
    detail: { name, ...(email !== null && { email }) },
  })
  return account
}

/**
 * Gives an account another address, or none (`email` has been parsed). One that was made by signing in is named after its address: an
 * address that is no more must not go on standing there. A unique violation where the new one is another account's.
 */
export async function replaceEmail(tx: Sql, accountId: string, email: string | null): Promise<void> {
  await tx.query(
    `UPDATE accounts SET email = $2,
       name = CASE WHEN name IN (left(email, ${NAME_LENGTH_MAX}), account_id) THEN left(coalesce($2, account_id), ${NAME_LENGTH_MAX}) ELSE name END
     WHERE account_id = $1`,
    [accountId, email],
  )
}

/** What an account is called that nobody has given a name. */
export function nameAfter(email: string): string {
  return email.slice(0, NAME_LENGTH_MAX)
}

const NAME_LENGTH_MAX = 100

/** One address is one account, because it is how its owner signs in. */
export function refuseTaken(error: unknown, email: string | null) {
  if (!isUniqueViolation(error)) throw error
  return refuse({ code: 'email_taken', message: `${email} belongs to another account` })
}

export async function findAccount({ db }: { readonly db: Sql }, accountId: string): Promise<Account | null> {
  const [account] = await db.query<Account>(
    `SELECT account_id AS "accountId", name, email, created_at_ms AS "createdAtMs"
     FROM accounts WHERE account_id = $1`,
    [accountId],
  )
  return account ?? null
}

/** The newest first. */
export function listAccounts({ db }: { readonly db: Sql }): Promise<readonly Account[]> {
  return db.query<Account>(
    `SELECT account_id AS "accountId", name, email, created_at_ms AS "createdAtMs"
     FROM accounts ORDER BY created_at_ms DESC, account_id`,
  )
}
