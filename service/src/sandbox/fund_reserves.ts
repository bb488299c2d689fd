import type { Devnet } from '@cambist/devnet'
import type { Chain } from '../chains/chain.ts'
import { reserveAddresses } from '../db/addresses.ts'
import { readHead } from '../db/chain_heads.ts'
import { readReserves } from '../db/reserves.ts'
import { assert } from '../domain/assert.ts'
import { type Asset, assetOf } from '../domain/catalog/assets.ts'
import type { CurrencyCode } from '../domain/catalog/currencies.ts'
import { chainFacts } from '../domain/catalog/networks.ts'
import { parseDecimal } from '../domain/money/decimal.ts'
import type { World } from '../engine/world.ts'
import { blocksToBeTold } from './mine.ts'
import { type Waiting, waitSaying } from './wait_saying.ts'

/** What the sandbox's reserves are filled to, in whole units; below a tenth of it they are filled again. */
const RESERVES: Readonly<Record<CurrencyCode, string>> = {
  BTC: '40',
  ETH: '1000',
  BNB: '5000',
  USDT: '3000000',
  USDC: '3000000',
  XRP: '2000000',
  XLM: '10000000',
  TRX: '20000000',
  EOS: '5000000',
  SOL: '100000',
}

/** Of Bitcoin's reserve: change is spendable a block later, so one coin would be one payout a block. */
const COINS = 40

/** Sends reserves from the faucet where they are low, and waits until the service has seen them on the chains. */
export async function fundReserves(world: World, devnet: Devnet, waiting: Waiting): Promise<void> {
  await Promise.all([...world.chains.values()].map((chain) => fundChain(world, devnet, chain, waiting)))
  await waitSaying(waiting, async () => {
    const low = await lowOf(world, assetsOf(world))
    return low.length === 0 ? null : `reserves of ${low.map(({ id }) => id).join(', ')}`
  })
}

async function fundChain(world: World, devnet: Devnet, chain: Chain, waiting: Waiting): Promise<void> {
  // What stands in a block before the service's first look at a chain is never read.
  await waitSaying(waiting, async () =>
    (await readHead(world.db, chain.id)) === null ? `the first look at ${chain.id}` : null,
  )
  const low = await lowOf(world, chain.assets.map(assetOf))
  if (low.length === 0) return
  for (const asset of low) await fund(world, devnet, asset, waiting)
  await devnet.mine(chain.id, blocksToBeTold(devnet, chain.id))
  world.alarms.ring(`watch ${chain.id}`)
}

function assetsOf(world: World): readonly Asset[] {
  return [...world.chains.values()].flatMap((chain) => chain.assets.map(assetOf))
}

/** Those of which there is less than a tenth of what there should be. */
async function lowOf({ db }: World, assets: readonly Asset[]): Promise<Asset[]> {
  const spendable = new Map((await readReserves(db)).map((reserve) => [reserve.asset, reserve.spendable]))
  return assets.filter((asset) => (spendable.get(asset.id) ?? 0n) * 10n < wanted(asset))
}

/** In ledger units. */
function wanted(asset: Asset): bigint {
  return exact(asset, asset.decimals)
}

function exact({ currency }: Asset, decimals: number): bigint {
  const units = parseDecimal(RESERVES[currency], decimals)
  assert(units.ok, `the reserve of ${currency} is a decimal`)
  return units.value
}

async function fund(world: World, devnet: Devnet, asset: Asset, waiting: Waiting): Promise<void> {
  let to: string | undefined
  const { family } = chainFacts[asset.chain]
  await waitSaying(waiting, async () => {
    to = (await reserveAddresses(world.db, family))[0]
    return to === undefined ? `the reserve address of ${family}` : null
  })
  assert(to !== undefined, 'the reserve address is known by now')
  // On EOS the memo stands behind the name.
  const [address = '', memo] = to.split('/')
  await devnet.send(asset.chain, asset.currency, address, exact(asset, asset.chainDecimals), COINS, memo)
}
