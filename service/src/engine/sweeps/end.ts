import { attemptsOf } from '../../db/attempts.ts'
import { postForHouse } from '../../db/books.ts'
import { type ClaimedOutflow, lockClaimed } from '../../db/claim_outflows.ts'
import type { Sql } from '../../db/database.ts'
import { giveBackNonce } from '../../db/nonces.ts'
import { type Ended, endOutflow, type StoredOutflow, setOutflowState } from '../../db/outflows.ts'
import { leaveRejected, leaveUnswept } from '../../db/unswept.ts'
import { networkCostPaid } from '../../domain/ledger/postings.ts'
import { MovedOn, unlessMovedOn } from '../payouts/moved_on.ts'
import type { World } from '../world.ts'

/**
 * A sweep, or the gas for one, is deep in the chain: its cost is booked, and nothing else, because the money went from
 * us to us. Its address is looked at again at once: the gas is there now, or another asset waits.
 */
export async function endSweep(
  world: World,
  sweep: StoredOutflow,
  { succeeded, ...ended }: { readonly succeeded: boolean } & Ended,
): Promise<void> {
  const nowMs = world.clock.nowMs()
  const end = succeeded ? 'confirmed' : 'failed'
  await world.db.transaction(async (tx) => {
    if (!(await endOutflow(tx, sweep.payoutId, ['signed', 'broadcast'], end, ended))) return
    await postForHouse(tx, `${sweep.payoutId}:${end}`, networkCostPaid(ended.cost), nowMs)
    if (succeeded) await leaveUnswept(tx, sweep.chain, sweep.payoutId, nowMs)
    else {
      // It would be rejected again; the next look may do better later.
      const rest = { nowMs, leastMs: world.policy.sweepRestMs }
      await leaveRejected(tx, sweep.chain, sweep.payoutId, rest)
    }
  })
}

/** It provably never happens: its nonce went to another transaction, or its time is over. */
export async function failSweep(
  world: World,
  sweep: StoredOutflow,
  guard: (tx: Sql) => Promise<void>,
): Promise<void> {
  await world.db.transaction(async (tx) => {
    await guard(tx)
    if (!(await setOutflowState(tx, sweep.payoutId, ['planned', 'signed', 'broadcast'], 'failed'))) return
    await leaveUnswept(tx, sweep.chain, sweep.payoutId, world.clock.nowMs() + world.policy.sweepRestMs)
  })
}

/**
 * Not possible now and nothing of it is written down: no sweep waits for anything, the address is looked at again
 * later. False: it is written down after all.
 */
export async function cancelSweep(world: World, sweep: ClaimedOutflow): Promise<boolean> {
  return world.db.transaction(async (tx) => {
    const locked = await lockClaimed(tx, sweep)
    if (locked === null || (await attemptsOf(tx, sweep.payoutId)).length > 0) return false
    await setOutflowState(tx, sweep.payoutId, ['planned'], 'cancelled')
    await leaveUnswept(tx, sweep.chain, sweep.payoutId, world.clock.nowMs() + world.policy.sweepRestMs)
    return true
  })
}

/**
 * Written down, and never signed: nothing of it is anywhere, and its nonce is the next one's. False: somebody has gone on with it, or
 * others wait behind its nonce.
 */
export function endUnsigned(
  world: World,
  sweep: ClaimedOutflow,
  from: { readonly address: string; readonly nonce: number },
): Promise<boolean> {
  const { payoutId, chain } = sweep
  const rest = { nowMs: world.clock.nowMs(), leastMs: world.policy.sweepRestMs }
  return unlessMovedOn(() =>
    world.db.transaction(async (tx) => {
      if ((await lockClaimed(tx, sweep)) === null) throw new MovedOn()
      if ((await attemptsOf(tx, payoutId)).some((attempt) => attempt.tx !== null)) throw new MovedOn()
      if (!(await setOutflowState(tx, payoutId, ['planned'], 'cancelled'))) throw new MovedOn()
      if (!(await giveBackNonce(tx, chain, from.address, from.nonce))) throw new MovedOn()
      await leaveRejected(tx, chain, payoutId, rest)
    }),
  )
}
