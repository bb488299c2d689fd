import type { Attempt, ClaimedOutflow } from '../../db/outflows.ts'
import type { SigningWorld } from '../world.ts'

/**
 * Why an outflow must not be given up, or null: the signer has signed an attempt whose bytes are not here, so that it may
 * have paid (this database is older than the signer's, most likely), or does not say that it has not. What goes from us
 * to us pays nobody twice. Asked before a transaction, because nothing inside one waits for a signer.
 */
export async function findUnwritten(
  { signer }: SigningWorld,
  { kind, payoutId }: ClaimedOutflow,
  attempts: readonly Attempt[],
): Promise<string | null> {
  if (kind !== 'payout' && kind !== 'refund') return null
  const written = attempts.findLast(({ tx }) => tx !== null)?.attempt ?? 0
  try {
    const signed = await signer.lastSigned(payoutId)
    if (signed <= written) return null
    return `the signer has signed attempt ${signed} of it, whose bytes are not here: it is not given up`
  } catch (error) {
    // One of an earlier release does not know the question, which says nothing of the outflow.
    const why = String(error).slice(0, 200)
    return `the signer does not say whether it has signed it (${why}): it is not given up`
  }
}

/** Once: from then on it stands in the way of the outflow (`trouble`) until somebody has looked. */
export function tellUnwritten(
  { log }: SigningWorld,
  { payoutId, trouble }: ClaimedOutflow,
  why: string,
): void {
  if (trouble?.startsWith(why)) return
  log.error({ payout: payoutId, trouble: why }, 'an outflow is not given up')
}
