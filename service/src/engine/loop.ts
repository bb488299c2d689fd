import type { Clock } from '../clock.ts'
import { type Alarm, openAlarm } from './alarms.ts'
import type { Log } from './world.ts'

export type Loop = { readonly name: string; stop(): Promise<void> }

const REST_AFTER_TROUBLE_MAX_MS = 10_000
/** Who rings during this pause is heard when it ends: the loop takes all that has come in one step, and not each in a step of its own. */
const BREATH_MS = 20

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
    while (!stopping.signal.aborted) {
      let hasMore = false
      // What rings while the step is looking is not to be missed.
      const { signal: rung } = alarm
      try {
        hasMore = await step(stopping.signal)
        troubles = 0
      } catch (error) {
        if (stopping.signal.aborted) return
        troubles += 1
        // The first of a row is worth a line; the same one ten times a second is not.
        if (troubles === 1 || troubles % 50 === 0) {
          parts.log.warn({ loop: name, troubles, err: error }, 'an engine step failed and is tried again')
        }
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
