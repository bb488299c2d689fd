import type { By } from '../../db/audit_log.ts'
import type { RetrySlot } from '../../db/retry_slots.ts'
import type { EmergencyReason, OrderStatus } from '../../domain/orders/order.ts'
import type { Outcome } from '../../domain/outcome.ts'
import type { RateType } from '../../domain/quotes/quote.ts'

/**
 * What the service does for a client, as plain data: `http` turns it into the interface's JSON, and nothing else.
 * Every amount and rate is exact decimal text that goes out as a JSON number; every time is epoch milliseconds.
 */
export type DecimalText = string

/** Text as the client gave it, syntax checked, meaning not yet. */
export type RateRequest = {
  readonly from: string
  readonly to: string
  readonly fromNetwork: string | null
  readonly toNetwork: string | null
  readonly amount: DecimalText
  readonly rateType: RateType
  readonly direction: 'from' | 'to'
}

export type RateView = {
  readonly market: MarketView
  readonly rate: DecimalText
  readonly from_amount: DecimalText
  readonly to_amount: DecimalText
  readonly fee: DecimalText
  /** Fixed only. */
  readonly expires_at?: number
  readonly rate_id?: string
}

/** What every rate of a pair shares while its market stands still, and so long the same object. */
export type MarketView = {
  readonly from: string
  readonly from_network: string
  readonly to: string
  readonly to_network: string
  readonly rate_type: RateType
  readonly fee_percent: DecimalText
  readonly network_fee: DecimalText
  readonly min_amount: DecimalText
  readonly max_amount: DecimalText
}

export type CurrencyView = {
  readonly networks: readonly string[]
  readonly name: string
  readonly logo: string
  readonly color: string
  readonly precision: number
  readonly min_amount: DecimalText
  readonly max_amount: DecimalText
  readonly enabled: boolean
  readonly priority: number
}

export type CreateRequest = {
  readonly from: string
  readonly fromNetwork: string
  readonly to: string
  readonly toNetwork: string
  readonly amount: DecimalText
  readonly rateType: RateType
  readonly destination: string
  readonly destinationTag: string | null
  readonly refundAddress: string | null
  readonly callbackUrl: string | null
  readonly rateId: string | null
}

export type EmergencyAction = 'continue' | 'refund' | 'recalculate'

/** What each action would do now; null where it cannot be taken (too little received, no price). */
export type EmergencyOptions = {
  readonly continue: { readonly receive_amount: DecimalText; readonly rate: DecimalText } | null
  readonly recalculate: { readonly receive_amount: DecimalText; readonly rate: DecimalText } | null
  readonly refund: {
    readonly refund_amount: DecimalText
    readonly network_fee: DecimalText
    readonly currency: string
    readonly network: string
    /** False: an action `refund` must bring a refund_address. */
    readonly has_refund_address: boolean
  } | null
}

export type EmergencyView = {
  readonly reasons: readonly EmergencyReason[]
  readonly options: EmergencyOptions
  /** For mails and pages: false while a null may also say that nobody knows what the action would come to. */
  readonly are_options_known: boolean
}

/** Everything about an order that a client may know; the routes choose (create shows fewer fields). */
export type OrderView = {
  readonly order_id: string
  readonly short_id: string
  readonly status: OrderStatus
  readonly deposit_address: string
  readonly deposit_tag: string | null
  /** Present where there is a tag: the account that goes with it, where a wallet takes the two apart. */
  readonly deposit_account?: string
  readonly deposit_currency: string
  readonly deposit_network: string
  readonly deposit_amount: DecimalText
  readonly deposit_received: DecimalText
  /** For mails and pages: how far from `deposit_amount` what comes may be and still be it. Left out: not at all. */
  readonly deposit_tolerance?: DecimalText
  /** For mails and pages: some of what was received came too late. */
  readonly is_deposit_late?: true
  readonly deposit_confirmations: number
  readonly deposit_required_confirmations: number
  readonly deposit_tx_hash: string | null
  readonly receive_currency: string
  readonly receive_network: string
  readonly receive_amount: DecimalText
  readonly receive_final_amount: DecimalText
  readonly rate: DecimalText
  readonly rate_type: RateType
  readonly fee: DecimalText
  readonly network_fee: DecimalText
  readonly destination: string
  readonly destination_tag: string | null
  readonly refund_address: string | null
  readonly callback_url: string | null
  readonly withdraw_tx_hash: string | null
  readonly created_at: number
  readonly updated_at: number
  readonly expires_at: number
  readonly completed_at: number | null
  /** Present in EMERGENCY. */
  readonly emergency?: EmergencyView
  /** Present in REFUND and REFUNDED. */
  readonly refund?: {
    readonly address: string
    readonly amount: DecimalText
    readonly currency: string
    readonly network: string
    readonly network_fee: DecimalText
    readonly tx_hash: string | null
  }
}

/** Which of an account's orders are wanted; times are epoch milliseconds, null is any. */
export type OrderFilter = {
  readonly statuses: readonly OrderStatus[] | null
  /** At or after. */
  readonly createdFromMs: number | null
  /** Before. */
  readonly createdBeforeMs: number | null
  /** At or after. */
  readonly updatedFromMs: number | null
}

/** A place in the list of an account's orders: that of an order, which never changes. */
export type OrderPosition = { readonly createdAtMs: number; readonly orderId: string }

export type OrderPage = {
  readonly orders: readonly OrderView[]
  /** Where the next page begins; null when there is none. */
  readonly next: OrderPosition | null
}

/** A refusal in the interface's words (docs/api.md, Errors); `http/errors.ts` maps the code to a status. */
export type DeskRejection = {
  readonly code:
    | 'INVALID_PARAMETER'
    | 'INVALID_PAIR'
    | 'NETWORK_MISMATCH'
    | 'AMOUNT_OUT_OF_RANGE'
    | 'INVALID_ADDRESS'
    | 'DESTINATION_TAG_REQUIRED'
    | 'INVALID_ACTION'
    | 'REFUND_ADDRESS_REQUIRED'
    | 'ORDER_NOT_FOUND'
    | 'NOT_EMERGENCY'
    | 'RATE_EXPIRED'
    | 'RATE_UNAVAILABLE'
    | 'MAINTENANCE'
    | 'IDEMPOTENCY_CONFLICT'
  readonly message: string
  readonly details?: readonly { readonly field: string; readonly message: string }[]
  /** AMOUNT_OUT_OF_RANGE: in the currency in which the amount was given. */
  readonly min_amount?: DecimalText
  readonly max_amount?: DecimalText
  readonly currency?: string
  /** When it is worth asking again, where that is known better than from the code. */
  readonly retryAfterSeconds?: number
}

export type DeskOutcome<Value> = Outcome<Value, DeskRejection>

/** Who looks: the account that owns the order, or whoever holds its token together with its short id. */
export type Viewer =
  | { readonly kind: 'account'; readonly accountId: string }
  | { readonly kind: 'token'; readonly token: string }

/** For whose account an action is chosen, and who does it. */
export type Chooser = { readonly accountId: string; readonly by: By }

export type { RetrySlot }

export type Desk = {
  /** A float rate at once; a fixed one when its lock is stored. */
  rate(request: RateRequest): DeskOutcome<RateView> | Promise<DeskOutcome<RateView>>
  /** Whether a rate on this market would be answered again now, word for word, if it is a float one. */
  isCurrent(market: MarketView): boolean
  /** Keyed by currency code. `logo` is a path that http makes absolute. */
  currencies(): Promise<Readonly<Record<string, CurrencyView>>>
  /** `token` is told here once and never again; only its hash is kept. */
  createOrder(
    accountId: string,
    request: CreateRequest,
    retry: RetrySlot,
  ): Promise<DeskOutcome<{ readonly order: OrderView; readonly token: string; readonly isReplay: boolean }>>
  /** `id` is the full order id, or with a token the short one (last 8 digits). Null: none, or not theirs. */
  findOrder(id: string, viewer: Viewer): Promise<OrderView | null>
  /** Newest first, those that come `after` the position; null: from the newest on. */
  listOrders(
    accountId: string,
    filter: OrderFilter,
    page: { readonly after: OrderPosition | null; readonly limit: number },
  ): Promise<OrderPage>
  /** What the QR of an order says; needs no account. Null when there is no such order. */
  findPayment(orderId: string): Promise<PaymentView | null>
  chooseAction(
    chooser: Chooser,
    orderId: string,
    action: EmergencyAction,
    refundAddress: string | null,
    retry: RetrySlot,
  ): Promise<DeskOutcome<ActionView>>
}

export type ActionView = {
  readonly order_id: string
  readonly status: OrderStatus
  readonly message: string
  readonly updated_at: number
  readonly isReplay: boolean
}

export type PaymentView = {
  readonly address: string
  /** In the interface's own form, amount included. */
  readonly uri: string
  /** The network's own standard URI (BIP-21, EIP-681, Solana Pay), amount included. */
  readonly standardUri: string
}
