import { CambistError } from './cambist_error.ts'
import { checkMs } from './check_option.ts'
import { pause, timerMs } from './pause.ts'
import type { Order, OrderStatus } from './types.ts'

export type WaitOptions = {
  /** Time between two looks; unless told, what the interface recommends for the order's status. */
  readonly pollMs?: number
  /** Unless told, as long as it takes. The last look is when the time is up; for that the service has a second more. */
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
  /** Called with the first look and whenever status, money, confirmations or a hash changed. */
  readonly onChange?: (order: Order) => void
}

/** No status follows these. EXPIRED is not among them: a late deposit moves on to EMERGENCY. */
const ends: readonly OrderStatus[] = ['DONE', 'REFUNDED']

const recommendedPollMs: Partial<Record<OrderStatus, number>> = { NEW: 10_000, PENDING: 30_000 }
const POLL_MS_OTHERWISE = 15_000

const LAST_LOOK_MS = 1_000

/**
 * Looks at the order until it has one of `statuses`, and answers the order as seen then. Rejects with `TypeError` for a time that
 * is none.
 */
export async function waitForStatus(
  orderId: string,
  look: (signal: AbortSignal | undefined) => Promise<Order>,
  statuses: readonly OrderStatus[],
  options: WaitOptions,
): Promise<Order> {
  if (options.pollMs !== undefined) checkMs('pollMs', options.pollMs, 'from 0')
  if (options.timeoutMs !== undefined) checkMs('timeoutMs', options.timeoutMs, 'from 0')
  const untilMs = options.timeoutMs === undefined ? Infinity : performance.now() + options.timeoutMs
  const wanted = statuses.join(' or ')
  let order: Order | undefined
  const timeUp = () => {
    const status = order === undefined ? 'was not seen' : `is ${order.status}, not ${wanted},`
    const message = `order ${orderId} ${status} after ${options.timeoutMs} ms`
    return new CambistError({ code: 'WAIT_TIMEOUT', status: 0, message })
  }
  let seen: string | undefined
  for (;;) {
    const lookMs = Math.max(untilMs - performance.now(), LAST_LOOK_MS)
    order = await inTime(lookMs, timeUp, look, options.signal)
    const now = fingerprint(order)
    if (now !== seen) options.onChange?.(order)
    seen = now
    if (statuses.includes(order.status)) return order
    if (ends.includes(order.status)) {
      const message = `order ${orderId} ended ${order.status} and will not be ${wanted}`
      throw new CambistError({ code: 'STATUS_UNREACHABLE', status: 0, message })
    }
    const leftMs = untilMs - performance.now()
    if (leftMs <= 0) throw timeUp()
    const pollMs = options.pollMs ?? recommendedPollMs[order.status] ?? POLL_MS_OTHERWISE
    await pause(Math.min(pollMs, leftMs), options.signal)
  }
}

/** A look with all its repetitions: without a limit it would go on for minutes when the service says nothing. */
async function inTime(
  durationMs: number,
  timeUp: () => CambistError,
  look: (signal: AbortSignal | undefined) => Promise<Order>,
  signal: AbortSignal | undefined,
): Promise<Order> {
  const late = new AbortController()
  const timer = setTimeout(() => late.abort(timeUp()), timerMs(durationMs))
  const either = signal === undefined ? late.signal : AbortSignal.any([signal, late.signal])
  return look(either).finally(() => clearTimeout(timer))
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
