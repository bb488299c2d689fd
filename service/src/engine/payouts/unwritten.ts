import { type Attempt, type ClaimedOutflow, findNeverDrafted } from '../../db/outflows.ts'
import { readPayoutId } from '../../domain/orders/identifiers.ts'
import type { PayoutId } from '../../domain/payouts/intent.ts'
import type { SigningWorld } from '../world.ts'

/** Why an outflow is not given up; `needsSomebody`: it does not end by itself. */
export type Unwritten = { readonly why: string; readonly needsSomebody: boolean }

/**
 * Why an outflow must not be given up, or null: the signer has signed an attempt whose bytes are not here, so that it may
 * have paid, or does not say that it has not. An attempt that was drafted here was cut off before its bytes were stored, and they
 * are asked for again; of one that was not, this database knows nothing (it is older than the signer's, most likely). What goes from
 * us to us pays nobody twice. Asked before a transaction, because nothing inside one waits for a signer.
 */
export async function findUnwritten(
  world: SigningWorld,
  outflow: ClaimedOutflow,
  attempts: readonly Attempt[],
): Promise<Unwritten | null> {
  if (!paysSomebody(outflow)) return null
  const written = attempts.findLast(({ tx }) => tx !== null)?.attempt ?? 0
  const drafted = attempts.at(-1)?.attempt ?? 0
  const unwritten = await ask(world, outflow.payoutId, (signed) => {
    if (signed <= written) return null
    const why = `the signer has signed attempt ${signed} of it, whose bytes are not here: it is not given up`
    return { why, needsSomebody: signed > drafted }
  })
  return unwritten === null && attempts.length === 0 ? findForgotten(world, outflow) : unwritten
}

/**
 * Why nothing must be paid by this outflow, or null: another one of its order ended without ever having been drafted here, and the
 * signer has signed an attempt of it, or does not say that it has not. This database is older than the signer's, most likely, and
 * the customer has that one's money.
 */
export async function findForgotten(world: SigningWorld, outflow: ClaimedOutflow): Promise<Unwritten | null> {
  if (!paysSomebody(outflow) || readPayoutId(outflow.payoutId).number === 1) return null
  for (const payoutId of await findNeverDrafted(world.db, outflow.orderId)) {
    const forgotten = await ask(world, payoutId, (signed) => {
      const why = `the signer has signed attempt ${signed} of ${payoutId}, which was never drafted here: nothing else is paid`
      return signed === 0 ? null : { why, needsSomebody: true }
    })
    if (forgotten !== null) return forgotten
  }
  return null
}

function paysSomebody({ kind }: ClaimedOutflow): boolean {
  return kind === 'payout' || kind === 'refund'
}

async function ask(
  { signer }: SigningWorld,
  payoutId: PayoutId,
  judge: (signed: number) => Unwritten | null,
): Promise<Unwritten | null> {
  try {
    return judge(await signer.lastSigned(payoutId))
  } catch (error) {
    // One of an earlier release does not know the question, which says nothing of the outflow.
    const reason = String(error).slice(0, 200)
    const why = `the signer does not say whether it has signed ${payoutId} (${reason}): it is not given up`
    return { why, needsSomebody: true }
  }
}

/** Once: from then on it stands in the way of the outflow (`trouble`) until somebody has looked. */
export function tellUnwritten(
  { log }: SigningWorld,
  { payoutId, trouble }: ClaimedOutflow,
  { why, needsSomebody }: Unwritten,
): void {
  if (!needsSomebody || trouble?.startsWith(why)) return
  log.error({ payout: payoutId, trouble: why }, 'an outflow is not given up')
}
