import type { ChainId } from '../domain/catalog/networks.ts'

/** Ends the rest of loops that have nothing to do: somebody in this process has made them some. */
export type Alarm = {
  /** Aborted by the next ring. */
  readonly signal: AbortSignal
  ring(): void
}

export function openAlarm(): Alarm {
  let next = new AbortController()
  return {
    get signal() {
      return next.signal
    },
    ring: () => {
      const rung = next
      next = new AbortController()
      // With a reason of its own: making an error for every ring is most of what ringing costs.
      rung.abort('rung')
    },
  }
}

/** Loops that others in their process make something to do. */
export type RungLoop =
  | 'exchange'
  | 'expire'
  | 'market'
  | 'pool'
  | 'relay'
  | `watch ${ChainId}`
  | `payouts ${ChainId}`

/**
 * One alarm a loop: whoever writes down what is due rings, and nobody waits for the end of a rest. A ring that is missed
 * loses nothing, for what is due is a row.
 */
export type Alarms = {
  of(loop: RungLoop): Alarm
  ring(loop: RungLoop): void
  ringAll(): void
}

export function openAlarms(): Alarms {
  const opened = new Map<RungLoop, Alarm>()
  const of = (loop: RungLoop) => {
    const alarm = opened.get(loop) ?? openAlarm()
    opened.set(loop, alarm)
    return alarm
  }
  return {
    of,
    ring: (loop) => of(loop).ring(),
    ringAll: () => {
      for (const alarm of opened.values()) alarm.ring()
    },
  }
}
