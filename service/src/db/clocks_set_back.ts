import { CLOCKS_APART_MS } from '../domain/time.ts'

/**
 * As SQL: whether what `column` says is held until then (wall clock) may be taken at `wallMs`. Nobody ever holds anything for longer
 * than `longestMs`: what is held until later was taken before a clock was set back. Whoever took it may be gone, and nobody
 * would come by it for as long as that.
 */
export function isFree(column: string, wallMs: string, longestMs: string): string {
  return `(${column} < ${wallMs}::bigint OR ${column} > ${wallMs}::bigint + ${longestMs} + ${CLOCKS_APART_MS})`
}

/** No payout and no exchange is put off for longer. */
const PUT_OFF_MS_MAX = 60_000

/**
 * As SQL: whether a payout or an exchange that waits until what `column` says is due at `nowMs`. What waits for later than they
 * ever do was put off before a clock was set back, and nobody would see to it until that time comes round.
 */
export function isTime(column: string, nowMs: string): string {
  return `(${column} <= ${nowMs} OR ${column} > ${nowMs}::bigint + ${PUT_OFF_MS_MAX + CLOCKS_APART_MS})`
}

/**
 * As SQL: since when something lasts that has lasted since what `column` says, or, where that is NULL, which `least` passes over, begins
 * now. A time that is still to come was noted before a clock was set back: nothing would ever have lasted for long until it comes round.
 */
export function sinceOf(column: string, nowMs: string): string {
  return `least(${column}, ${nowMs}::bigint)`
}

/** As SQL: the later of two times, but for one that was noted before a clock was set back. */
export function laterOf(column: string, nowMs: string): string {
  return `CASE WHEN ${nowMs} > 0 AND ${column} > ${nowMs} + ${CLOCKS_APART_MS} THEN ${nowMs} ELSE greatest(${column}, ${nowMs}) END`
}
