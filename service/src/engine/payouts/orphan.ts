import { isPostedForHouse, postForHouse } from '../../db/books.ts'
import { readHead } from '../../db/chain_heads.ts'
import type { Sql } from '../../db/database.ts'
import {
  failOrphaned,
  forgetRejected,
  type LostBlocks,
  lockOrphanedOutflows,
  loseFilled,
  loseRejected,
  orphanOutflow,
} from '../../db/lost_outflows.ts'
import { type Ended, endOutflow, resumeOutflow, type StoredOutflow } from '../../db/outflows.ts'
import { leaveUnswept, resumeSweep } from '../../db/unswept.ts'
import { assert } from '../../domain/assert.ts'
import type { ChainId } from '../../domain/catalog/networks.ts'
import { networkCostPaid, outflowOrphaned, type Posting, reversed } from '../../domain/ledger/postings.ts'
import { amountOf } from '../../domain/money/amount.ts'
import { type Intent, paysSomebody } from '../../domain/payouts/intent.ts'
import type { InstantMs } from '../../domain/time.ts'
import { apply } from '../apply.ts'
import type { World } from '../world.ts'
import { planNonceFiller } from './plan_filler.ts'
import { fillerIdOf, settleCoins } from './take_back.ts'

/**
 * Outflows that were final and whose block has left the chain: until it is mined again the wallet has what they paid,
 * and it is owed. The same bytes go out again, which on an account chain all later ones wait behind. Their orders stay
 * as they are, because an order that was told to be done is not taken back. Of what had failed there only the cost is turned round, and its
 * nonce is filled, or its coins are taken back. What the filler of another had excluded may be mined in its place.
 *
 * `branch` counts the branches that the chain has left; `guard` throws when somebody else watches the chain by now, and is
 * asked about blocks that are named whether or not there was anything in them.
 */
export async function orphanOutflows(
  { db, clock, log }: World,
  chain: ChainId,
  lost: LostBlocks,
  branch: number,
  guard: (tx: Sql) => Promise<void>,
): Promise<void> {
  const nowMs = clock.nowMs()
  const orphaned = await db.transaction(async (tx) => {
    const outflows = await lockOrphanedOutflows(tx, chain, lost)
    if (outflows.length > 0 || lost.kind === 'named') await guard(tx)
    for (const outflow of outflows) {
      const owed = wasRejected(outflow) ? [] : owedAgain(outflow)
      if (wasRejected(outflow)) await fillRejected(tx, outflow, nowMs)
      else await orphanOutflow(tx, outflow.payoutId, nowMs)
      if (outflow.kind === 'sweep') await resumeSweep(tx, chain, endsOf(outflow), outflow.payoutId)
      if (outflow.kind === 'filler') await loseFilled(tx, outflow)
      const key = await unusedKey(tx, `${outflow.payoutId}:block_lost:${outflow.block.hash}@${branch}`)
      await postForHouse(tx, key, [...owed, ...reversed(networkCostPaid(outflow.cost))], nowMs)
    }
    return outflows
  })
  for (const outflow of orphaned) {
    log.warn(
      { payout: outflow.payoutId, block: outflow.block },
      wasRejected(outflow)
        ? 'an outflow that had failed has lost its block and is not sent again'
        : 'an outflow that was final has lost its block and is sent again',
    )
  }
}

/** Its order was told so, and may have been paid otherwise since: were it sent again, it might succeed. What goes from us to us may. */
function wasRejected(outflow: StoredOutflow): boolean {
  return outflow.state === 'failed' && paysSomebody(outflow)
}

/**
 * All that leaves the account after it waits for its nonce. On Bitcoin it has a block only when it was mined in the place of its filler,
 * which goes on: it follows what it stands in for, and takes the coins back. Elsewhere there is neither.
 */
async function fillRejected(tx: Sql, outflow: StoredOutflow, nowMs: InstantMs): Promise<void> {
  const { payoutId, chain, nonce } = outflow
  await loseRejected(tx, payoutId)
  if (nonce !== null) await planNonceFiller(tx, chain, nonce, nowMs)
  else await resumeOutflow(tx, fillerIdOf(outflow), nowMs)
}

/**
 * It is as deep as before, maybe by another of its attempts, which its order then tells, and which may spend other coins. Should the
 * chain have rejected it this time, what it paid stays owed, for a person to see.
 */
export async function endAgain(
  world: World,
  outflow: StoredOutflow,
  { txHash, intent }: { readonly txHash: string; readonly intent: Intent },
  { succeeded, ...ended }: { readonly succeeded: boolean } & Ended,
): Promise<void> {
  const { db, clock, log } = world
  const { payoutId, chain } = outflow
  if (succeeded) await tellAgain(world, outflow, txHash, ended)
  const end = succeeded ? 'confirmed' : 'failed'
  const isFirst = await db.transaction(async (tx) => {
    if (!(await endOutflow(tx, payoutId, ['orphaned'], end, ended))) return false
    if (outflow.kind === 'sweep') await leaveUnswept(tx, chain, payoutId, clock.nowMs())
    if (outflow.kind === 'filler') await forgetRejected(tx, outflow)
    await settleCoins(tx, outflow, intent)
    const paid = succeeded ? reversed(owedAgain(outflow)) : []
    const key = await foundAgainKey(tx, outflow, ended)
    await postForHouse(tx, key, [...paid, ...networkCostPaid(ended.cost)], clock.nowMs())
    return true
  })
  if (!isFirst) return
  if (succeeded) log.info({ payout: payoutId }, 'an outflow that had lost its block is final again')
  else
    log.error({ payout: payoutId }, 'an outflow that was final was mined again and failed: it is still owed')
}

/** The key of the entry that books what it costs in this block, each time that it is in one once more. */
export async function foundAgainKey(
  tx: Sql,
  { payoutId, chain }: StoredOutflow,
  { block }: Ended,
): Promise<string> {
  const head = await readHead(tx, chain)
  assert(head !== null, 'a chain that pays is watched')
  return unusedKey(tx, `${payoutId}:block_found:${block.hash}@${head.reorganisations}`)
}

/**
 * As long as the node that is asked and the one that is watched stand on two branches, an outflow loses the same block and is in it again,
 * on the same branch, as often as both are asked. That each is booked once, the state of the outflow sees to, which is locked.
 */
async function unusedKey(tx: Sql, key: string): Promise<string> {
  for (let number = 1; ; number += 1) {
    const next = number === 1 ? key : `${key}.${number}`
    if (!(await isPostedForHouse(tx, next))) return next
  }
}

/** Its order tells the transaction that it was paid by this time. */
export async function tellAgain(
  world: World,
  outflow: StoredOutflow,
  txHash: string,
  { block, cost }: Ended,
): Promise<void> {
  if (!paysSomebody(outflow)) return
  const { orderId, payoutId, chain } = outflow
  const head = await readHead(world.db, chain)
  assert(head !== null, 'a chain that pays is watched')
  const fact = { kind: 'PayoutConfirmed', payoutId, txHash, cost } as const
  await apply(world, orderId, `${payoutId}:final_again:${block.hash}@${head.reorganisations}`, fact)
}

/** Something else has its nonce or its coins for good, or its time is over: it is never mined again, and what it paid stays owed. */
export async function giveUpOrphan(
  { db, clock, log }: World,
  outflow: StoredOutflow,
  alongside: (tx: Sql) => Promise<void>,
): Promise<void> {
  const { payoutId, chain, kind } = outflow
  const isFirst = await db.transaction(async (tx) => {
    await alongside(tx)
    if (!(await failOrphaned(tx, payoutId))) return false
    if (kind === 'sweep') await leaveUnswept(tx, chain, payoutId, clock.nowMs())
    if (kind === 'filler') await forgetRejected(tx, outflow)
    return true
  })
  if (isFirst && owedAgain(outflow).length > 0)
    log.error({ payout: payoutId }, 'an outflow that was final can never be mined again: it is still owed')
}

/** The deposit address is one of them: what is swept leaves from there, and gas goes there. */
function endsOf({ address, from }: StoredOutflow): readonly string[] {
  return from === undefined ? [address] : [address, from.address]
}

/** Fillers and sweeps pay ourselves: only what they cost comes and goes. */
export function owedAgain(outflow: Pick<StoredOutflow, 'kind' | 'asset' | 'units'>): readonly Posting[] {
  return paysSomebody(outflow) ? outflowOrphaned(amountOf(outflow.asset, outflow.units)) : []
}
