import type { Chain, TxStatus } from '../../chains/chain.ts'
import type { Attempt } from '../../db/attempts.ts'
import type { ClaimedOutflow } from '../../db/claim_outflows.ts'
import { endOutflow } from '../../db/outflows.ts'
import { assert } from '../../domain/assert.ts'
import { paysSomebody, type SignedTx } from '../../domain/payouts/intent.ts'
import { apply } from '../apply.ts'
import { endSweep } from '../sweeps/end.ts'
import type { SigningWorld } from '../world.ts'
import { claimKeeper } from './claim.ts'
import { endFilledGap } from './fill_gap.ts'
import { statusAsJudged } from './judge.ts'
import { endAgain } from './orphan.ts'
import { endsWithTime } from './over.ts'
import type { Progress } from './progress.ts'
import { raiseWhenSlow } from './raise.ts'
import { noteAccepted, noteMissing, sendAttempt } from './send.ts'
import { settleCoins } from './take_back.ts'
import { whyWaitBeforeSending, whyWaitForSource } from './wait_for_source.ts'
import { whyWaitUntilDeep } from './wait_until_deep.ts'

const LOOK_AGAIN_MS = 700
/** What only a person can end is asked for again, in case that it was the node's mistake, and for that person's word. */
const FOR_A_PERSON_MS = 30_000

type Sent = { readonly attempt: Attempt; readonly tx: SignedTx; readonly status: TxStatus }
type Mined = Sent & { readonly status: TxStatus & { where: 'block' } }

/** Looks for every attempt that was ever sent: any one of them may be the one that is mined. After a day of raised fees they are hundreds. */
export async function followOutflow(
  world: SigningWorld,
  chain: Chain,
  outflow: ClaimedOutflow,
  attempts: readonly Attempt[],
): Promise<Progress> {
  const sent = await lookUpSent(world, chain, outflow, attempts)
  const mined = sent.find((one): one is Mined => one.status.where === 'block')
  const found = mined ?? sent.find(({ status }) => status.where === 'mempool')
  if (found === undefined && sent.length > 0) {
    const waits = await whyWaitBeforeSending(world, chain, outflow, attempts)
    if (waits !== null) return waits
    const forgotten = sentBefore(sent)
    if (forgotten.length > 0) return sendAgain(world, chain, outflow, attempts, forgotten)
  }
  if (found !== undefined && found.attempt.answer !== 'accepted')
    await noteAccepted(world, outflow, found.attempt.attempt, found.tx)
  if (mined !== undefined) return followMined(world, chain, outflow, mined)
  const raised = await raiseWhenSlow(world, chain, outflow, attempts)
  return raised ?? { kind: 'again', inMs: LOOK_AGAIN_MS, atHeight: 'next' }
}

/**
 * Why the latest attempt, which was drafted before now, is neither signed nor sent now, or null. What a node took of those before it may be
 * lost since: where nobody has any of them, the deposit is looked at as before the first one.
 */
export async function whyWaitBeforeAttempt(
  world: SigningWorld,
  chain: Chain,
  outflow: ClaimedOutflow,
  attempts: readonly Attempt[],
): Promise<Progress | null> {
  const waits = await whyWaitBeforeSending(world, chain, outflow, attempts)
  const mayBeOut = attempts.some(({ answer }) => answer === 'accepted')
  if (waits !== null || !mayBeOut || endsWithTime(chain)) return waits
  if (outflow.state === 'orphaned' || !paysSomebody(outflow)) return null
  const sent = await lookUpSent(world, chain, outflow, attempts)
  if (sent.some(({ status }) => status.where !== 'absent')) return null
  return whyWaitForDeposit(world, outflow, sentBefore(sent))
}

/**
 * Those that may be sent again, the outflows of the chain being stopped or not. What was signed and not sent since, because the signer took
 * its time or the process died, is sent for the first time by `sendAttempt`, and where it was sent after all, a lookup tells.
 */
function sentBefore(sent: readonly Sent[]): readonly Attempt[] {
  return sent.map(({ attempt }) => attempt).filter(({ answer }) => answer !== null)
}

async function lookUpSent(
  world: SigningWorld,
  chain: Chain,
  outflow: ClaimedOutflow,
  attempts: readonly Attempt[],
): Promise<readonly Sent[]> {
  const sent: Sent[] = []
  const keep = claimKeeper(world, outflow)
  for (const attempt of attempts) {
    const { tx, intent } = attempt
    if (tx === null) continue
    await keep()
    sent.push({ attempt, tx, status: await chain.lookup(tx.txHash, intent) })
  }
  return sent
}

/**
 * Nobody has any of it: while its deposit is gone it counts as not taken, which is noted here, so that it is given up like what is refused and
 * others do not wait behind it for good. Null: the deposit is there.
 */
async function whyWaitForDeposit(
  world: SigningWorld,
  outflow: ClaimedOutflow,
  forgotten: readonly Attempt[],
): Promise<Progress | null> {
  const waits = await whyWaitForSource(world, outflow, claimKeeper(world, outflow))
  if (waits !== null) await noteMissing(world, outflow, forgotten, 'unknown')
  return waits
}

/**
 * The network forgot it, or never had it: the same bytes again. What a node said before that it takes, says so again and has not, gets a
 * higher fee; what it takes for the first time is looked for once before. While its deposit is gone it is not raised.
 */
async function sendAgain(
  world: SigningWorld,
  chain: Chain,
  outflow: ClaimedOutflow,
  attempts: readonly Attempt[],
  forgotten: readonly Attempt[],
): Promise<Progress> {
  const latest = forgotten.at(-1)
  assert(latest !== undefined, 'something was sent before')
  const again = await sendAttempt(world, chain, outflow, latest, forgotten)
  const isTakenAgain = again.kind === 'again' && latest.answer === 'accepted'
  if (!isTakenAgain || endsWithTime(chain)) return again
  const look = async () =>
    outflow.state === 'orphaned' ? null : whyWaitForDeposit(world, outflow, forgotten)
  return (await raiseWhenSlow(world, chain, outflow, attempts, look)) ?? again
}

async function followMined(
  world: SigningWorld,
  chain: Chain,
  outflow: ClaimedOutflow,
  { attempt, status: told, tx }: Mined,
): Promise<Progress> {
  const waits = await whyWaitUntilDeep(world, chain, told.block)
  if (waits !== null) return waits
  const { payoutId, orderId } = outflow
  // Of a sweep another move is only what was lost on the way, which the comparison of books and chain finds.
  const status = paysSomebody(outflow) ? await statusAsJudged(world.db, payoutId, tx.txHash, told) : told
  if (status === null) return untilJudged(tx.txHash, told.movedOtherwise)
  if (outflow.state === 'orphaned') {
    await endAgain(world, outflow, { txHash: tx.txHash, intent: attempt.intent }, status)
    return { kind: 'done' }
  }
  const end = status.succeeded ? ('confirmed' as const) : ('failed' as const)
  if (outflow.kind === 'filler') {
    await endFilledGap(world, outflow, attempt.intent, status)
    return { kind: 'done' }
  }
  if (outflow.kind === 'sweep') {
    await endSweep(world, outflow, status)
    return { kind: 'done' }
  }
  await apply(
    world,
    orderId,
    `${payoutId}:${end}`,
    status.succeeded
      ? { kind: 'PayoutConfirmed', payoutId, txHash: tx.txHash, cost: status.cost }
      : failureOf(outflow, status),
    async (sql) => {
      const isFirst = await endOutflow(sql, payoutId, ['signed', 'broadcast'], end, status)
      if (isFirst) await settleCoins(sql, outflow, attempt.intent)
    },
  )
  return { kind: 'done' }
}

/** Neither paid nor unpaid. */
function untilJudged(txHash: string, moved = ''): Progress {
  const message = `${txHash} succeeded, but ${moved}`
  return { kind: 'trouble', message, inMs: FOR_A_PERSON_MS, unjudged: { txHash, moved } }
}

/** Nobody is asked for another address, or for what it cost, because of what was too little here. */
function failureOf({ payoutId }: ClaimedOutflow, { fault, cost }: Mined['status']) {
  const problem = fault === 'ours' ? 'NETWORK_PROBLEM' : 'DESTINATION_PROBLEM'
  return { kind: 'PayoutFailed', payoutId, problem, cost, wouldPayNow: fault === 'nobodys' } as const
}
