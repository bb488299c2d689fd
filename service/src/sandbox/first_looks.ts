import { readHeads } from '../db/chain_heads.ts'
import type { Sql } from '../db/database.ts'
import type { World } from '../engine/world.ts'

const WAIT_MS = 20
/** The first look may come before the signer has told its addresses, which is a trouble that the next one ends. */
const TROUBLE_MS = 15_000

/**
 * Waits until every chain was looked at after `sinceWallMs`, or is in trouble and stays so. What an earlier start knew of a chain is
 * too old to exchange on: whoever came first would be told that it is away.
 */
export async function awaitLooks(
  { db, chains, clock }: { readonly db: Sql } & Pick<World, 'chains' | 'clock'>,
  sinceWallMs: number,
  signal: AbortSignal,
): Promise<void> {
  for (let waitedMs = 0; ; waitedMs += WAIT_MS) {
    const heads = new Map((await readHeads(db)).map((head) => [head.chain, head]))
    const isKnown = [...chains.keys()].every((id) => {
      const head = heads.get(id)
      if (head === undefined) return false
      return head.lookedWallMs >= sinceWallMs || (head.trouble !== null && waitedMs >= TROUBLE_MS)
    })
    if (isKnown) return
    signal.throwIfAborted()
    await clock.sleep(WAIT_MS, signal)
  }
}
