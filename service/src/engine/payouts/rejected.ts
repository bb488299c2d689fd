import type { Chain } from '../../chains/chain.ts'
import { attemptsOf } from '../../db/attempts.ts'
import { postForHouse } from '../../db/books.ts'
import { readHead } from '../../db/chain_heads.ts'
import {
  type ClaimedOutflow,
  type Ended,
  endOutflow,
  findRejected,
  lockClaimed,
  setOutflowState,
  unbooked,
} from '../../db/outflows.ts'
import { assert } from '../../domain/assert.ts'
import { networkCostPaid } from '../../domain/ledger/postings.ts'
import type { SigningWorld } from '../world.ts'
import { waitUntilDeep } from './follow.ts'
import { statusAsJudged } from './judge.ts'
import type { Progress } from './progress.ts'

/**
 * A filler may have the nonce of an outflow that had failed and lost its block. We never send that again, but others may have it: when it
 * is mined after all, deep enough, it costs what it costs there, and its filler has ended. Null: the filler goes its way.
 */
export async function followRejected(
  world: SigningWorld,
  chain: Chain,
  filler: ClaimedOutflow,
): Promise<Progress | null> {
  if (filler.kind !== 'filler' || filler.nonce === null) return null
  const rejected = await findRejected(world.db, chain.id, filler.nonce)
  if (rejected === null) return null
  for (const { tx, intent } of await attemptsOf(world.db, rejected.payoutId)) {
    if (tx === null) continue
    const status = await chain.lookup(tx.txHash, intent)
    if (status.where !== 'block') continue
    const waits = await waitUntilDeep(chain, status.block)
    if (waits !== null) return waits
    const judged = await statusAsJudged(world.db, rejected.payoutId, tx.txHash, status)
    await endRejected(world, filler, rejected, judged ?? status)
    return { kind: 'done' }
  }
  return null
}

/**
 * Should it have paid this time, its order may have been paid otherwise meanwhile: nothing is booked of that, so that books and chain differ
 * by it until a person has looked.
 */
async function endRejected(
  { db, clock, log }: SigningWorld,
  filler: ClaimedOutflow,
  { payoutId, chain }: ClaimedOutflow,
  { succeeded, ...ended }: { readonly succeeded: boolean } & Ended,
): Promise<void> {
  const isFirst = await db.transaction(async (tx) => {
    if ((await lockClaimed(tx, filler)) === null) return false
    await setOutflowState(tx, filler.payoutId, unbooked, 'failed')
    await endOutflow(tx, payoutId, ['failed'], 'failed', ended)
    const head = await readHead(tx, chain)
    assert(head !== null, 'a chain that pays is watched')
    const key = `${payoutId}:block_found:${ended.block.hash}@${head.reorganisations}`
    await postForHouse(tx, key, networkCostPaid(ended.cost), clock.nowMs())
    return true
  })
  if (!isFirst) return
  if (succeeded)
    log.error(
      { payout: payoutId },
      'an outflow that had failed lost its block, was mined again and paid: it may have been paid twice',
    )
  else log.info({ payout: payoutId }, 'an outflow that had failed and lost its block has failed again')
}
