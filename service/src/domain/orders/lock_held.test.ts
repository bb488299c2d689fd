import { expect, test } from 'vitest'
import { lockHeldSinceMs, type OrderState } from './order.ts'
import { EXPIRES_MS, newOrder } from './testing/story.ts'

/** What: from when on a locked rate is held for who has to choose. How: the same order in each kind of emergency, and in none. */
const since = (state: OrderState, firstEmergencyAtMs: number | null) =>
  lockHeldSinceMs({ ...newOrder(), state, firstEmergencyAtMs })

test('who has to choose because of the house has his time from when he was first asked', () => {
  const ours: OrderState = { status: 'EMERGENCY', reasons: ['NETWORK_PROBLEM'] }
  expect(since(ours, EXPIRES_MS + 5)).toBe(EXPIRES_MS + 5)
  expect(since(ours, EXPIRES_MS - 5)).toBe(EXPIRES_MS)
  expect(since(ours, null)).toBe(EXPIRES_MS)
})

test.each<OrderState>([
  { status: 'EMERGENCY', reasons: ['NETWORK_PROBLEM', 'UNDERPAID'] },
  { status: 'EMERGENCY', reasons: ['UNDERPAID'] },
  { status: 'NEW' },
])('whoever else has it from the end of his order: %j', (state) => {
  expect(since(state, EXPIRES_MS + 5)).toBe(EXPIRES_MS)
})
