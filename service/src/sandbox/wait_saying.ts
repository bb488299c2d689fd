import type { Clock } from '../clock.ts'

const WAIT_MS = 20
/** A start takes a few seconds, and on a busy machine several times as long: who waits for longer wants to know for what. */
const SAID_EVERY_MS = 30_000

export type Waiting = {
  readonly clock: Pick<Clock, 'sleep'>
  readonly signal: AbortSignal
  say(line: string): void
}

/**
 * Waits until `whatFor` answers null; says what it answers in place of that whenever half a minute has gone by. It is told for how long it
 * was waited, not counting how long it took to ask.
 */
export async function waitSaying(
  { clock, signal, say }: Waiting,
  whatFor: (waitedMs: number) => Promise<string | null>,
): Promise<void> {
  for (let waitedMs = 0; ; waitedMs += WAIT_MS) {
    const lacking = await whatFor(waitedMs)
    if (lacking === null) return
    if (waitedMs > 0 && waitedMs % SAID_EVERY_MS === 0) say(`still waiting for ${lacking}`)
    signal.throwIfAborted()
    await clock.sleep(WAIT_MS, signal)
  }
}
