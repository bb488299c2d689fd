import type { OrderStatus } from '../orders/order.ts'
import type { OrderInMail, OrderMailKind } from './mail_content.ts'

/** What decides whether a change of status is one of the spec's events (§6.2). */
export type StatusChange = {
  readonly status: OrderStatus
  /** Whether the order never had this status before. */
  readonly isFirst: boolean
  readonly emergency: NonNullable<OrderInMail['emergency']> | null
}

/**
 * The mail that a change of status means, if any; never two. What a network takes back and brings again (PENDING → NEW
 * → PENDING) is told once; an emergency each time, because each time somebody has to decide.
 */
export function mailOfEvent({ status, isFirst, emergency }: StatusChange): OrderMailKind | null {
  switch (status) {
    case 'NEW':
      return isFirst ? 'order_created' : null
    case 'PENDING':
      return isFirst ? 'payment_received' : null
    case 'DONE':
      return isFirst ? 'order_completed' : null
    case 'EXPIRED':
      return isFirst ? 'order_expired' : null
    case 'REFUNDED':
      return isFirst ? 'order_failed' : null
    case 'EMERGENCY':
      return isHopeless(emergency) ? 'order_failed' : 'emergency_action_required'
    case 'EXCHANGE':
    case 'WITHDRAW':
    case 'REFUND':
      return null
  }
}

/** Too little came for anything, for sure: what nobody knows at the moment may be chosen later, and is not told again then. */
function isHopeless(emergency: StatusChange['emergency']): boolean {
  if (emergency?.are_options_known !== true) return false
  return Object.values(emergency.options).every((option) => option === null)
}
