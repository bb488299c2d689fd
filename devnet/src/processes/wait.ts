import { setTimeout as delay } from 'node:timers/promises'

/** Asks again until the answer is neither undefined nor false; a throw counts as "not yet". */
export async function waitFor<T>(
  what: string,
  ask: () => T | Promise<T>,
  timing: { timeoutMs: number; everyMs?: number },
): Promise<Exclude<T, undefined | false>> {
  const giveUpAtMs = Date.now() + timing.timeoutMs
  let lastError: unknown
  for (;;) {
    try {
      const answer = await ask()
      if (answer !== undefined && answer !== false) return answer as Exclude<T, undefined | false>
    } catch (error) {
      if (error instanceof GiveUp) throw error
      lastError = error
    }
    if (Date.now() > giveUpAtMs) {
      throw new Error(`${what}: not within ${timing.timeoutMs} ms`, { cause: lastError })
    }
    await delay(timing.everyMs ?? 20)
  }
}

/** Thrown inside `ask` when waiting longer cannot help. */
export class GiveUp extends Error {}
