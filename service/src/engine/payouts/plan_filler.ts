import { reserveAddresses } from '../../db/addresses.ts'
import type { Sql } from '../../db/database.ts'
import { endedUnmined, findOutflow, planOutflow, resumeOutflow } from '../../db/outflows.ts'
import { nativeAsset } from '../../domain/catalog/assets.ts'
import { type ChainId, chainFacts } from '../../domain/catalog/networks.ts'
import type { InstantMs } from '../../domain/time.ts'

/**
 * Plans what uses up a nonce of the reserve, a transfer of nothing to ourselves. One for each nonce, ever: it is the same one again when it
 * ended because the nonce had been used after all, which now is refused, or has lost its block. False: it is planned already.
 */
export async function planFiller(tx: Sql, chain: ChainId, nonce: number, nowMs: InstantMs): Promise<boolean> {
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
