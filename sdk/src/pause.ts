/** What a timer takes, 24 days: a longer one, and one without an end, would be over at once. */
export function timerMs(durationMs: number): number {
  return Math.min(durationMs, 2 ** 31 - 1)
}

/** Resolves after so many milliseconds; rejects with the signal's reason as soon as it aborts. */
export function pause(durationMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason)
    const onAbort = () => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort)
      resolve()
    }, timerMs(durationMs))
    signal?.addEventListener('abort', onAbort, { once: true })
  })
}
