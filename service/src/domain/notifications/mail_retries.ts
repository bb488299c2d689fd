import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../time.ts'

/** How long a mail server that does not take a mail is asked again. What a mail says is old news by then. */
export const MAIL_TRIED_FOR_MS = 72 * HOUR_MS

/** Rests after the first, second, … attempt; the last one goes for all that follow. */
const RESTS_MS = [15 * SECOND_MS, MINUTE_MS, 5 * MINUTE_MS, 15 * MINUTE_MS, 30 * MINUTE_MS, HOUR_MS]

/** How long a mail rests after so many attempts that came to nothing; 1 is after the first. */
export function restAfterAttemptMs(attempts: number): number {
  return RESTS_MS[Math.max(0, attempts - 1)] ?? HOUR_MS
}
