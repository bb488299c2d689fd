import type { Chain, FeeBid } from '../../chains/chain.ts'
import type { Sql } from '../../db/database.ts'
import { findLeavingOutflows, leavingIntents } from '../../db/outflows.ts'
import { assert } from '../../domain/assert.ts'
import { nativeAsset } from '../../domain/catalog/assets.ts'
import { amountOf, toChainUnits } from '../../domain/money/amount.ts'
import type { Intent, PayoutId } from '../../domain/payouts/intent.ts'
import { heldDeep } from '../deep_height.ts'

/** The TRX of TRON's reserve, which all that leaves it takes a fee of. */
export type FeePurse = {
  /** In the newest final block: what was drafted and is not final has taken nothing of it yet. */
  readonly heldSun: bigint
  /** Noted before that was asked: what these take may be in it or not. */
  readonly leaving: readonly PayoutId[]
}

/** Null: on other chains what cannot pay its fee is kept out of blocks, and fails in none. */
export async function readFeePurse(sql: Sql, chain: Chain, reserve: string): Promise<FeePurse | null> {
  if (chain.family !== 'tron') return null
  const leaving: PayoutId[] = []
  for (const asset of chain.assets) leaving.push(...(await findLeavingOutflows(sql, asset)))
  const held = amountOf(nativeAsset(chain.id).id, await heldDeep(chain, reserve))
  return { heldSun: toChainUnits(held), leaving }
}

/**
 * Why the reserve might not have the TRX for this transaction, or null. A call of a token gets no more energy than its owner can pay for
 * when it is in a block, and burns all of that when it is too little: so the most that everything drafted before it may take is taken off.
 * Asked where the others that are drafted wait for this one.
 */
export async function findLackOfFee(
  tx: Sql,
  intent: Intent,
  bid: FeeBid,
  { heldSun, leaving }: FeePurse,
): Promise<string | null> {
  assert(bid.family === 'tron', 'only there a fee is limited')
  const before = await leavingIntents(tx, intent.chain, leaving)
  const promisedSun = before.reduce((sum, each) => sum + takenBy(each), 0n)
  const neededSun = takenBy(intent) + bid.otherSun
  if (heldSun - promisedSun >= neededSun) return null
  return `with its fee it takes up to ${neededSun} sun: the reserve holds ${heldSun} that are final, of which ${promisedSun} are promised`
}

/** Without the bandwidth, which is little beside the room that a fee limit has. */
function takenBy(intent: Intent): bigint {
  assert(intent.family === 'tron', 'what leaves an account of TRON is of TRON')
  return intent.feeLimitSun + (intent.token === null ? intent.units : 0n)
}
