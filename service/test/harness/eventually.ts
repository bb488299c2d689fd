import { setTimeout as pause } from 'node:timers/promises'
import { PATIENCE_MS } from './patience.ts'

export type Patience = {
  readonly timeoutMs?: number
  /** What to show beside the last failure: the order, the end of the log. */
  readonly context?: () => Promise<string> | string
}

/** Asking is work for whoever is waited for: what takes long is asked for less often, and is noticed a tenth later. */
const POLL_MS = { first: 20, most: 200 } as const

function pollMs(waitedMs: number): number {
  return Math.min(POLL_MS.most, Math.max(POLL_MS.first, waitedMs / 10))
}

/**
 * Answers what `look` answers as soon as it does not throw; until then asks again. A test waits with this for a
 * condition, never for a time. When patience ends, the last failure is told together with `context`.
 */
export async function eventually<Value>(
  what: string,
  look: () => Promise<Value> | Value,
  { timeoutMs = PATIENCE_MS, context }: Patience = {},
): Promise<Value> {
  const sinceMs = performance.now()
  for (;;) {
    try {
      return await look()
    } catch (error) {
      if (error instanceof Hopeless || performance.now() - sinceMs > timeoutMs) {
        const last = error instanceof Error ? error.message : String(error)
        const shown = context === undefined ? '' : `\n${await context()}`
        throw new Error(`never came true (${timeoutMs} ms): ${what}\n${last}${shown}`, { cause: error })
      }
    }
    await pause(pollMs(performance.now() - sinceMs))
  }
}

/** Thrown by a look that knows that waiting longer is useless. */
export class Hopeless extends Error {}

/** The same, where what is looked at says by itself what it waits for. */
export function soon<Value>(look: () => Promise<Value> | Value): Promise<Value> {
  return eventually('it is as expected', look)
}
