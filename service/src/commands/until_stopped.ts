import { systemClock } from '../clock.ts'
import { CommandRefused } from '../command_refused.ts'
import { SECOND_MS } from '../domain/time.ts'

/** Supervisors kill after 10 s (docker) to 90 s (systemd); until then a slow node may finish its answer. */
const STOP_SECONDS_MAX = 8

/** npm passes Ctrl-C on to a process that the terminal has told already. */
const SAME_SIGNAL_MS = 300

/**
 * Resolves when a signal asked to stop and everything has. A second signal does not wait, and neither do we for ever:
 * whatever is under way, the next start goes on from the database.
 */
export function untilStopped(stop: () => Promise<void>, secondsMax = STOP_SECONDS_MAX): Promise<void> {
  const clock = systemClock()
  return new Promise((resolve, reject) => {
    let firstMs: number | null = null
    const onSignal = () => {
      const nowMs = clock.wallMs()
      if (firstMs !== null) {
        if (nowMs - firstMs > SAME_SIGNAL_MS) process.exit(130)
        return
      }
      firstMs = nowMs
      const late = clock.sleep(secondsMax * SECOND_MS).then(() => {
        throw new CommandRefused(`Not everything stopped within ${secondsMax} s.`)
      })
      Promise.race([stop(), late]).then(resolve, reject)
    }
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, onSignal)
  })
}
