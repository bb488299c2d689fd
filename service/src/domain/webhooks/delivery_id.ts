import { ORDER_ID_PATTERN, type OrderId } from '../orders/identifiers.ts'

/** One event for one receiver. */
export type DeliveryKey = { readonly orderId: OrderId; readonly receiver: string; readonly sequence: number }

const DELIVERY_ID = new RegExp(`^(${ORDER_ID_PATTERN})-([1-9][0-9]{0,8})-([a-z0-9_]{1,40})$`)

export function deliveryIdOf({ orderId, sequence, receiver }: DeliveryKey): string {
  return `${orderId}-${sequence}-${receiver}`
}

/** What `deliveryIdOf` was made of; null for any other text. */
export function readDeliveryId(text: string): DeliveryKey | null {
  const [, orderId, sequence, receiver] = DELIVERY_ID.exec(text) ?? []
  if (orderId === undefined || sequence === undefined || receiver === undefined) return null
  return { orderId, sequence: Number.parseInt(sequence, 10), receiver }
}

/** What receivers know a repetition of an event by. */
export function webhookIdOf({ orderId, sequence }: Pick<DeliveryKey, 'orderId' | 'sequence'>): string {
  return `evt_${orderId}_${sequence}`
}
