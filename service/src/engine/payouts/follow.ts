import type { Chain, DraftRejection, FeeBid, TxStatus } from '../../chains/chain.ts'
import {
  type Attempt,
  attemptsOf,
  type ClaimedOutflow,
  insertAttempt,
  lockClaimed,
  setOutflowState,
  storeAnswer,
} from '../../db/outflows.ts'
import { nativeAsset } from '../../domain/catalog/assets.ts'
import { chainFacts } from '../../domain/catalog/networks.ts'
import type { Outcome } from '../../domain/outcome.ts'
import type { Intent, SignedTx } from '../../domain/payouts/intent.ts'
import { apply } from '../apply.ts'
import { endSweep } from '../sweeps/end.ts'
import type { SigningWorld } from '../world.ts'
import { endFilledGap } from './fill_gap.ts'
import type { Progress } from './progress.ts'
import { readFillerFunds } from './take_back.ts'

const LOOK_AGAIN_MS = 700
const AFTER_FEE_CAP_MS = 10_000

type Sent = { readonly attempt: Attempt; readonly tx: SignedTx; readonly status: TxStatus }
type Mined = Sent & { readonly status: TxStatus & { where: 'block' } }

/** Looks for every attempt that was ever sent: any one of them may be the one that is mined. */
export async function followPayout(
  world: SigningWorld,
  chain: Chain,
  outflow: ClaimedOutflow,
  attempts: readonly Attempt[],
): Promise<Progress> {
  const sent: Sent[] = []
  for (const attempt of attempts) {
    if (attempt.tx !== null)
      sent.push({ attempt, tx: attempt.tx, status: await chain.lookup(attempt.tx.txHash) })
  }
  const mined = sent.find((one): one is Mined => one.status.where === 'block')
  if (mined !== undefined) return followMined(world, chain, outflow, mined)
  const latest = sent.at(-1)
  if (sent.some(({ status }) => status.where === 'mempool'))
    return raiseWhenSlow(world, chain, outflow, attempts)
  // The network forgot it: the same bytes again.
  if (latest !== undefined) {
    const answer = await chain.broadcast(latest.tx)
    if (answer !== 'accepted') {
      // Thrown out because it pays too little: only a dearer one gets in again, and it excludes this one.
      if (answer === 'refused' && isTooSlow(world, chain, outflow, latest.attempt))
        return raiseWhenSlow(world, chain, outflow, attempts)
      return {
        kind: 'trouble',
        message: `the network forgot ${latest.tx.txHash} (${answer})`,
        inMs: AFTER_FEE_CAP_MS,
      }
    }
    await storeAnswer(world.db, outflow.payoutId, latest.attempt.attempt, answer, world.clock.nowMs())
  }
  return { kind: 'again', inMs: LOOK_AGAIN_MS }
}

async function followMined(
  world: SigningWorld,
  chain: Chain,
  outflow: ClaimedOutflow,
  { attempt, status, tx }: Mined,
): Promise<Progress> {
  const head = await chain.head()
  const depth = head.height - status.block.height + 1
  if (depth < chainFacts[chain.id].confirmations) return { kind: 'again', inMs: LOOK_AGAIN_MS }
  const { payoutId, orderId } = outflow
  const end = status.succeeded ? ('confirmed' as const) : ('failed' as const)
  if (outflow.kind === 'filler') {
    await endFilledGap(world, outflow, attempt.intent, status.cost)
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
      : { kind: 'PayoutFailed', payoutId, problem: 'DESTINATION_PROBLEM', cost: status.cost },
    async (sql) => {
      await setOutflowState(sql, payoutId, ['signed', 'broadcast'], end)
    },
  )
  return { kind: 'done' }
}

/** A sweep of a token never is: its gas was brought in the right amount, nobody waits for it, and fees fall again. */
function isTooSlow(
  { clock, policy }: SigningWorld,
  chain: Chain,
  outflow: ClaimedOutflow,
  { broadcastAtMs }: Attempt,
): boolean {
  if (outflow.from !== undefined && outflow.asset !== nativeAsset(chain.id).id) return false
  const nowMs = clock.nowMs()
  return nowMs - (broadcastAtMs ?? nowMs) >= policy.bumpAfterMs[chain.id]
}

/** Unmined for too long: a transaction that excludes the earlier one on chain and pays more. */
async function raiseWhenSlow(
  world: SigningWorld,
  chain: Chain,
  outflow: ClaimedOutflow,
  attempts: readonly Attempt[],
): Promise<Progress> {
  const latest = attempts.at(-1)
  const nowMs = world.clock.nowMs()
  if (latest === undefined || !isTooSlow(world, chain, outflow, latest))
    return { kind: 'again', inMs: LOOK_AGAIN_MS }
  const bid = await chain.bid(outflow)
  const raised = bid.ok ? await raise(world, chain, outflow, latest, bid.value) : bid
  if (!raised.ok) return { kind: 'trouble', message: raised.rejection.message, inMs: AFTER_FEE_CAP_MS }
  await world.db.transaction(async (tx) => {
    if ((await lockClaimed(tx, outflow)) === null) return
    const known = await attemptsOf(tx, outflow.payoutId)
    if (known.length === attempts.length) await insertAttempt(tx, raised.value, nowMs)
  })
  world.log.info(
    { payout: outflow.payoutId, attempt: raised.value.attempt },
    'a slow payout gets a higher fee',
  )
  return { kind: 'again', inMs: 0 }
}

/** What takes coins back has no change: its next attempt is drafted anew out of the same coins, and brings back less. */
async function raise(
  world: SigningWorld,
  chain: Chain,
  outflow: ClaimedOutflow,
  latest: Attempt,
  bid: FeeBid,
): Promise<Outcome<Intent, DraftRejection>> {
  if (outflow.fills === null) return chain.raise(latest.intent, bid)
  return chain.draft(outflow, bid, await readFillerFunds(world.db, outflow))
}
