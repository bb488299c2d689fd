import { reserveAddresses } from '../../db/addresses.ts'
import { attemptsOf } from '../../db/attempts.ts'
import type { Sql } from '../../db/database.ts'
import { findRejected } from '../../db/lost_outflows.ts'
import { endedUnmined, findOutflow, planOutflow, resumeOutflow } from '../../db/outflows.ts'
import { nativeAsset } from '../../domain/catalog/assets.ts'
import { type ChainId, chainFacts } from '../../domain/catalog/networks.ts'
import type { EvmIntent } from '../../domain/payouts/intent.ts'
import type { InstantMs } from '../../domain/time.ts'

/**
 * Plans what uses up a nonce of the reserve, a transfer of nothing to ourselves. One for each nonce, ever: it is the same one again when it
 * ended because the nonce had been used after all, which now is refused, or has lost its block. False: it is planned already.
 */
export async function planNonceFiller(
  tx: Sql,
  chain: ChainId,
  nonce: number,
  nowMs: InstantMs,
): Promise<boolean> {
  const [address] = await reserveAddresses(tx, chainFacts[chain].family)
  if (address === undefined) return false
  const payoutId = `house-${chain}-${nonce}:1`
  const earlier = await findOutflow(tx, payoutId)
  if (earlier !== null && !endedUnmined(earlier)) return false
  if (earlier !== null) await resumeOutflow(tx, payoutId, nowMs)
  else {
    const asset = nativeAsset(chain).id
    await planOutflow(tx, { payoutId, kind: 'filler', asset, units: 0n, address, tag: null, nonce }, nowMs)
  }
  return true
}

/**
 * What others may have with the nonce that a filler is to use up: a node puts what a reorganisation took out of a block back among what
 * waits, where only more than that pays takes its place. Null: nothing that we know of.
 */
export async function findOutbid(tx: Sql, chain: ChainId, nonce: number): Promise<EvmIntent | null> {
  const rejected = await findRejected(tx, { chain, nonce })
  if (rejected === null) return null
  const intent = (await attemptsOf(tx, rejected.payoutId)).at(-1)?.intent
  return intent?.family === 'evm' ? intent : null
}
