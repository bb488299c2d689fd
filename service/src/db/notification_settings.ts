import type { MailPreferences, OptionalMail } from '../domain/notifications/preferences.ts'
import type { Sql } from './database.ts'

/** Where an account's mails go, and which it wants. */
export type MailReader = MailPreferences & { readonly accountId: string; readonly email: string }

/**
 * Of these accounts those that have an address, which they keep until the transaction ends: what is queued for it meanwhile is
 * there for whoever takes it away (`readdressMails`). Without a row of settings the defaults of the columns hold.
 */
export function findMailReaders(sql: Sql, accountIds: readonly string[]): Promise<MailReader[]> {
  return sql.query<MailReader>(
    `SELECT account_id AS "accountId", email, coalesce(emails, 'all') AS emails, coalesce(muted, '{}') AS muted
     FROM accounts LEFT JOIN notification_settings USING (account_id)
     WHERE account_id = ANY($1) AND email IS NOT NULL FOR KEY SHARE OF accounts`,
    [accountIds],
  )
}

/** No mails about orders and webhooks any more. An account that is gone has nothing to switch off. False: they were off. */
export async function turnMailsOff(sql: Sql, accountId: string): Promise<boolean> {
  const changed = await sql.query(
    `INSERT INTO notification_settings (account_id, emails)
     SELECT account_id, 'off' FROM accounts WHERE account_id = $1
     ON CONFLICT (account_id) DO UPDATE SET emails = 'off' WHERE notification_settings.emails <> 'off'
     RETURNING account_id`,
    [accountId],
  )
  return changed.length > 0
}

/** One kind of mail less. False: it was muted. */
export async function muteMail(sql: Sql, accountId: string, kind: OptionalMail): Promise<boolean> {
  const changed = await sql.query(
    `INSERT INTO notification_settings (account_id, muted)
     SELECT account_id, ARRAY[$2::text] FROM accounts WHERE account_id = $1
     ON CONFLICT (account_id) DO UPDATE SET muted = notification_settings.muted || ARRAY[$2::text]
     WHERE NOT $2 = ANY(notification_settings.muted)
     RETURNING account_id`,
    [accountId, kind],
  )
  return changed.length > 0
}
