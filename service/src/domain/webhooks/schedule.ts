import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../time.ts'

/** How long after the attempt before each attempt is made (Standard Webhooks 1.0): three days in all. */
const waitsMs = [
  0,
  5 * SECOND_MS,
  5 * MINUTE_MS,
  30 * MINUTE_MS,
  2 * HOUR_MS,
  5 * HOUR_MS,
  10 * HOUR_MS,
  14 * HOUR_MS,
  20 * HOUR_MS,
  24 * HOUR_MS,
] as const

/** What failed together shall not come back together. */
const JITTER = 0.1

/** After so many failed attempts, how long until the next; null: there is none. `chance` is from 0 to 1. */
export function nextAttemptInMs(failures: number, chance: number): number | null {
  const waitMs = waitsMs[failures]
  return waitMs === undefined ? null : Math.round(waitMs * (1 + JITTER * chance))
}
