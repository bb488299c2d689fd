import type { Chain } from '../../chains/chain.ts'
import { type Attempt, attemptsOf } from '../../db/attempts.ts'
import {
  type ClaimedOutflow,
  claimOutflows,
  findChainsWithDue,
  type LeavingFrom,
  postponeOutflow,
  renewClaim,
} from '../../db/claim_outflows.ts'
import { leavesInTurn } from '../../domain/catalog/networks.ts'
import { atOnce } from '../at_once.ts'
import { isOutflowStopped } from '../books/stopped_outflows.ts'
import type { SigningWorld } from '../world.ts'
import { CLAIM_MS } from './claim.ts'
import { draftOutflow } from './draft.ts'
import { followOutflow, whyWaitBeforeAttempt } from './follow.ts'
import { giveUpWaiting } from './give_up.ts'
import type { Progress } from './progress.ts'
import { followRejected } from './rejected.ts'
import { sendAttempt, writeDownSigned } from './send.ts'
import { checkFiller } from './take_back.ts'
import { untilItsTurn, waitsItsTurn } from './turn.ts'
import { tellUnwritten } from './unwritten.ts'
import { isLookOld } from './wait_for_source.ts'

const OUTFLOWS_A_STEP = 20
const WHILE_HELD_MS = 2_000
const AFTER_ERROR_MS = 1_000
/** A signer that hangs is asked for half a minute each time. */
const AFTER_KEPT_MS = 30_000

/** Rings whoever pays on a chain on which something of the reserve is due: one question for all chains, and not one for each. */
export async function ringDue({ db, clock, chains, alarms }: SigningWorld): Promise<void> {
  const time = { nowMs: clock.nowMs(), wallMs: clock.wallMs(), claimMs: CLAIM_MS }
  for (const chain of await findChainsWithDue(db, [...chains.keys()], time)) alarms.ring(`payouts ${chain}`)
}

/** Moves the due outflows of one chain a step further. True: there may be more. */
export async function workPayouts(
  world: SigningWorld,
  chain: Chain,
  from: LeavingFrom = 'reserve',
): Promise<boolean> {
  const time = { nowMs: world.clock.nowMs(), wallMs: world.clock.wallMs(), claimMs: CLAIM_MS }
  const claimed = await claimOutflows(world.db, chain.id, from, time, OUTFLOWS_A_STEP)
  if (claimed.length === 0) return false
  const isStopped = stopReader(world, chain)
  await atOnce(world.policy.atOnce, claimed, async (outflow) => {
    const wallMs = world.clock.wallMs()
    // The ones before it took their time, or the clock was set back: it may be in other hands by now.
    const isFresh = Math.abs(wallMs - time.wallMs) < CLAIM_MS / 2
    if (!isFresh && !(await renewClaim(world.db, outflow, wallMs + CLAIM_MS))) return
    const stepped = await stepOn(world, chain, outflow, isStopped)
    await letGo(world, chain, stepped.outflow, stepped.progress)
  })
  return claimed.length === OUTFLOWS_A_STEP
}

/**
 * Whether outflows of the chain are stopped, read anew when that was not a moment ago: a signer or a node may take half a minute for the
 * outflow before, for the draft, or for the look at the deposit.
 */
function stopReader(world: SigningWorld, chain: Chain): () => Promise<boolean> {
  let last: { readonly readWallMs: number; readonly isStopped: Promise<boolean> } | null = null
  return () => {
    if (last === null || isLookOld(world, last.readWallMs))
      last = { readWallMs: world.clock.wallMs(), isStopped: isOutflowStopped(world.db, chain.id) }
    return last.isStopped
  }
}

/** Drafted and due at once is sent at once. Answers the outflow as it is then. */
async function stepOn(
  world: SigningWorld,
  chain: Chain,
  outflow: ClaimedOutflow,
  isStopped: () => Promise<boolean>,
): Promise<{ readonly progress: Progress; readonly outflow: ClaimedOutflow }> {
  const lookedWallMs = world.clock.wallMs()
  const stepNow = (claimed: ClaimedOutflow, isFreshDraft: boolean) =>
    safely(() => step(world, chain, claimed, { isStopped, isDraft: isFreshDraft }))
  const first = await stepNow(outflow, false)
  if (first.kind !== 'again') return { progress: first, outflow }
  const { inMs, isDraft = false } = first
  const now = isDraft ? { ...outflow, trouble: null, troubleSinceMs: null } : outflow
  if (inMs > 0) return { progress: first, outflow: now }
  const isFresh = isDraft && !isLookOld(world, lookedWallMs)
  return { progress: await stepNow(now, isFresh), outflow: now }
}

async function safely(act: () => Promise<Progress>): Promise<Progress> {
  try {
    return await act()
  } catch (error) {
    // Nothing is lost: what was written down stays, and the next step goes on from it.
    return { kind: 'trouble', message: String(error), inMs: AFTER_ERROR_MS }
  }
}

/**
 * planned → signed → broadcast → confirmed; each step writes down what it is about to do before it does it. `isDraft`: it was
 * drafted a moment ago, after a look at where its money came from.
 */
async function step(
  world: SigningWorld,
  chain: Chain,
  outflow: ClaimedOutflow,
  { isStopped, isDraft }: { readonly isStopped: () => Promise<boolean>; readonly isDraft: boolean },
): Promise<Progress> {
  const filler = await checkFiller(world, outflow)
  if (filler === 'over') return { kind: 'done' }
  if (filler === 'waits') return { kind: 'again', inMs: WHILE_HELD_MS }
  // Also while outflows are stopped: the books are to know what others may have sent.
  const rejected = await followRejected(world, chain, outflow)
  if (rejected !== null) return rejected
  if (leavesInTurn[chain.family] && (await waitsItsTurn(world, chain, outflow))) return untilItsTurn
  const attempts = await attemptsOf(world.db, outflow.payoutId)
  if (await isStopped()) return stepWhileStopped(world, chain, outflow, attempts)
  const latest = attempts.at(-1)
  if (latest === undefined) return draftOutflow(world, chain, outflow)
  // Where the answer was `unknown` the chain may say it: a node may be in such trouble for long after it is in a block.
  if (latest.answer !== null) return followOutflow(world, chain, outflow, attempts)
  // Between its draft and its signature may lie hours without a signer, and before it is sent without us.
  const waits = isDraft ? null : await whyWaitBeforeAttempt(world, chain, outflow, attempts)
  if (waits !== null) {
    const written = await safely(async () => {
      await writeDownSigned(world, outflow, latest)
      return waits
    })
    // Whether the signer is there or not, one before it may be mined.
    const hasBytes = attempts.some(({ tx }) => tx !== null)
    if (!hasBytes) return written
    return followOutflow(world, chain, outflow, await attemptsOf(world.db, outflow.payoutId))
  }
  // The nodes that were asked on the way to here, that of the deposit among them, may have taken many seconds.
  if (await isStopped()) return stepWhileStopped(world, chain, outflow, attempts)
  if (attempts.length === 1) return sendAttempt(world, chain, outflow, latest)
  return sendRaised(world, chain, outflow, latest, attempts)
}

/**
 * The ones before it are with the network: whatever keeps this one from being signed or sent, one of those may be mined, or
 * have to be sent again.
 */
async function sendRaised(
  world: SigningWorld,
  chain: Chain,
  outflow: ClaimedOutflow,
  latest: Attempt,
  attempts: readonly Attempt[],
): Promise<Progress> {
  const sent = await safely(() => sendAttempt(world, chain, outflow, latest))
  if (sent.kind !== 'trouble') return sent
  const followed = await followOutflow(world, chain, outflow, attempts)
  // What a person can end is told before what keeps another attempt from being sent, which changes nothing any more.
  const isFound = followed.kind === 'done' || (followed.kind === 'trouble' && followed.unjudged !== undefined)
  return isFound ? followed : sent
}

function wasSent({ state }: ClaimedOutflow): boolean {
  return state === 'broadcast' || state === 'orphaned'
}

/** Nothing new is signed or sent; what the network has already is followed to its end, so that the books stay true. */
async function stepWhileStopped(
  world: SigningWorld,
  chain: Chain,
  outflow: ClaimedOutflow,
  attempts: readonly Attempt[],
): Promise<Progress> {
  if (wasSent(outflow) || attempts.some(({ answer }) => answer === 'accepted'))
    return followOutflow(world, chain, outflow, attempts)
  const message = `outflows of ${chain.id} are stopped: ledger and chain differ`
  return { kind: 'trouble', message, inMs: WHILE_HELD_MS }
}

async function letGo(
  world: SigningWorld,
  chain: Chain,
  outflow: ClaimedOutflow,
  progress: Progress,
): Promise<void> {
  if (progress.kind === 'done') return
  const nowMs = world.clock.nowMs()
  if (progress.kind === 'again') {
    const due = { dueAtMs: nowMs + progress.inMs, atHeight: progress.atHeight ?? null }
    return postponeOutflow(world.db, outflow, due, null)
  }
  if (outflow.troubleSinceMs === null) {
    world.log.warn({ payout: outflow.payoutId, trouble: progress.message }, 'an outflow has to wait')
  }
  const { message, inMs } = await tryToGiveUp(world, chain, outflow, progress)
  const { unjudged = null, isPayeeRefused = false } = progress
  const due = { dueAtMs: nowMs + inMs, atHeight: null }
  await postponeOutflow(world.db, outflow, due, { message, nowMs, unjudged, isPayeeRefused })
}

type Trouble = Progress & { readonly kind: 'trouble' }

/**
 * A node may be unable to say whether it is over: that is its own trouble, and holds up none of those that were claimed with it.
 * What only the signer knows of is told of once, and stands in its way until somebody has looked.
 */
async function tryToGiveUp(
  world: SigningWorld,
  chain: Chain,
  outflow: ClaimedOutflow,
  trouble: Trouble,
): Promise<Trouble> {
  try {
    const kept = await giveUpWaiting(world, chain, outflow, trouble.refusal)
    if (kept === null) return trouble
    await tellUnwritten(world, outflow, kept)
    const { why } = kept
    const message = trouble.message.startsWith(why) ? trouble.message : `${why}; ${trouble.message}`
    return { ...trouble, message, inMs: Math.max(trouble.inMs, AFTER_KEPT_MS) }
  } catch (error) {
    return { kind: 'trouble', message: String(error), inMs: Math.max(trouble.inMs, AFTER_ERROR_MS) }
  }
}
