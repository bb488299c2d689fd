import type { OrderEvent } from './types.ts'

export const STATUS_CHANGED = 'order.status_changed' satisfies OrderEvent['type']

/** Whether it tells of an order that changed its status. Of whatever else a newer service may tell, it is false: pass that over. */
export function isOrderEvent(event: unknown): event is OrderEvent {
  if (typeof event !== 'object' || event === null) return false
  const { type, data } = event as { readonly type?: unknown; readonly data?: unknown }
  return type === STATUS_CHANGED && typeof data === 'object' && data !== null
}
