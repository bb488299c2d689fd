import { onTestFinished, vi } from 'vitest'

/**
 * Stops the wall clock of this process, and so the service's, until the test ends; timers go on. Returns the instant at which it
 * stands, in ms; `vi.setSystemTime` moves it. `settle` waits in vain meanwhile: it tells one look from the next by this clock.
 */
export function stopWallClock(): number {
  vi.useFakeTimers({ toFake: ['Date'] })
  onTestFinished(() => void vi.useRealTimers())
  return Date.now()
}
