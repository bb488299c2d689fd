import type { OrderMailKind } from './mail_content.ts'

/** Of which orders an account wants mails. */
export const mailedOrders = ['all', 'with_callback', 'off'] as const
export type MailedOrders = (typeof mailedOrders)[number]

/** The mails that an account may switch off by themselves; the others come as long as it gets mails at all. */
export const optionalMails = [
  'payment_received',
  'order_completed',
  'order_failed',
  'order_expired',
] as const satisfies readonly OrderMailKind[]

export type OptionalMail = (typeof optionalMails)[number]

export type MailPreferences = { readonly emails: MailedOrders; readonly muted: readonly OptionalMail[] }

export function isOptional(kind: string): kind is OptionalMail {
  return (optionalMails as readonly string[]).includes(kind)
}

/** Whether the account wants this mail of an order; asked when the event is handed on, and not again. */
export function isWanted(
  kind: OrderMailKind,
  { emails, muted }: MailPreferences,
  order: { readonly hasCallback: boolean },
): boolean {
  if (emails === 'off' || (emails === 'with_callback' && !order.hasCallback)) return false
  return !(isOptional(kind) && muted.includes(kind))
}

/** What one unsubscribe link switches off: one kind of mail, or all that are about orders and webhooks. */
export type MailClass = OptionalMail | 'all'

export function isMailClass(text: string): text is MailClass {
  return text === 'all' || isOptional(text)
}

/** What the link at the end of a mail switches off: what can be switched off by itself, else everything. */
export function classOf(kind: OrderMailKind): MailClass {
  return isOptional(kind) ? kind : 'all'
}
