import type { Clock } from '../clock.ts'
import { MINUTE_MS } from '../domain/time.ts'
import { type Alarm, openAlarm } from './alarms.ts'
import type { Log } from './world.ts'

export type Loop = { readonly name: string; stop(): Promise<void> }

const REST_AFTER_TROUBLE_MAX_MS = 10_000
/** Who rings during this pause is heard when it ends: the loop takes all that has come in one step, and not each in a step of its own. */
const BREATH_MS = 20
/** Trouble that comes and goes is over for the log when it has not come for so long. */
const QUIET_MS = MINUTE_MS

/**
 * Does `step` again and again until stopped, resting between. A step that rejects is logged and tried again after a
 * growing rest: trouble of one loop is no other loop's trouble, and no loop ends by itself.
 * `step` answers true when it has more to do at once.
 */
export function startLoop(
  parts: { readonly clock: Clock; readonly log: Log },
  name: string,
  restMs: number,
  step: (signal: AbortSignal) => Promise<boolean>,
  alarm: Alarm = openAlarm(),
): Loop {
  const stopping = new AbortController()
  const run = async () => {
    let troubles = 0
    const teller = openTeller(parts.clock)
    while (!stopping.signal.aborted) {
      let hasMore = false
      // What rings while the step is looking is not to be missed.
      const { signal: rung } = alarm
      try {
        hasMore = await step(stopping.signal)
        troubles = 0
        teller.succeeded()
      } catch (error) {
        if (stopping.signal.aborted) return
        troubles += 1
        const { failures, isNews } = teller.failed()
        if (isNews)
          parts.log.warn({ loop: name, failures, err: error }, 'an engine step failed and is tried again')
      }
      const restsMs = troubles === 0 ? restMs : Math.min(restMs * 2 ** troubles, REST_AFTER_TROUBLE_MAX_MS)
      if (hasMore || stopping.signal.aborted) continue
      const breathMs = Math.min(restsMs, BREATH_MS)
      await parts.clock.sleep(breathMs, stopping.signal)
      if (!stopping.signal.aborted) await parts.clock.sleep(restsMs - breathMs, rung)
    }
  }
  const ended = run()
  return {
    name,
    stop: async () => {
      stopping.abort()
      alarm.ring()
      await ended
    },
  }
}

export type FailureTeller = ReturnType<typeof openTeller>

/**
 * Which failures of a loop are worth a line: the first one, the tenth in a row (it may be other trouble than the one that was told of) and
 * every fiftieth. The same one ten times a second is not, nor at every second step for hours.
 */
export function openTeller(clock: Clock) {
  let failures = 0
  let inARow = 0
  let failedWallMs = 0
  return {
    succeeded: (): void => {
      inARow = 0
      // The distance: a clock that was set back would tell of nothing until it has caught up.
      if (failures > 0 && Math.abs(clock.wallMs() - failedWallMs) >= QUIET_MS) failures = 0
    },
    /** With how many there were since the last quiet minute. */
    failed: (): { readonly failures: number; readonly isNews: boolean } => {
      failures += 1
      inARow += 1
      failedWallMs = clock.wallMs()
      return { failures, isNews: failures === 1 || inARow === 10 || failures % 50 === 0 }
    },
  }
}
