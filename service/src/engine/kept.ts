import type { Clock } from '../clock.ts'

/**
 * What `read` answered, for so long, and for `restsPerReading` times what it took when that is longer; everybody who
 * asks meanwhile, or while it is read, gets the same answer. A failure is not kept.
 */
export function keptFor<Value>(
  {
    clock,
    keepMs,
    restsPerReading,
  }: { clock: Pick<Clock, 'wallMs'>; keepMs: number; restsPerReading: number },
  read: () => Promise<Value>,
): () => Promise<Value> {
  let kept: { untilWallMs: number; readonly value: Promise<Value> } | null = null
  return () => {
    if (kept === null || clock.wallMs() >= kept.untilWallMs) {
      const startedWallMs = clock.wallMs()
      const value = read()
      const mine = { untilWallMs: Number.POSITIVE_INFINITY, value }
      kept = mine
      value.then(
        () => {
          const tookMs = clock.wallMs() - startedWallMs
          mine.untilWallMs = startedWallMs + Math.max(keepMs, tookMs * restsPerReading)
        },
        () => {
          if (kept === mine) kept = null
        },
      )
    }
    return kept.value
  }
}
