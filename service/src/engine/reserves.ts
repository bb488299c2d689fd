import type { Chain } from '../chains/chain.ts'
import { reserveAddresses } from '../db/addresses.ts'
import { sumCoins } from '../db/coins.ts'
import { sumCustomerDeposits } from '../db/deposits.ts'
import { sumLiveOutflows } from '../db/outflows.ts'
import { writeReserves } from '../db/reserves.ts'
import { type AssetId, nativeAsset } from '../domain/catalog/assets.ts'
import { chainFacts } from '../domain/catalog/networks.ts'
import { fromChainUnits } from '../domain/money/amount.ts'
import type { InstantMs } from '../domain/time.ts'
import type { World } from './world.ts'

/** How old a figure may get while the chain stands still; with a new block it is taken anew. */
const REFRESH_MS = 3_000

/**
 * Writes down what could be paid out of each asset of this chain, and what a payout costs; nothing while the figures
 * taken at `takenAtMs` are young enough.
 */
export async function saveReserves(
  world: World,
  chain: Chain,
  height: number,
  takenAtMs: InstantMs,
): Promise<void> {
  const nowMs = world.clock.nowMs()
  if (nowMs - takenAtMs < REFRESH_MS) return
  const spendable = await spendableOn(world, chain, height)
  // Nobody else is promised what is a customer's: it may be asked back, at any moment in an emergency.
  const customers = await sumCustomerDeposits(world.db, chain.id, chain.assets)
  const reserves = chain.assets.map(async (asset) => ({
    asset,
    spendable: (spendable.get(asset) ?? 0n) - (customers.get(asset) ?? 0n),
    payoutCost: (await chain.estimateCost(asset)).units,
    atMs: nowMs,
  }))
  await writeReserves(world.db, await Promise.all(reserves))
}

/** What is held less what is promised; ledger units. */
async function spendableOn(
  world: World,
  chain: Chain,
  height: number,
): Promise<ReadonlyMap<AssetId, bigint>> {
  if (chain.model === 'coins') {
    const { confirmations } = chainFacts[chain.id]
    const { satoshi, promised } = await sumCoins(world.db, chain.id, height, confirmations)
    const { id } = nativeAsset(chain.id)
    return new Map([[id, fromChainUnits(id, satoshi).units - promised]])
  }
  const addresses = await reserveAddresses(world.db, chain.family)
  const balances = chain.assets.map(async (asset) => {
    return [asset, await spendableBalance(chain, asset, addresses)] as const
  })
  const held = await Promise.all(balances)
  // Asked after what is held: a payout that leaves in between is taken off once more, never not at all.
  const promised = await sumLiveOutflows(world.db, chain.id)
  return new Map(held.map(([asset, units]) => [asset, units - (promised.get(asset) ?? 0n)]))
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
