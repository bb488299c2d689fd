import { appendAudit, type By } from '../db/audit_log.ts'
import type { Sql } from '../db/database.ts'
import type { MailPreferences } from '../domain/notifications/preferences.ts'
import type { AccountsPlace } from './accounts.ts'

/** An account that never said anything gets every mail. */
const defaults: MailPreferences = { emails: 'all', muted: [] }

export async function readPreferences(
  { db }: { readonly db: Sql },
  accountId: string,
): Promise<MailPreferences> {
  const [settings] = await db.query<MailPreferences>(
    'SELECT emails, muted FROM notification_settings WHERE account_id = $1',
    [accountId],
  )
  return settings ?? defaults
}

/** Holds for what happens from now on. What is so already is no act. */
export function savePreferences(
  { db, wallMs }: AccountsPlace,
  by: By,
  accountId: string,
  wanted: MailPreferences,
): Promise<MailPreferences> {
  return db.transaction(async (tx) => {
    const before = await readPreferences({ db: tx }, accountId)
    if (arePreferencesSame(before, wanted)) return before
    await tx.query(
      `INSERT INTO notification_settings (account_id, emails, muted) VALUES ($1, $2, $3)
       ON CONFLICT (account_id) DO UPDATE SET emails = excluded.emails, muted = excluded.muted`,
      [accountId, wanted.emails, wanted.muted],
    )
    const detail = { from: describe(before), to: describe(wanted) }
    const entry = { chain: accountId, atMs: wallMs(), act: 'notifications_changed', by } as const
    await appendAudit(tx, { ...entry, subject: accountId, detail })
    return wanted
  })
}

export function arePreferencesSame(one: MailPreferences, other: MailPreferences): boolean {
  return describe(one) === describe(other)
}

function describe({ emails, muted }: MailPreferences): string {
  return muted.length === 0 ? emails : `${emails}, without ${muted.join(', ')}`
}
