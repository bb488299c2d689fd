import { CLOCKS_APART_MS, HOUR_MS, type InstantMs } from '../time.ts'
import type { Order } from './order.ts'

/**
 * For how long a fixed order is still offered its locked rate: a deposit that was seen in time and lies in a mempool, and a customer
 * who chooses `continue`. Without an end that would be an option, taken when the market has moved the right way (decision 0019).
 */
const LOCK_OFFERED_MS = HOUR_MS

/**
 * How long after `expires_at` an order waits for a deposit that was seen in time and lies in a mempool: as long as the rate is offered.
 * Without an end anybody could keep an order waiting (decision 0038).
 */
export const AWAITED_MS = LOCK_OFFERED_MS

/** Whether a locked rate is still offered whose time is counted from `heldSinceMs`. */
export function isLockOffered(heldSinceMs: InstantMs, atMs: InstantMs): boolean {
  return atMs < heldSinceMs + LOCK_OFFERED_MS
}

/**
 * The moment from which the time of the locked rate is counted for an order in EMERGENCY. A delay of ours is not at the cost of a
 * customer who did everything right: then it is counted from when the order first came there. Only once: if choosing `continue`
 * began it anew, the customer would hold the rate for as long as the trouble lasts. A first time that at `atMs` is still to come was
 * noted by a clock that was ahead: nobody knows when it was, and the rate is held for nobody until that time comes round.
 */
export function lockHeldSinceMs(order: Order, atMs: InstantMs): InstantMs {
  const { state, terms, firstEmergencyAtMs } = order
  const isOurs = state.status === 'EMERGENCY' && state.reasons.every((reason) => reason === 'NETWORK_PROBLEM')
  const isKnown = firstEmergencyAtMs !== null && firstEmergencyAtMs <= atMs + CLOCKS_APART_MS
  return isOurs && isKnown ? Math.max(terms.expiresAtMs, firstEmergencyAtMs) : terms.expiresAtMs
}

/** Whether an order may still go on at its locked rate. */
export function isLockHeld(order: Order, atMs: InstantMs): boolean {
  return isLockOffered(lockHeldSinceMs(order, atMs), atMs)
}
