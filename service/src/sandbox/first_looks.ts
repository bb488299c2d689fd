import { readHeads } from '../db/chain_heads.ts'
import type { Sql } from '../db/database.ts'
import type { World } from '../engine/world.ts'
import { type Waiting, waitSaying } from './wait_saying.ts'

/** The first look may come before the signer has told its addresses, which is a trouble that the next one ends. */
const TROUBLE_MS = 15_000

/**
 * Waits until every chain was looked at after `sinceWallMs`, or is in trouble and stays so. What an earlier start knew of a chain is
 * too old to exchange on: whoever came first would be told that it is away.
 */
export async function awaitLooks(
  { db, chains }: { readonly db: Sql } & Pick<World, 'chains'>,
  sinceWallMs: number,
  waiting: Waiting,
): Promise<void> {
  await waitSaying(waiting, async (waitedMs) => {
    const heads = new Map((await readHeads(db)).map((head) => [head.chain, head]))
    const unknown = [...chains.keys()].filter((id) => {
      const head = heads.get(id)
      if (head === undefined) return true
      return head.lookedWallMs < sinceWallMs && (head.trouble === null || waitedMs < TROUBLE_MS)
    })
    return unknown.length === 0 ? null : `a look at ${unknown.join(', ')}`
  })
}
