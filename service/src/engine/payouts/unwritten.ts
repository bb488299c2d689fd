import type { Attempt } from '../../db/attempts.ts'
import type { ClaimedOutflow } from '../../db/claim_outflows.ts'
import { findNeverDrafted, findOutflow, isLive } from '../../db/outflows.ts'
import { type OrderId, payoutIdOf, readPayoutId } from '../../domain/orders/identifiers.ts'
import { type PayoutId, paysSomebody } from '../../domain/payouts/intent.ts'
import type { SigningWorld } from '../world.ts'

/** Why an outflow is neither drafted nor given up; `needsSomebody`: it does not end by itself. */
export type Unwritten = { readonly why: string; readonly needsSomebody: boolean }

/**
 * Why an outflow must not be given up, or null: the signer has signed an attempt whose bytes are not here, so that it may
 * have paid, or does not say that it has not. An attempt that was drafted here was cut off before its bytes were stored, and they
 * are asked for again. What goes from us to us pays nobody twice. Asked before a transaction, because nothing inside one waits
 * for a signer.
 */
export async function findUnwritten(
  world: SigningWorld,
  outflow: ClaimedOutflow,
  attempts: readonly Attempt[],
): Promise<Unwritten | null> {
  const drafted = attempts.at(-1)
  if (drafted === undefined) {
    const forgotten = await findForgotten(world, outflow)
    return forgotten === null || forgotten.needsSomebody ? forgotten : notGivenUp(forgotten)
  }
  if (!paysSomebody(outflow)) return null
  const written = attempts.findLast(({ tx }) => tx !== null)?.attempt ?? 0
  const signed = await lastSigned(world, outflow.payoutId)
  if (typeof signed !== 'number') return notGivenUp(signed)
  if (signed <= written) return null
  const why = `the signer has signed attempt ${signed} of it, whose bytes are not here: it is not given up`
  return { why, needsSomebody: signed > drafted.attempt }
}

/**
 * Why an outflow that was not drafted yet must neither be drafted nor given up, or null. The signer has signed an attempt of it, of a later
 * outflow of its order (a refund, say), or of an earlier one that ended here without a draft; or it does not say that it has not. Most
 * likely this database is older than the signer's, and the customer has the money of what was signed. A draft would be refused and keep all
 * others of its account waiting; so would a sweep's, whose address lets no other leave. Of most orders nothing was signed before.
 */
export async function findForgotten(world: SigningWorld, outflow: ClaimedOutflow): Promise<Unwritten | null> {
  // What fills a gap has no other name, and takes no nonce and no coins but those of the gap. The signer answers what it has signed of it.
  if (outflow.kind === 'filler') return null
  const { orderId, number } = readPayoutId(outflow.payoutId)
  const last = await ask(orderId, () => world.signer.lastOutflow(orderId))
  if (typeof last !== 'number') return last
  if (last === 0) return null
  if (last > number) {
    const later = payoutIdOf(orderId, last)
    const why = `the signer has signed ${later}, which comes after ${outflow.payoutId}: nothing is paid`
    return { why, needsSomebody: true }
  }
  const ended = paysSomebody(outflow) ? await findNeverDrafted(world.db, orderId) : []
  for (const payoutId of [...ended, outflow.payoutId]) {
    const signed = await lastSigned(world, payoutId)
    if (typeof signed !== 'number') return signed
    const why = `the signer has signed attempt ${signed} of ${payoutId}, which was never drafted here: nothing is paid`
    if (signed > 0) return { why, needsSomebody: true }
  }
  return null
}

function lastSigned({ signer }: SigningWorld, payoutId: PayoutId): Promise<number | Unwritten> {
  return ask(payoutId, () => signer.lastSigned(payoutId))
}

/** It may be away for a moment only. */
async function ask(what: OrderId | PayoutId, question: () => Promise<number>): Promise<number | Unwritten> {
  try {
    return await question()
  } catch (error) {
    const reason = String(error).slice(0, 200)
    return { why: `the signer does not say whether it has signed ${what} (${reason})`, needsSomebody: false }
  }
}

/** It has not said so for long. One of another release does not say it, which says nothing of the outflow. */
function notGivenUp({ why }: Unwritten): Unwritten {
  return { why: `${why}: it is not given up`, needsSomebody: true }
}

/**
 * Once: from then on it stands in the way of the outflow (`trouble`) until somebody has looked. Whoever has lost the outflow says
 * nothing: the worker that took it over has had it signed meanwhile, perhaps, and written down here.
 */
export async function tellUnwritten(
  { db, log }: SigningWorld,
  { payoutId, trouble, fence }: ClaimedOutflow,
  { why, needsSomebody }: Unwritten,
): Promise<void> {
  if (!needsSomebody || trouble?.startsWith(why)) return
  const now = await findOutflow(db, payoutId)
  if (!isLive(now) || now.fence !== fence) return
  log.error({ payout: payoutId, trouble: why }, 'an outflow waits for an operator')
}
