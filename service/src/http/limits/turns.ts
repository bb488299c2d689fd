import type { Problem } from '../errors.ts'

/** Of one account at a time, in this process. */
const AT_ONCE = 2
/** Many more than an account sends in a moment unless something is stuck. */
const WAITING_MAX = 100

/**
 * Acts that lock rows of an account, or hold much memory. Each would hold a database connection while it waits for the one before it: without turns
 * one account could hold them all, and everybody else would wait for it. Whoever has no turn holds none.
 */
export type Turns = {
  /** What `work` comes to, after those of the same name that came before; null when too many wait already. */
  take<Value>(who: string, work: () => Promise<Value>): Promise<{ readonly value: Value } | null>
}

type Line = { busy: number; readonly waiting: (() => void)[] }

export function turns(): Turns {
  const lines = new Map<string, Line>()
  const lineOf = (who: string): Line => {
    const line = lines.get(who) ?? { busy: 0, waiting: [] }
    lines.set(who, line)
    return line
  }
  const leave = (who: string, line: Line) => {
    const next = line.waiting.shift()
    // Whoever comes next takes over: somebody who comes at this moment must not slip in between.
    if (next !== undefined) return next()
    line.busy -= 1
    if (line.busy === 0) lines.delete(who)
  }
  return {
    take: async (who, work) => {
      const line = lineOf(who)
      if (line.busy < AT_ONCE) line.busy += 1
      else if (line.waiting.length >= WAITING_MAX) return null
      else await new Promise<void>((resolve) => line.waiting.push(resolve))
      try {
        return { value: await work() }
      } finally {
        leave(who, line)
      }
    },
  }
}

/** What is answered when too many wait. */
export const tooManyAtOnce: Problem & { readonly code: 'RATE_LIMITED' } = {
  code: 'RATE_LIMITED',
  message: 'too many acts of this account wait for their turn; try again in 1 s',
  retry_after: 1,
}
