import type { Chain } from '../../chains/chain.ts'
import type { Attempt } from '../../db/attempts.ts'
import type { ClaimedOutflow } from '../../db/claim_outflows.ts'
import { findLastSent } from '../../db/leaving_outflows.ts'
import { attemptsEndWithTime } from '../../domain/catalog/networks.ts'
import type { Intent, PayoutId } from '../../domain/payouts/intent.ts'
import type { SigningWorld } from '../world.ts'
import { claimKeeper } from './claim.ts'

/**
 * Whether attempts of this chain have neither a nonce nor a coin in common, and only time excludes one from another.
 * The signer goes by `excludesOnChain`; that every chain agrees with it is part of their contract.
 */
export function excludesByTime(chain: Chain): chain is Chain & Required<Pick<Chain, 'isOver'>> {
  return chain.isOver !== undefined
}

/**
 * Whether no node takes an attempt of this chain any more once it is too late. One may still not say whether it takes
 * what it has seen before: where only time excludes attempts, `areOver` is asked then.
 */
export function endsWithTime({ family }: Chain): boolean {
  return attemptsEndWithTime[family]
}

/**
 * Whether none of these attempts is in a block or ever will be. True stays true, whatever happens meanwhile: a further
 * attempt may be drafted, or the outflow given up. The claim is held for as long as the answer takes.
 */
export async function areOver(
  world: SigningWorld,
  chain: Chain,
  outflow: ClaimedOutflow,
  attempts: readonly Attempt[],
): Promise<boolean> {
  if (!excludesByTime(chain)) return false
  const keep = claimKeeper(world, outflow)
  // The latest one first: as long as it is not, nothing has to be read.
  for (const { intent, tx } of attempts.toReversed()) {
    if (!(await chain.isOver(intent, tx?.txHash ?? null, keep))) return false
  }
  return true
}

/**
 * The last attempt of each outflow that is known to be over. A further one, which may be drafted at any moment, is
 * another.
 */
export type Over = ReadonlyMap<PayoutId, number>

/** The last attempt of an outflow that is over, and what was held for it of the reserve. */
export type OverOne = { readonly payoutId: PayoutId; readonly attempt: number; readonly taken: bigint }

/**
 * Of the others that are leaving on this chain, one after the other, as far as they are asked for: with its last
 * attempt all before it are over. What has no bytes yet is left out, because it may be signed and sent while this is
 * asked, and so are what a node cannot tell of and what takes nothing.
 */
export async function* findOver(
  world: SigningWorld,
  chain: Chain,
  outflow: ClaimedOutflow,
  takenBy: (intent: Intent) => bigint,
): AsyncGenerator<OverOne> {
  if (!excludesByTime(chain)) return
  const keep = claimKeeper(world, outflow)
  for (const { intent, txHash } of await findLastSent(world.db, chain.id)) {
    const { payoutId, attempt } = intent
    const taken = takenBy(intent)
    if (taken === 0n || payoutId === outflow.payoutId) continue
    if (await chain.isOver(intent, txHash, keep).catch(() => false)) yield { payoutId, attempt, taken }
    await keep()
  }
}
