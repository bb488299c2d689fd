import type { Chain } from '../../chains/chain.ts'
import type { Attempt } from '../../db/attempts.ts'

/** Whether attempts of this chain have neither a nonce nor a coin in common, and only time excludes one from another. */
export function excludesByTime(chain: Chain): chain is Chain & Required<Pick<Chain, 'isOver'>> {
  return chain.isOver !== undefined
}

/**
 * Whether none of these attempts is in a block or ever will be. True stays true, whatever happens meanwhile: a further
 * attempt may be drafted, or the outflow given up.
 */
export async function areOver(chain: Chain, attempts: readonly Attempt[]): Promise<boolean> {
  if (!excludesByTime(chain)) return false
  for (const { intent, tx } of attempts) {
    if (!(await chain.isOver(intent, tx?.txHash ?? null))) return false
  }
  return true
}
