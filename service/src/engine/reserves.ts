import type { Chain, CoinsThatPay } from '../chains/chain.ts'
import { reserveAddresses } from '../db/addresses.ts'
import { sumPromisedOfCoins, whatCoinsBring } from '../db/coins.ts'
import type { Sql } from '../db/database.ts'
import { sumCustomerDeposits } from '../db/deposits.ts'
import { findLiveOutflows, sumLiveOutflows } from '../db/leaving_outflows.ts'
import { readOpened } from '../db/opened_assets.ts'
import { drawFigure, writeReserves } from '../db/reserves.ts'
import { assert } from '../domain/assert.ts'
import { type AssetId, nativeAsset } from '../domain/catalog/assets.ts'
import { chainFacts } from '../domain/catalog/networks.ts'
import { fromChainUnits } from '../domain/money/amount.ts'
import { areEnough, BITCOIN_INPUTS_MAX, leftForOne } from '../domain/payouts/bitcoin_inputs.ts'
import type { InstantMs } from '../domain/time.ts'
import type { World } from './world.ts'

/** How old a figure may get while the chain stands still; with a new block it is taken anew. */
const REFRESH_MS = 3_000

/** As many as one transaction spends, where no fee is known. */
const ANY_COINS: CoinsThatPay = { countMax: BITCOIN_INPUTS_MAX, costSatoshi: 0n }

/**
 * Writes down what could be paid out of each asset of this chain that is opened (`openAssets`), and what a payout costs; nothing while
 * the figures taken at `takenAtMs` are young enough.
 */
export async function saveReserves(
  world: World,
  chain: Chain,
  height: number,
  takenAtMs: InstantMs,
): Promise<void> {
  const nowMs = world.clock.nowMs()
  // The distance: of a clock that was set back, none would be old until it has caught up.
  if (Math.abs(nowMs - takenAtMs) < REFRESH_MS) return
  const figure = await drawFigure(world.db)
  const opened = await readOpened(world.db, chain.assets)
  const assets = chain.assets.filter((asset) => opened.has(asset))
  const estimates = await Promise.all(
    assets.map(async (asset) => ({ asset, ...(await chain.estimatePayout(asset)) })),
  )
  const coins = estimates.find(({ asset }) => asset === nativeAsset(chain.id).id)?.coins
  const spendable = await spendableOn(world, chain, assets, height, coins)
  const reserves = estimates.map(({ asset, cost, isAboveFeeCap, lacks }) => {
    const payout = { payoutCost: cost.units, isUnpayable: isAboveFeeCap || lacks !== undefined }
    return { asset, spendable: spendable.get(asset) ?? 0n, ...payout, atMs: nowMs, figure }
  })
  for (const { asset, isUnpayable } of await writeReserves(world.db, reserves)) {
    const lacks = estimates.find((estimate) => estimate.asset === asset)?.lacks
    if (!isUnpayable) world.log.warn({ asset }, 'payouts are possible again: the asset is quoted')
    else if (lacks === undefined)
      world.log.warn({ asset }, 'payouts would pass the fee cap: the asset is not quoted')
    else world.log.warn({ asset, lacks }, 'payouts lack what they take: the asset is not quoted')
  }
}

/** What is held less what is promised, and less what is a customer's: that may be asked back, at any moment in an emergency. Ledger units. */
async function spendableOn(
  world: World,
  chain: Chain,
  assets: readonly AssetId[],
  height: number,
  coins: CoinsThatPay = ANY_COINS,
): Promise<Sums> {
  // Noted before the balances are asked, and those before what is promised: a payout that ends in between may lie in the balance still, and
  // is taken off all the same.
  const live = chain.model === 'coins' ? [] : await findLiveOutflows(world.db, chain.id)
  const balances = chain.model === 'coins' ? null : await readBalances(world, chain, assets)
  return world.db.transaction(async (tx) => {
    // One snapshot: a refund that is chosen between two statements would be neither its customer's any more nor promised yet.
    await tx.query('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY')
    if (balances === null) return spendableCoins(tx, chain, assets, height, coins)
    const unpromised = less(balances, await sumLiveOutflows(tx, chain.id, live))
    return less(unpromised, await sumCustomerDeposits(tx, chain.id, assets, null))
  })
}

type Sums = ReadonlyMap<AssetId, bigint>

function less(sums: Sums, taken: Sums): Sums {
  return new Map([...sums].map(([asset, units]) => [asset, units - (taken.get(asset) ?? 0n)]))
}

async function spendableCoins(
  tx: Sql,
  chain: Chain,
  assets: readonly AssetId[],
  height: number,
  { countMax, costSatoshi }: CoinsThatPay,
): Promise<Sums> {
  const { confirmations } = chainFacts[chain.id]
  const { id } = nativeAsset(chain.id)
  const customers = await sumCustomerDeposits(tx, chain.id, assets, height + 1 - confirmations)
  const taken = (await sumPromisedOfCoins(tx, chain.id)) + (customers.get(id) ?? 0n)
  const brings: bigint[] = []
  for (let isAll = false; !isAll && !areEnough(brings, taken, countMax); ) {
    // Twice as many each time: what is skipped is gone through again.
    const range = { skip: brings.length, count: Math.max(brings.length, 2 * BITCOIN_INPUTS_MAX) }
    const more = await whatCoinsBring(tx, chain.id, height, confirmations, costSatoshi, range)
    for (const satoshi of more) brings.push(fromChainUnits(id, satoshi).units)
    isAll = more.length < range.count
  }
  return new Map([[id, leftForOne(brings, taken, countMax)]])
}

async function readBalances({ db }: World, chain: Chain, assets: readonly AssetId[]): Promise<Sums> {
  const addresses = await reserveAddresses(db, chain.family)
  const balances = assets.map(async (asset) => {
    return [asset, await spendableBalance(chain, asset, addresses)] as const
  })
  return new Map(await Promise.all(balances))
}

/** Of an account chain: what payouts leave from. */
export async function reserveAddress(sql: Sql, chain: Chain): Promise<string> {
  const [address] = await reserveAddresses(sql, chain.family)
  assert(address !== undefined, `the reserve address of ${chain.id} is known`)
  return address
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
