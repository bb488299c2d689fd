/** Clocks of processes that work together are closer than this. */
const CLOCKS_APART_MS = 60_000

/**
 * As SQL: whether what `column` says is held until then (wall clock) may be taken at `wallMs`. Nobody ever holds anything for longer
 * than `longestMs`: what is held until later was taken before a clock was set back. Whoever took it may be gone, and nobody
 * would come by it for as long as that.
 */
export function isFree(column: string, wallMs: string, longestMs: string): string {
  return `(${column} < ${wallMs}::bigint OR ${column} > ${wallMs}::bigint + ${longestMs} + ${CLOCKS_APART_MS})`
}
