import { readHeads } from '../db/chain_heads.ts'
import type { World } from '../engine/world.ts'

const WAIT_MS = 20

/**
 * Waits until every chain was looked at after `sinceWallMs`, or is in trouble. What an earlier start knew of a chain is too
 * old to exchange on: whoever came first would be told that it is away.
 */
export async function awaitLooks(
  { db, chains, clock }: World,
  sinceWallMs: number,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    const heads = new Map((await readHeads(db)).map((head) => [head.chain, head]))
    const isKnown = [...chains.keys()].every((id) => {
      const head = heads.get(id)
      return head !== undefined && (head.lookedWallMs >= sinceWallMs || head.trouble !== null)
    })
    if (isKnown) return
    signal.throwIfAborted()
    await clock.sleep(WAIT_MS, signal)
  }
}
