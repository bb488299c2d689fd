import type { Attempt, ClaimedOutflow } from '../../db/outflows.ts'
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
  { signer }: SigningWorld,
  { kind, payoutId }: ClaimedOutflow,
  attempts: readonly Attempt[],
): Promise<Unwritten | null> {
  if (kind !== 'payout' && kind !== 'refund') return null
  const written = attempts.findLast(({ tx }) => tx !== null)?.attempt ?? 0
  const drafted = attempts.at(-1)?.attempt ?? 0
  try {
    const signed = await signer.lastSigned(payoutId)
    if (signed <= written) return null
    const why = `the signer has signed attempt ${signed} of it, whose bytes are not here: it is not given up`
    return { why, needsSomebody: signed > drafted }
  } catch (error) {
    // One of an earlier release does not know the question, which says nothing of the outflow.
    const reason = String(error).slice(0, 200)
    const why = `the signer does not say whether it has signed it (${reason}): it is not given up`
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
