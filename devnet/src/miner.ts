import { setTimeout as delay } from 'node:timers/promises'

export type Miner = {
  pause(): void
  resume(): void
  /** Returns when the turn that was under way has ended. */
  stop(): Promise<void>
}

/** Calls `turn` again and again. A node that is away is waited for, and said once, not once a second. */
export function startMiner(options: {
  name: string
  intervalMs: number
  turn: () => Promise<void>
  isPaused: boolean
  log: (line: string) => void
}): Miner {
  const stopping = new AbortController()
  let isPaused = options.isPaused
  let isAway = false
  const loop = async () => {
    while (!stopping.signal.aborted) {
      await delay(options.intervalMs, undefined, { signal: stopping.signal }).catch(() => {})
      if (isPaused || stopping.signal.aborted) continue
      try {
        await options.turn()
        isAway = false
      } catch (error) {
        if (!isAway) options.log(`${options.name}: does not answer (${(error as Error).message})`)
        isAway = true
      }
    }
  }
  const ended = loop()
  return {
    pause: () => {
      isPaused = true
    },
    resume: () => {
      isPaused = false
    },
    stop: () => {
      stopping.abort()
      return ended
    },
  }
}
