import type { EmergencyReason, OrderStatus } from '../orders/order.ts'
import type { InstantMs } from '../time.ts'

/** The mails about orders, by the spec's events (§6.2). */
export const orderMailKinds = [
  'order_created',
  'payment_received',
  'order_completed',
  'order_failed',
  'order_expired',
  'emergency_action_required',
] as const

export type OrderMailKind = (typeof orderMailKinds)[number]

/** What a mail says of an order: the order as its client saw it when the event happened. Amounts are decimal text. */
export type OrderInMail = {
  readonly order_id: string
  readonly status: OrderStatus
  readonly deposit_address: string
  readonly deposit_tag: string | null
  /** The account that goes with the tag, where a wallet takes the two apart. Events of before this was written down lack it. */
  readonly deposit_account?: string
  readonly deposit_currency: string
  readonly deposit_network: string
  readonly deposit_amount: string
  readonly deposit_received: string
  /** How far from `deposit_amount` what comes may be and still be it. Left out: not at all. */
  readonly deposit_tolerance?: string
  /** Some of what was received came too late. */
  readonly is_deposit_late?: true
  readonly deposit_tx_hash: string | null
  readonly receive_currency: string
  readonly receive_network: string
  readonly receive_amount: string
  readonly receive_final_amount: string
  readonly rate: string
  readonly rate_type: 'fixed' | 'float'
  readonly destination: string
  readonly destination_tag: string | null
  readonly refund_address: string | null
  readonly withdraw_tx_hash: string | null
  readonly created_at: InstantMs
  readonly expires_at: InstantMs
  readonly completed_at: InstantMs | null
  readonly emergency?: {
    readonly reasons: readonly EmergencyReason[]
    readonly options: EmergencyOptionsInMail
    /** Only then does null say that too little was received. Events of before this was written down lack it. */
    readonly are_options_known?: boolean
  }
  readonly refund?: {
    readonly address: string
    readonly amount: string
    readonly currency: string
    readonly network: string
    readonly tx_hash: string | null
  }
}

/** What each action would have paid when the order needed somebody; null: it cannot be chosen. */
export type EmergencyOptionsInMail = {
  readonly continue: { readonly receive_amount: string } | null
  readonly recalculate: { readonly receive_amount: string } | null
  readonly refund: {
    readonly refund_amount: string
    readonly currency: string
    readonly network: string
    readonly has_refund_address: boolean
  } | null
}

/**
 * What a mail is and says. All but those about orders and webhooks are about the safety of an account: nobody can
 * unsubscribe from them. Times in them are the wall clock's where a link ends (`expires_at_ms`), because accounts live
 * by it; a mail whose link has ended is not sent any more.
 */
export type MailContent =
  | { readonly kind: OrderMailKind; readonly data: { readonly order: OrderInMail } }
  | {
      readonly kind: 'webhook_exhausted'
      readonly data: {
        readonly order_id: string
        /** Where it was sent: the order's `callback_url` or the URL of an endpoint. */
        readonly url: string
        /** The endpoint's id; null for an order's own `callback_url`. */
        readonly endpoint: string | null
        /** What came of the last attempt, in words. */
        readonly last_answer?: string
      }
    }
  | {
      /** An endpoint answered 410, and nothing goes there any more. */
      readonly kind: 'endpoint_disabled'
      readonly data: {
        /** The order whose event it answered so. */
        readonly order_id: string
        readonly url: string
        readonly endpoint: string
      }
    }
  | {
      readonly kind: 'sign_in_link'
      readonly data: { readonly link: string; readonly expires_at_ms: InstantMs; readonly ip?: string }
    }
  | {
      /** To the address that is being left: what is under way, and the link with which it agrees to it or stops it. */
      readonly kind: 'email_change_old'
      readonly data: {
        readonly new_email: string
        readonly link?: string
        readonly expires_at_ms?: InstantMs
        readonly ip?: string
      }
    }
  | {
      /** To the new address: the link that proves that its owner wants it. */
      readonly kind: 'email_change_new'
      readonly data: { readonly link: string; readonly expires_at_ms: InstantMs; readonly ip?: string }
    }
  | {
      readonly kind: 'key_created'
      readonly data: {
        readonly key_id: string
        readonly label: string
        readonly scopes?: readonly string[]
        readonly ip?: string
      }
    }
  | {
      /** Anything else that its owner has to know of: `what` is a sentence of ours, `details` may be anybody's words. */
      readonly kind: 'security_notice'
      readonly data: {
        readonly what: string
        readonly details?: readonly { readonly label: string; readonly value: string }[]
        readonly ip?: string
        /** It goes to an address that the account has left: whoever signs in with that gets another account. */
        readonly is_former?: true
      }
    }

export type MailKind = MailContent['kind']

/** Mails with a link that ends: of no use to anybody once they have waited for long. */
export const linkMailKinds = [
  'sign_in_link',
  'email_change_old',
  'email_change_new',
] as const satisfies readonly MailKind[]

/** About orders and webhooks: for whatever address the account has by the time they are sent. */
export const mailKindsThatFollow: readonly MailKind[] = [
  ...orderMailKinds,
  'webhook_exhausted',
  'endpoint_disabled',
]

/** About the safety of an account: neither of orders nor of webhooks. */
export function isSafetyMail({ kind }: MailContent): boolean {
  return !mailKindsThatFollow.includes(kind)
}

export type OrderMail = Extract<MailContent, { readonly kind: OrderMailKind }>

/** About an order: an account decides whether it wants these. */
export function isOrderMail(content: MailContent): content is OrderMail {
  return (orderMailKinds as readonly string[]).includes(content.kind)
}
