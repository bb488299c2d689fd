import { expect, test } from 'vitest'
import {
  EMAIL_CHANGE_LIFETIME_MS,
  LINK_LIFETIME_MS,
  SESSION_IDLE_MS,
  SESSION_MS_MAX,
} from './session_lifetimes.ts'

test('a link signs in for 15 minutes, a session lasts a day without a use and two weeks with', () => {
  expect(LINK_LIFETIME_MS).toBe(900_000)
  expect(SESSION_IDLE_MS).toBe(86_400_000)
  expect(SESSION_MS_MAX).toBe(1_209_600_000)
  expect(EMAIL_CHANGE_LIFETIME_MS).toBe(86_400_000)
})
