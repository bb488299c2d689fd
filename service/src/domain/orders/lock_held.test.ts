import { expect, test } from 'vitest'
import { HOUR_MS, MINUTE_MS } from '../time.ts'
import { isLockHeld, lockHeldSinceMs } from './lock_held.ts'
import type { OrderState } from './order.ts'
import { EXPIRES_MS, newOrder } from './testing/story.ts'

/** What: from when on a locked rate is held for who has to choose. How: the same order in each kind of emergency, and in none. */
const since = (state: OrderState, firstEmergencyAtMs: number | null, atMs = EXPIRES_MS + MINUTE_MS) =>
  lockHeldSinceMs({ ...newOrder(), state, firstEmergencyAtMs }, atMs)

test('who has to choose because of the house has his time from when he was first asked', () => {
  const ours: OrderState = { status: 'EMERGENCY', reasons: ['NETWORK_PROBLEM'] }
  expect(since(ours, EXPIRES_MS + 5)).toBe(EXPIRES_MS + 5)
  expect(since(ours, EXPIRES_MS - 5)).toBe(EXPIRES_MS)
  expect(since(ours, null)).toBe(EXPIRES_MS)
})

test('who was first asked by a clock that was hours ahead does not have the rate until that time comes round', () => {
  const ours: OrderState = { status: 'EMERGENCY', reasons: ['NETWORK_PROBLEM'] }
  const notedMs = EXPIRES_MS + 8 * HOUR_MS
  expect(since(ours, notedMs)).toBe(EXPIRES_MS)
  const isHeld = (atMs: number) =>
    isLockHeld({ ...newOrder(), state: ours, firstEmergencyAtMs: notedMs }, atMs)
  expect([HOUR_MS - 1, HOUR_MS, 8 * HOUR_MS - 2 * MINUTE_MS].map((ms) => isHeld(EXPIRES_MS + ms))).toEqual([
    true,
    false,
    false,
  ])
  expect(since(ours, notedMs, notedMs - MINUTE_MS), 'as far as clocks are apart').toBe(notedMs)
})

test.each<OrderState>([
  { status: 'EMERGENCY', reasons: ['NETWORK_PROBLEM', 'UNDERPAID'] },
  { status: 'EMERGENCY', reasons: ['UNDERPAID'] },
  { status: 'NEW' },
])('whoever else has it from the end of his order: %j', (state) => {
  expect(since(state, EXPIRES_MS + 5)).toBe(EXPIRES_MS)
})
