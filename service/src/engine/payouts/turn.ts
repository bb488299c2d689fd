import type { Chain } from '../../chains/chain.ts'
import type { ClaimedOutflow } from '../../db/claim_outflows.ts'
import type { Sql } from '../../db/database.ts'
import { findNextToLeave } from '../../db/leaving_outflows.ts'
import { leavesInTurn } from '../../domain/catalog/networks.ts'
import { reserveAddress } from '../reserves.ts'
import type { SigningWorld } from '../world.ts'
import type { Progress } from './progress.ts'

const LOOK_AGAIN_MS = 500

/** Nothing of it is wrong, however long it takes: what is in trouble is the one before it, if any is. */
export const untilItsTurn: Progress = { kind: 'again', inMs: LOOK_AGAIN_MS, atHeight: 'next' }

/**
 * Whether a lower nonce of the reserve has to be in a block first, so that no block takes this one yet, nor a filler with its nonce. Nobody
 * waits behind the nonce of a deposit address.
 */
export async function isBeforeItsTurn(
  world: SigningWorld,
  chain: Chain,
  outflow: ClaimedOutflow,
): Promise<boolean> {
  return (await lowerNonce(world, chain, outflow)) !== null
}

/**
 * The same, where that lower nonce is one of ours, which is sent, or given up and filled. Behind one that nobody has here this would wait for
 * ever, and has to be seen.
 */
export async function waitsItsTurn(
  world: SigningWorld,
  chain: Chain,
  outflow: ClaimedOutflow,
): Promise<boolean> {
  const lower = await lowerNonce(world, chain, outflow)
  if (lower === null || outflow.nonce === null) return false
  const next = await findNextToLeave(world.db, chain.id, lower)
  return next !== null && next.nonce < outflow.nonce
}

/** The one that is to be mined next, where it is lower than this one's. */
async function lowerNonce(
  { db }: SigningWorld,
  chain: Chain,
  { from, nonce }: ClaimedOutflow,
): Promise<number | null> {
  if (from !== undefined || nonce === null) return null
  const minedNonce = await chain.minedNonce(await reserveAddress(db, chain))
  return minedNonce < nonce ? minedNonce : null
}

/**
 * Whether one that has no nonce yet would only wait behind another, in whose way nothing is: then it is not worth a look. Where something is,
 * it may be in the way of all of them (fees above the cap, say), and each has to be told so, because it is given up after a while. So has
 * what is in trouble already.
 */
export async function isAnothersTurn(
  { db }: SigningWorld,
  chain: Chain,
  { nonce, troubleSinceMs }: ClaimedOutflow,
): Promise<boolean> {
  if (!leavesInTurn[chain.family] || nonce !== null || troubleSinceMs !== null) return false
  const minedNonce = await chain.minedNonce(await reserveAddress(db, chain))
  const next = await findNextToLeave(db, chain.id, minedNonce)
  return next !== null && next.troubleSinceMs === null
}

/**
 * Whether one that may leave otherwise gives its nonce back until whoever is before it is in a block. To be asked when it has taken it,
 * because that makes all others wait for this one.
 */
export async function isBehindAnother(
  tx: Sql,
  { id, family }: Chain,
  { nonce }: ClaimedOutflow,
  minedNonce: number | null,
): Promise<boolean> {
  if (!leavesInTurn[family] || nonce !== null || minedNonce === null) return false
  return (await findNextToLeave(tx, id, minedNonce)) !== null
}
