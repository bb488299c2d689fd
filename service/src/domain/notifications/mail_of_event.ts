import type { EmergencyReason, OrderStatus } from '../orders/order.ts'
import type { EmergencyOptionsInMail, OrderMailKind } from './mail_content.ts'

/** What decides whether a change of status is one of the spec's events (§6.2). */
export type StatusChange = {
  readonly status: OrderStatus
  /** Whether the order never had this status before. */
  readonly isFirst: boolean
  readonly emergency: {
    readonly reasons: readonly EmergencyReason[]
    readonly options: EmergencyOptionsInMail
  } | null
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
      return canChoose(emergency?.options ?? null) ? 'emergency_action_required' : 'order_failed'
    case 'EXCHANGE':
    case 'WITHDRAW':
    case 'REFUND':
      return null
  }
}

function canChoose(options: EmergencyOptionsInMail | null): boolean {
  return options !== null && Object.values(options).some((option) => option !== null)
}
