import Type from 'typebox'
import type { EmailChange } from '../../accounts/email_change.ts'
import type { SignedIn } from '../../accounts/sessions.ts'
import { instant, nullable, text } from '../json/schema.ts'

export const emailChangeSchema = Type.Object(
  {
    new_email: text('The address that it will be.', 'new@example.com'),
    old_agreed: Type.Boolean({ description: 'Whether the present address has agreed.' }),
    new_agreed: Type.Boolean({ description: 'Whether the new address has.' }),
    expires_at: instant('Until when both may.'),
  },
  { description: 'A change of the address that is under way.' },
)

export const accountSchema = Type.Object(
  {
    account_id: text('The account.', 'acc_0123456789abcdef'),
    name: text('Its name.', 'My shop'),
    email: nullable(text('Where its mails go, and with what its owner signs in.', 'owner@example.com')),
    created_at: instant('When it was made.'),
    session_id: text('The session that asks.', 'ses_0123456789abcdef'),
    session_expires_at: instant('When that ends if it is not used any more.'),
    email_change: Type.Unsafe({ anyOf: [emailChangeSchema, { type: 'null' }] }),
  },
  { $id: 'Account' },
)

export function showAccount({ account, session }: SignedIn, change: EmailChange | null): object {
  return {
    account_id: account.accountId,
    name: account.name,
    email: account.email,
    created_at: account.createdAtMs,
    session_id: session.sessionId,
    session_expires_at: session.expiresAtMs,
    email_change: change === null ? null : showEmailChange(change),
  }
}

export function showEmailChange({ newEmail, hasOldAgreed, hasNewAgreed, expiresAtMs }: EmailChange): object {
  return {
    new_email: newEmail,
    old_agreed: hasOldAgreed,
    new_agreed: hasNewAgreed,
    expires_at: expiresAtMs,
  }
}
