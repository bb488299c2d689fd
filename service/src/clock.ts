import type { InstantMs } from './domain/time.ts'

/**
 * The only place that knows what time it is. Orders, locks and retries live by `nowMs`, which tests and the
 * sandbox can move; signatures and leases between processes are checked against `wallMs`, which nobody moves.
 */
export type Clock = {
  nowMs(): InstantMs
  wallMs(): InstantMs
  /** A time told by the outside (a block's timestamp) as the moved clock would have told it. */
  fromWallMs(wallMs: InstantMs): InstantMs
  /** Resolves after so many real milliseconds, or as soon as `signal` aborts. Never rejects. */
  sleep(durationMs: number, signal?: AbortSignal): Promise<void>
  /** Resolves when everything has been looked at that has arrived so far. No time passes by it. */
  endOfTurn(): Promise<void>
}

export type MovableClock = Clock & { setOffset(offsetMs: number): void; offsetMs(): number }

export function systemClock(): MovableClock {
  let offset = 0
  return {
    nowMs: () => Date.now() + offset,
    wallMs: () => Date.now(),
    fromWallMs: (wallMs) => wallMs + offset,
    setOffset: (offsetMs) => {
      offset = offsetMs
    },
    offsetMs: () => offset,
    sleep,
    endOfTurn,
  }
}

function endOfTurn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve)
  })
}

function sleep(durationMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve()
    const done = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, durationMs)
    signal?.addEventListener('abort', done)
  })
}
