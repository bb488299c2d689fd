import type { Chain, DraftRejection, FeeBid } from '../../chains/chain.ts'
import { type Attempt, attemptsOf, insertAttempt } from '../../db/attempts.ts'
import { type ClaimedOutflow, lockClaimed } from '../../db/claim_outflows.ts'
import { assert } from '../../domain/assert.ts'
import { nativeAsset } from '../../domain/catalog/assets.ts'
import type { Outcome } from '../../domain/outcome.ts'
import type { Intent } from '../../domain/payouts/intent.ts'
import { CLOCKS_APART_MS } from '../../domain/time.ts'
import { heldDeep } from '../deep_height.ts'
import { reserveAddress } from '../reserves.ts'
import { isTooDearToMove } from '../sweeps/gas_cost.ts'
import type { SigningWorld } from '../world.ts'
import { claimKeeper } from './claim.ts'
import { type FeePurse, findLackOfFee, type LackOfFee, readFeePurse, takenBy } from './fee_cover.ts'
import { giveUpOver } from './give_up.ts'
import { areOver, excludesByTime, findOver, type Over } from './over.ts'
import type { Progress } from './progress.ts'
import { findLackOfRoom, readRoom } from './room.ts'
import { isStalled } from './stalled.ts'
import { readFillerFunds } from './take_back.ts'
import { isBeforeItsTurn } from './turn.ts'

const AFTER_FEE_CAP_MS = 10_000

/**
 * A sweep of a token never is: its gas was brought in the right amount, nobody waits for it, and fees fall again. What was sent at a time
 * that is still to come was sent before the clock was set back, or by an engine whose clock is ahead, nobody knows how long ago: the last time
 * that has come counts, so that two engines do not each raise at once what the other has sent. Where none has come it is raised now, and
 * once, because the next attempt is sent at the right time. To keep the earlier time when its answer is stored would not do: what the
 * network has is not sent again.
 */
function isTooSlow(
  { clock, policy }: SigningWorld,
  chain: Chain,
  outflow: ClaimedOutflow,
  attempts: readonly Attempt[],
): boolean {
  if (outflow.from !== undefined && outflow.asset !== nativeAsset(chain.id).id) return false
  const sentAtMs = attempts.map(({ broadcastAtMs }) => broadcastAtMs)
  if (sentAtMs.at(-1) === null) return false
  const nowMs = clock.nowMs()
  const known = sentAtMs.filter((atMs) => atMs !== null).filter((atMs) => atMs <= nowMs + CLOCKS_APART_MS)
  const afterMs = policy.bumpAfterMs[chain.id] ?? Number.POSITIVE_INFINITY
  return known.every((atMs) => nowMs - atMs >= afterMs)
}

/**
 * Whether only a lower nonce keeps it from being mined: of those that the network has, such as wait at a price that is still enough stay at
 * what they cost. One that was late long before it is next is raised then, if the block before did not take it along. What no block takes at
 * its price is raised wherever it stands, which it would be when it is next, so that a queue whose fees became too low does not wait a block
 * for each; and so is what is refused: it would be given up when it is next. On other chains with nonces an attempt ends with its time.
 */
async function onlyWaitsItsTurn(
  world: SigningWorld,
  chain: Chain,
  outflow: ClaimedOutflow,
  attempts: readonly Attempt[],
  latest: Attempt,
): Promise<boolean> {
  if (chain.family !== 'evm' || attempts.every(({ answer }) => answer === 'refused')) return false
  if (!(await isBeforeItsTurn(world, chain, outflow))) return false
  return !(await chain.isPricedOut?.(latest.intent))
}

/**
 * Unmined or refused for too long: a transaction that excludes the earlier one on chain and pays more. A node that
 * refuses what it took, or would have taken a moment ago, mostly does so because fees have risen. Null: not long enough.
 * Where attempts exclude each other by time: once all of them are over, and never before; a sweep has ended then. `look` says why one that
 * is slow is not raised all the same.
 */
export async function raiseWhenSlow(
  world: SigningWorld,
  chain: Chain,
  outflow: ClaimedOutflow,
  attempts: readonly Attempt[],
  look: () => Promise<Progress | null> = async () => null,
): Promise<Progress | null> {
  const latest = attempts.at(-1)
  if (latest === undefined) return null
  if (!excludesByTime(chain)) {
    if (!isTooSlow(world, chain, outflow, attempts)) return null
    if (await onlyWaitsItsTurn(world, chain, outflow, attempts, latest)) return null
    const waits = await look()
    if (waits !== null) return waits
  } else {
    if (!(await areOver(world, chain, outflow, attempts))) return null
    // Its address is looked at anew, and what is there then is swept, which others may have added to.
    if (outflow.kind === 'sweep')
      return (await giveUpOver(world, chain, outflow, attempts)) ? { kind: 'done' } : null
    // A payout that was refused for long is given up.
    if (isStalled(world, outflow) && attempts.every(({ answer }) => answer !== 'accepted'))
      return { kind: 'trouble', message: 'its attempts are over', inMs: 0 }
    // The signer signs them in their turn: one that is too late by now is signed as well, before there is another.
    if (latest.tx === null) return null
    const room = await readRoom(world, outflow)
    const lack = room === null ? null : await findLackOfRoom(world.db, outflow, room)
    if (lack !== null) return { kind: 'trouble', message: lack, inMs: AFTER_FEE_CAP_MS }
  }
  const own = new Map([[outflow.payoutId, latest.attempt]])
  const further = await draftFurther(world, chain, outflow, attempts, own)
  return further?.kind === 'lack' ? draftBesideOver(world, chain, outflow, attempts, own, further) : further
}

/**
 * Those that wait here have nothing on its way, and must not wait for each other. They are asked only where the reserve lacks the coin,
 * because it may be many blocks to read, and no more of them than have to be over. Another one may take what they leave while they are
 * asked: then so are the next.
 */
async function draftBesideOver(
  world: SigningWorld,
  chain: Chain,
  outflow: ClaimedOutflow,
  attempts: readonly Attempt[],
  own: Over,
  lack: Lack,
): Promise<Progress | null> {
  const over = new Map(own)
  let { message, missing } = lack
  for await (const one of findOver(world, chain, outflow, (intent) => takenBy(intent, lack.bid))) {
    over.set(one.payoutId, one.attempt)
    missing -= one.taken
    if (missing > 0n) continue
    const further = await draftFurther(world, chain, outflow, attempts, over)
    if (further?.kind !== 'lack') return further
    ;({ message, missing } = further)
  }
  return { kind: 'trouble', message, inMs: AFTER_FEE_CAP_MS }
}

/** Why the reserve might not have the coin for what is bid. */
type Lack = LackOfFee & { readonly kind: 'lack'; readonly bid: FeeBid }

/**
 * Where attempts exclude each other by time the next one may take more of the reserve than this one was promised: it is held against
 * what is there like a first one. `over`: this outflow's own last attempt, and others that take nothing any more.
 */
async function draftFurther(
  world: SigningWorld,
  chain: Chain,
  outflow: ClaimedOutflow,
  attempts: readonly Attempt[],
  over: Over,
): Promise<Progress | Lack | null> {
  const latest = attempts.at(-1)
  assert(latest !== undefined, 'a further attempt follows another')
  const nowMs = world.clock.nowMs()
  const bid = await bidAgain(chain, outflow, attempts)
  if (!bid.ok) return { kind: 'trouble', message: bid.rejection.message, inMs: AFTER_FEE_CAP_MS }
  const held = await heldForSweep(world, chain, outflow)
  if (isTooDear(world, outflow, bid.value, held)) return null
  const raised = await raise(world, chain, outflow, latest, bid.value, held)
  if (!raised.ok) return { kind: 'trouble', message: raised.rejection.message, inMs: AFTER_FEE_CAP_MS }
  const fees = await readFees(world, chain, outflow)
  const drafted = await world.db.transaction(async (tx): Promise<boolean | Lack> => {
    if ((await lockClaimed(tx, outflow)) === null) return false
    const known = await attemptsOf(tx, outflow.payoutId)
    if (known.length !== attempts.length) return false
    const lack = fees === null ? null : await findLackOfFee(tx, raised.value, bid.value, fees, over)
    if (lack !== null) return { kind: 'lack', ...lack, bid: bid.value }
    await insertAttempt(tx, raised.value, nowMs)
    return true
  })
  if (typeof drafted === 'object') return drafted
  if (drafted) {
    world.log.info(
      { payout: outflow.payoutId, attempt: raised.value.attempt },
      excludesByTime(chain)
        ? 'a payout whose time is over is drafted anew'
        : 'a slow payout gets a higher fee',
    )
  }
  return { kind: 'again', inMs: 0 }
}

/** Asked before the transaction, because nothing inside one waits for a node. */
async function readFees(
  world: SigningWorld,
  chain: Chain,
  outflow: ClaimedOutflow,
): Promise<FeePurse | null> {
  if (!excludesByTime(chain)) return null
  const keep = claimKeeper(world, outflow)
  const fees = await readFeePurse(world.db, chain, outflow, await reserveAddress(world.db, chain))
  await keep()
  return fees
}

/**
 * Who is paid may not want it any more since, or the token pays nobody at present (paused, or it blocks the reserve). What goes on
 * all the same does so for the price of what pays nobody: only a further attempt gets it into a block, and there it pays or fails,
 * at the cost of its order. Until then whatever is to leave the account after it would wait.
 */
async function bidAgain(
  chain: Chain,
  outflow: ClaimedOutflow,
  attempts: readonly Attempt[],
): Promise<Outcome<FeeBid, DraftRejection>> {
  const bid = await chain.bid(outflow)
  if (bid.ok || !goesOn(chain, bid.rejection, attempts)) return bid
  return chain.bid({ ...outflow, kind: 'filler', units: 0n })
}

/** Whether it is the transfer that would fail, not fees or funds, and others wait for it. */
function goesOn(
  { family }: Chain,
  { code, wouldArrive }: DraftRejection,
  attempts: readonly Attempt[],
): boolean {
  switch (family) {
    case 'evm':
      // What the network refuses is given up: a contract may burn far more than a filler costs.
      return (
        (code === 'destination' || code === 'network') && attempts.some(({ answer }) => answer === 'accepted')
      )
    case 'xrp':
    case 'stellar':
      // Every attempt is refused after a minute, when its time is over, and one that fails costs as much as a filler.
      // What would arrive for nobody is not sent: an exchange, say, cannot tell whose a payment is that lacks its memo.
      return code === 'destination' && wouldArrive !== true
    default:
      // Bids do not depend on who is paid, or nobody waits.
      return false
  }
}

/**
 * What takes coins back has no change: its next attempt is drafted anew out of the same coins, and brings back less. What a sweep
 * moves is what its address holds, and a reorganisation may have taken of that since.
 */
async function raise(
  world: SigningWorld,
  chain: Chain,
  outflow: ClaimedOutflow,
  latest: Attempt,
  bid: FeeBid,
  held: bigint | undefined,
): Promise<Outcome<Intent, DraftRejection>> {
  if (outflow.fills !== null) return chain.draft(outflow, bid, await readFillerFunds(world.db, outflow))
  return chain.raise(latest.intent, bid, held)
}

/** The native coin that is deep at the address that a sweep leaves, in ledger units, which on EVM chains are wei. */
async function heldForSweep(
  { db }: SigningWorld,
  chain: Chain,
  { from }: ClaimedOutflow,
): Promise<bigint | undefined> {
  return from === undefined || excludesByTime(chain) ? undefined : heldDeep(db, chain, from.address)
}

/**
 * Nobody waits for a sweep of coin: it pays no more than one that is planned may. Where a reorganisation took a part of its money, the
 * next attempt moves what is left at any price.
 */
function isTooDear(
  { policy }: SigningWorld,
  { units }: ClaimedOutflow,
  bid: FeeBid,
  held: bigint | undefined,
): boolean {
  return held !== undefined && held >= units && isTooDearToMove(held, bid, policy.sweepCostMultiple)
}
