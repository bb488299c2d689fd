import type { Chain } from '../chains/chain.ts'
import { reserveAddresses } from '../db/addresses.ts'
import { sumSpendableCoins } from '../db/coins.ts'
import { sumLiveOutflows } from '../db/outflows.ts'
import { readReserves, saveReserve } from '../db/reserves.ts'
import { type Asset, type AssetId, assetOf, nativeAsset } from '../domain/catalog/assets.ts'
import { chainFacts } from '../domain/catalog/networks.ts'
import { fromChainUnits } from '../domain/money/amount.ts'
import type { World } from './world.ts'

/** How old a figure may get while the chain stands still; with a new block it is taken anew. */
const REFRESH_MS = 3_000

/** Writes down what could be paid out of each asset of this chain, and what a payout costs. */
export async function saveReserves(
  world: World,
  chain: Chain,
  height: number,
  hasNewBlock: boolean,
): Promise<void> {
  const nowMs = world.clock.nowMs()
  const known = new Map((await readReserves(world.db)).map((reserve) => [reserve.asset, reserve.atMs]))
  const old = chain.assets.filter((id) => hasNewBlock || nowMs - (known.get(id) ?? 0) >= REFRESH_MS)
  await Promise.all(
    old.map(assetOf).map(async (asset) => {
      const held = await heldFor(world, chain, asset, height)
      const promised = await sumLiveOutflows(world.db, asset.id)
      const { units: payoutCost } = await chain.estimateCost(asset.id)
      await saveReserve(world.db, { asset: asset.id, spendable: held - promised, payoutCost, atMs: nowMs })
    }),
  )
}

async function heldFor(world: World, chain: Chain, asset: Asset, height: number): Promise<bigint> {
  if (chain.model === 'coins') {
    const { confirmations } = chainFacts[chain.id]
    return fromChainUnits(asset.id, await sumSpendableCoins(world.db, chain.id, height, confirmations)).units
  }
  return spendableBalance(chain, asset.id, await reserveAddresses(world.db, chain.family))
}

/** What of a balance can leave: all of it, less what the chain never lets go. Ledger units. */
export async function spendableBalance(
  chain: Chain,
  asset: AssetId,
  addresses: readonly string[],
): Promise<bigint> {
  const held = await chain.balance(asset, addresses)
  if (chain.lockedUnits === undefined || asset !== nativeAsset(chain.id).id) return held
  return held - (await chain.lockedUnits())
}
