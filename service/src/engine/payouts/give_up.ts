import type { Chain } from '../../chains/chain.ts'
import { type Attempt, attemptsOf } from '../../db/attempts.ts'
import { type ClaimedOutflow, lockEnding } from '../../db/claim_outflows.ts'
import { paysSomebody } from '../../domain/payouts/intent.ts'
import type { SignRejection } from '../../signer/signer.ts'
import { apply } from '../apply.ts'
import { deepHeight } from '../deep_height.ts'
import { endUnsigned } from '../sweeps/end.ts'
import type { SigningWorld } from '../world.ts'
import { endExcluded } from './excluded.ts'
import { failOutflow, fillGap } from './fill_gap.ts'
import { MovedOn, unlessMovedOn } from './moved_on.ts'
import { areOver, excludesByTime } from './over.ts'
import { isStalled } from './stalled.ts'
import { isBeforeItsTurn } from './turn.ts'
import { findUnwritten, type Unwritten } from './unwritten.ts'

/**
 * After too long in trouble. Before anything was written down, a person decides (EMERGENCY with NETWORK_PROBLEM); the
 * refund of an order has no other way and goes on waiting. After that only the chain can say that it is not on its
 * way: it does when somebody else has spent its coins; if not, its nonce is filled or its coins are taken back, so that
 * it will. Where attempts exclude each other by time, it says so when the time of all of them is over.
 *
 * `refusal`: why the signer would not sign it just now. Answers why it must not be given up though it is time, or null.
 */
export async function giveUpWaiting(
  world: SigningWorld,
  chain: Chain,
  outflow: ClaimedOutflow,
  refusal?: SignRejection['code'],
): Promise<Unwritten | null> {
  if (!isStalled(world, outflow)) return null
  // It has signed something else under this name, which is written down nowhere here and may be on its way (this database is
  // older than the signer's, most likely): only a person can find out.
  if (refusal === 'conflict') return null
  const attempts = await attemptsOf(world.db, outflow.payoutId)
  const isWithNetwork = attempts.some(({ answer }) => answer === 'accepted')
  if (isWithNetwork || (attempts.length === 0 && outflow.kind !== 'payout')) return null
  const unwritten = await findUnwritten(world, outflow, attempts)
  if (unwritten === null) await giveUp(world, chain, outflow, attempts, refusal)
  return unwritten
}

async function giveUp(
  world: SigningWorld,
  chain: Chain,
  outflow: ClaimedOutflow,
  attempts: readonly Attempt[],
  refusal: SignRejection['code'] | undefined,
): Promise<void> {
  if (attempts.length === 0) {
    const { orderId, payoutId } = outflow
    await apply(world, orderId, `stalled:${payoutId}`, { kind: 'ExchangeStalled', payoutId })
    return
  }
  if (await endExcluded(world, chain, outflow)) return
  if (excludesByTime(chain)) {
    // The signer may have signed what has no bytes here, unless it has just refused to sign, or has just answered that it has not.
    const hasSaidNo = refusal !== undefined || paysSomebody(outflow)
    const areKnown = hasSaidNo || attempts.every(({ tx }) => tx !== null)
    if (areKnown) await giveUpOver(world, chain, outflow, attempts)
  } else if (outflow.from === undefined) await fillInTurn(world, chain, outflow)
  else if (attempts.some(({ tx }) => tx !== null) || refusal === undefined)
    await giveUpOvertaken(world, chain, outflow, outflow.from.address, attempts)
  else await giveUpUnsigned(world, chain, outflow, outflow.from.address, attempts)
}

/**
 * Before its turn no filler would get into a block either, and with its turn it may get there itself. The one before it is mined, or is given
 * up like this one: whoever is next always is.
 */
async function fillInTurn(world: SigningWorld, chain: Chain, outflow: ClaimedOutflow): Promise<void> {
  if (!(await isBeforeItsTurn(world, chain, outflow))) await fillGap(world, outflow)
}

/**
 * The signer refuses a sweep whose bytes are not here, and says itself that it has signed nothing of it. Should it sign for a worker that
 * has lost the sweep meanwhile, that one stores no bytes any more, and sends none.
 */
async function giveUpUnsigned(
  world: SigningWorld,
  chain: Chain,
  outflow: ClaimedOutflow,
  address: string,
  attempts: readonly Attempt[],
): Promise<void> {
  const { payoutId, nonce } = outflow
  if (nonce === null || (await world.signer.lastSigned(payoutId)) > 0) return
  // This database may be older than the signer's, or both than the chain: what has used the nonce may be this very sweep.
  if ((await chain.minedNonce(address)) > nonce)
    return giveUpOvertaken(world, chain, outflow, address, attempts)
  if (await endUnsigned(world, outflow, { address, nonce }))
    world.log.warn(
      { payout: payoutId, nonce },
      'the signer refuses a sweep, of which nothing was signed: it has ended',
    )
}

/**
 * Nobody waits behind the nonce of a deposit address, and it is not filled. When it has gone to a transaction that is written
 * down nowhere here (somebody has used the key elsewhere), as deep in the chain as money has to be, none of these happens.
 */
async function giveUpOvertaken(
  world: SigningWorld,
  chain: Chain,
  outflow: ClaimedOutflow,
  address: string,
  attempts: readonly Attempt[],
): Promise<void> {
  const { payoutId, nonce } = outflow
  if (nonce === null || (await chain.minedNonce(address, await deepHeight(world.db, chain))) <= nonce) return
  // Asked after the nonce: what has taken it is in its block by now, and is none of these if they are not.
  for (const { tx } of attempts) {
    if (tx !== null && (await chain.lookup(tx.txHash)).where !== 'absent') return
  }
  if (!(await endForGood(world, outflow, attempts))) return
  world.log.warn({ payout: payoutId, nonce }, 'its nonce went to another transaction: it can never be mined')
}

/**
 * Ends an outflow whose attempts are all over. Whether they are stays true; whether they are all there are is asked once
 * more under the outflow's lock, because a worker that has taken it over may have drafted another one. False: not yet.
 */
export async function giveUpOver(
  world: SigningWorld,
  chain: Chain,
  outflow: ClaimedOutflow,
  attempts: readonly Attempt[],
): Promise<boolean> {
  if (!(await areOver(world, chain, outflow, attempts))) return false
  if (!(await endForGood(world, outflow, attempts))) return false
  world.log.warn({ payout: outflow.payoutId }, 'the time of all its attempts is over: it can never be mined')
  return true
}

/** None of these attempts can ever be mined. False: somebody has gone on with it, or it has another attempt. */
function endForGood(
  world: SigningWorld,
  outflow: ClaimedOutflow,
  attempts: readonly Attempt[],
): Promise<boolean> {
  return unlessMovedOn(() =>
    failOutflow(world, outflow, async (tx) => {
      if (!(await lockEnding(tx, outflow))) throw new MovedOn()
      if ((await attemptsOf(tx, outflow.payoutId)).length !== attempts.length) throw new MovedOn()
    }),
  )
}
