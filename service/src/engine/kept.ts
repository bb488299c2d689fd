import type { Clock } from '../clock.ts'

/**
 * What `read` answered, for so long, and for `restsPerReading` times what it took when that is longer, but never for
 * longer than `keepMsMax`; everybody who asks meanwhile, or while it is read, gets the same answer. A failure is not kept.
 */
export function keptFor<Value>(
  {
    clock,
    keepMs,
    keepMsMax,
    restsPerReading,
  }: { clock: Pick<Clock, 'wallMs'>; keepMs: number; keepMsMax: number; restsPerReading: number },
  read: () => Promise<Value>,
): () => Promise<Value> {
  let kept: { fromWallMs: number; untilWallMs: number; readonly value: Promise<Value> } | null = null
  return () => {
    const askedWallMs = clock.wallMs()
    // A clock that was set back does not tell how old a reading is.
    if (kept === null || askedWallMs >= kept.untilWallMs || askedWallMs < kept.fromWallMs) {
      const value = read()
      const mine = {
        fromWallMs: Number.NEGATIVE_INFINITY,
        untilWallMs: Number.POSITIVE_INFINITY,
        value,
      }
      kept = mine
      value.then(
        () => {
          const endedWallMs = clock.wallMs()
          mine.fromWallMs = Math.min(askedWallMs, endedWallMs)
          const restsMs = (endedWallMs - mine.fromWallMs) * restsPerReading
          mine.untilWallMs = mine.fromWallMs + Math.max(keepMs, Math.min(keepMsMax, restsMs))
        },
        () => {
          if (kept === mine) kept = null
        },
      )
    }
    return kept.value
  }
}
