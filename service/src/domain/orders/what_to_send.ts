import { assert } from '../assert.ts'
import { formatDecimal, parseDecimal } from '../money/decimal.ts'
import type { InstantMs } from '../time.ts'
import type { EmergencyReason, OrderStatus } from './order.ts'

/** What decides it, as a client sees the order. Amounts are decimal text. */
export type OrderToPay = {
  readonly status: OrderStatus
  readonly deposit_amount: string
  readonly deposit_received: string
  /** How far from what was asked a deposit may be and still be it; left out: not at all. */
  readonly deposit_tolerance?: string
  /** Some of what was received came too late. */
  readonly is_deposit_late?: true
  readonly expires_at: InstantMs
  readonly emergency?: { readonly reasons: readonly EmergencyReason[] }
}

/** all, rest: this much is to be sent now. too_late: it was never sent whole, and no more is to be sent. */
export type ToSend =
  | { readonly kind: 'all' | 'rest'; readonly amount: string }
  | { readonly kind: 'too_late' }
  | { readonly kind: 'nothing' }

/**
 * What customers are told to send, by pages and mails. Only what is missing, and only until `expires_at`: more than that stops the
 * order, and what comes later may lose it the locked rate.
 */
export function whatToSend(order: OrderToPay, nowMs: InstantMs): ToSend {
  if (!isOpenToMoney(order)) return { kind: 'nothing' }
  const paid = howPaid(order)
  // Within the tolerance it is enough, unless the order has stopped because it is not (`depositReasons` in `emergency.ts`).
  if (paid === 'exact' && order.status !== 'EMERGENCY') return { kind: 'nothing' }
  const { asked, received } = unitsOf(order)
  if (received >= asked) return { kind: 'nothing' }
  if (nowMs >= order.expires_at) return { kind: 'too_late' }
  return { kind: paid === 'nothing' ? 'all' : 'rest', amount: formatDecimal(asked - received, DECIMALS) }
}

/**
 * In EMERGENCY only the rest of what it asks for lets an order go on, and only where nothing else is wrong (`emergencyState` in
 * `deposits.ts`): anything more is only more to decide about, and after that it is unclaimed.
 */
function isOpenToMoney({ status, emergency }: OrderToPay): boolean {
  if (status !== 'EMERGENCY') return status === 'NEW' || status === 'PENDING'
  const [reason, ...others] = emergency?.reasons ?? []
  return reason === 'UNDERPAID' && others.length === 0
}

/** What was seen so far beside what was asked, as `compareToAsked` in `order.ts` has it of what is confirmed. */
export function howPaid(order: OrderToPay): 'nothing' | 'less' | 'exact' | 'more' {
  const { asked, received, tolerance } = unitsOf(order)
  if (received === 0n) return 'nothing'
  if (received < asked - tolerance) return 'less'
  return received > asked + tolerance ? 'more' : 'exact'
}

/**
 * Whether the amount of an order is what its customer is going to receive: only while it may be paid or was paid just so in time, not
 * beside a refund, and in EMERGENCY what would be paid stands with each action, where there is any.
 */
export function promisesPayout(order: OrderToPay, nowMs: InstantMs): boolean {
  switch (order.status) {
    case 'NEW':
      return nowMs < order.expires_at
    case 'PENDING':
      return howPaid(order) === 'exact' && order.is_deposit_late !== true
    case 'EXCHANGE':
    case 'WITHDRAW':
    case 'DONE':
      return true
    case 'EXPIRED':
    case 'EMERGENCY':
    case 'REFUND':
    case 'REFUNDED':
      return false
  }
}

/** As many as the finest ledger has. */
const DECIMALS = 18

function unitsOf({ deposit_amount, deposit_received, deposit_tolerance = '0' }: OrderToPay) {
  return {
    asked: toUnits(deposit_amount),
    received: toUnits(deposit_received),
    tolerance: toUnits(deposit_tolerance),
  }
}

function toUnits(text: string): bigint {
  const parsed = parseDecimal(text, DECIMALS)
  assert(parsed.ok, `${text} is an amount as we show it`)
  return parsed.value
}
