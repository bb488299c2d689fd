import { CambistError } from './cambist_error.ts'
import { pause } from './pause.ts'
import type { Order, OrderStatus } from './types.ts'

export type WaitOptions = {
  /** Time between two looks; unless told, what the interface recommends for the order's status. */
  readonly pollMs?: number
  /** Unless told, as long as it takes. */
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
  /** Called with the first look and whenever status, money, confirmations or a hash changed. */
  readonly onChange?: (order: Order) => void
}

/** No status follows these. EXPIRED is not among them: a late deposit moves on to EMERGENCY. */
const ends: readonly OrderStatus[] = ['DONE', 'REFUNDED']

const recommendedPollMs: Partial<Record<OrderStatus, number>> = { NEW: 10_000, PENDING: 30_000 }
const POLL_MS_OTHERWISE = 15_000

/** Looks at the order until it has one of `statuses`, and answers the order as seen then. */
export async function waitForStatus(
  look: (signal: AbortSignal | undefined) => Promise<Order>,
  statuses: readonly OrderStatus[],
  options: WaitOptions,
): Promise<Order> {
  const untilMs = options.timeoutMs === undefined ? Infinity : performance.now() + options.timeoutMs
  const wanted = statuses.join(' or ')
  let seen: string | undefined
  for (;;) {
    const order = await look(options.signal)
    const now = fingerprint(order)
    if (now !== seen) options.onChange?.(order)
    seen = now
    if (statuses.includes(order.status)) return order
    if (ends.includes(order.status)) {
      const message = `order ${order.order_id} ended ${order.status} and will not be ${wanted}`
      throw new CambistError({ code: 'STATUS_UNREACHABLE', status: 0, message })
    }
    const leftMs = untilMs - performance.now()
    if (leftMs <= 0) {
      const message = `order ${order.order_id} is ${order.status}, not ${wanted}, after ${options.timeoutMs} ms`
      throw new CambistError({ code: 'WAIT_TIMEOUT', status: 0, message })
    }
    const pollMs = options.pollMs ?? recommendedPollMs[order.status] ?? POLL_MS_OTHERWISE
    await pause(Math.min(pollMs, leftMs), options.signal)
  }
}

/** Not everything: what an emergency offers moves with every price. */
function fingerprint(order: Order): string {
  return JSON.stringify([
    order.status,
    order.deposit_received,
    order.deposit_confirmations,
    order.deposit_tx_hash,
    order.withdraw_tx_hash,
    order.refund?.tx_hash,
  ])
}
