import { expect, test } from 'vitest'
import type { Clock } from '../clock.ts'
import { type AssetId, assetOf, assets } from '../domain/catalog/assets.ts'
import type { CurrencyCode } from '../domain/catalog/currencies.ts'
import { amountOf } from '../domain/money/amount.ts'
import { convert } from '../domain/money/rate.ts'
import { quote, quoteReceived } from '../domain/quotes/quote.ts'
import type { UsdPrice } from '../prices/price_source.ts'
import { defaultPolicy } from './default_policy.ts'
import { readMarket } from './desks/quoting.ts'
import { marketBoard } from './market.ts'
import { databaseTelling } from './testing/told_tables.ts'

/**
 * What: what a refund costs is known without a price where the cost is in the coin that goes back.
 * How: the real board over rows of the test, with a price book that believes nothing.
 */
test('in its own coin a payout costs what the chain asks, whether or not anybody knows a price', async () => {
  const costs: [AssetId, bigint][] = [
    ['BTC:BTC', 2_891n],
    ['ETH:ETH', 10n ** 15n + 1n],
    ['USDT:ERC20', 10n ** 15n],
  ]
  const reserves = costs.map(([asset, payout_cost]) => ({
    asset,
    spendable: 1n,
    payout_cost,
    at_ms: 0,
    figure: 1,
  }))
  const market = marketBoard({
    db: databaseTelling({ reserves }),
    clock: { nowMs: () => 0, wallMs: () => 0 } as Clock,
    prices: { usd: () => null },
    policy: defaultPolicy,
    assets: new Set(assets.map(({ id }) => id)),
  })
  const costOf = (asset: AssetId) => market.payoutCost(assetOf(asset))
  expect(costOf('BTC:BTC'), 'before the chain was looked at').toBeNull()
  await market.refresh()
  expect(costOf('BTC:BTC')).toEqual(amountOf('BTC:BTC', 2_891n))
  // Raised to what the interface shows.
  expect(costOf('ETH:ETH')).toEqual(amountOf('ETH:ETH', 10n ** 15n + 10n ** 10n))
  expect(costOf('USDT:ERC20'), 'gas is told in ETH').toBeNull()
})

test('what would be refused because of its fee is quoted to nobody, and what was accepted has its market', async () => {
  const head = { chain: 'ETH', height: 1, hash: 'h', node_height: 1, looked_at_ms: 0, looked_wall_ms: 1 }
  const row = (asset: AssetId, is_unpayable: boolean) => {
    return { asset, spendable: 10n ** 24n, payout_cost: 1n, is_unpayable, at_ms: 0, figure: 1 }
  }
  const reserves = [row('ETH:ETH', false), row('USDC:ERC20', true)]
  const market = marketBoard({
    db: databaseTelling({ chain_heads: [head], reserves }),
    clock: { nowMs: () => 0, wallMs: () => 1 } as Clock,
    prices: { usd: () => (10n ** 18n) as UsdPrice },
    policy: defaultPolicy,
    assets: new Set(assets.map(({ id }) => id)),
  })
  await market.refresh()
  const [ether, dollar] = [assetOf('ETH:ETH'), assetOf('USDC:ERC20')]
  for (const rateType of ['fixed', 'float'] as const) {
    const read = () => {
      const outcome = market.read(ether, dollar, rateType)
      return outcome.ok ? outcome.value : null
    }
    expect(read()?.reserve, rateType).toEqual(amountOf('USDC:ERC20', 0n))
    const received = amountOf('ETH:ETH', 10n ** 21n)
    const asked = read()
    expect(asked && quote(asked, 'from', received)).toMatchObject({ ok: false })
    expect(asked && quoteReceived(asked, received)).not.toBeNull()
  }
  expect(market.reserve(dollar, 'an order').units).toBe(10n ** 24n)
  expect(market.isOffered(dollar), 'it is taken from others').toBe(true)
  reserves.splice(1, 1, row('USDC:ERC20', false))
  await market.refresh()
  expect(market.read(ether, dollar, 'float')).toMatchObject({
    value: { reserve: amountOf('USDC:ERC20', 10n ** 24n) },
  })
})

test('a chain whose last look is further away than it may be is not offered, on either side of now', async () => {
  const head = {
    chain: 'ETH',
    height: 1,
    hash: 'h',
    node_height: 1,
    looked_at_ms: 0,
    looked_wall_ms: 1_000_000,
  }
  let wallMs = 1_000_000
  const market = marketBoard({
    db: databaseTelling({ chain_heads: [head] }),
    clock: { nowMs: () => 0, wallMs: () => wallMs } as Clock,
    prices: { usd: () => null },
    policy: defaultPolicy,
    assets: new Set(assets.map(({ id }) => id)),
  })
  await market.refresh()
  const isUpAt = (atMs: number) => {
    wallMs = atMs
    return market.isChainUp('ETH')
  }
  const most = defaultPolicy.chainTroubleMs
  expect([0, 1 - most, most - 1, -most, most].map((awayMs) => isUpAt(1_000_000 + awayMs))).toEqual([
    true,
    true,
    true,
    false,
    false,
  ])
})

test('of two refreshes at once the one that began last is what the board knows', async () => {
  const head = { chain: 'ETH', height: 1, hash: 'h', node_height: 1, looked_at_ms: 0, looked_wall_ms: 1 }
  const first = Promise.withResolvers<void>()
  let asked = 0
  const market = marketBoard({
    db: {
      query: async (text, values) => {
        if (!text.includes('chain_heads')) return databaseTelling({}).query(text, values)
        asked += 1
        const height = asked
        // The answer to the question that was asked first comes last, unless the second waits for it.
        if (height === 1) await first.promise
        return databaseTelling({ chain_heads: [{ ...head, height }] }).query(text, values)
      },
    },
    clock: { nowMs: () => 0, wallMs: () => 1 } as Clock,
    prices: { usd: () => null },
    policy: defaultPolicy,
    assets: new Set(assets.map(({ id }) => id)),
  })
  const both = [market.refresh(), market.refresh()]
  await new Promise((resolve) => setImmediate(resolve))
  first.resolve()
  await Promise.all(both)
  expect(market.headHeight('ETH')).toBe(2)
})

test('an asset of which no look has told is not offered, though its chain is looked at', async () => {
  const head = { chain: 'ETH', height: 1, hash: 'h', node_height: 1, looked_at_ms: 0, looked_wall_ms: 1 }
  const reserves = [{ asset: 'ETH:ETH', spendable: 1n, payout_cost: 1n, at_ms: 0, figure: 1 }]
  const market = marketBoard({
    db: databaseTelling({ chain_heads: [head], reserves }),
    clock: { nowMs: () => 0, wallMs: () => 1 } as Clock,
    prices: { usd: () => null },
    policy: defaultPolicy,
    assets: new Set(assets.map(({ id }) => id)),
  })
  await market.refresh()
  expect(market.isOffered(assetOf('ETH:ETH'))).toBe(true)
  expect(market.isOffered(assetOf('USDC:ERC20'))).toBe(false)
})

test('nothing new is taken into or out of a chain while its outflows are stopped, and what was taken goes on', async () => {
  const head = { height: 1, hash: 'h', node_height: 1, looked_at_ms: 0, looked_wall_ms: 1 }
  const row = { spendable: 10n ** 24n, payout_cost: 1n, at_ms: 0, figure: 1 }
  const reserves = (['BTC:BTC', 'ETH:ETH', 'USDC:ERC20'] as const).map((asset) => ({ ...row, asset }))
  const differing = { chain: 'ETH', asset: 'USDC:ERC20', differing_count: 2 }
  const market = marketBoard({
    db: databaseTelling({
      chain_heads: ['BTC', 'ETH'].map((chain) => ({ ...head, chain })),
      reserves,
      reconciliations: [{ chain: 'BTC', asset: 'BTC:BTC', differing_count: 0 }, differing],
    }),
    clock: { nowMs: () => 0, wallMs: () => 1 } as Clock,
    prices: { usd: () => (10n ** 18n) as UsdPrice },
    policy: defaultPolicy,
    assets: new Set(assets.map(({ id }) => id)),
  })
  const [bitcoin, ether] = [assetOf('BTC:BTC'), assetOf('ETH:ETH')]
  const told = async () => {
    await market.refresh()
    const pairs = [readMarket(market, { from: bitcoin, to: ether }, 'float')]
    pairs.push(readMarket(market, { from: ether, to: bitcoin }, 'fixed'))
    return {
      offered: [market.isOffered(bitcoin), market.isOffered(ether)],
      asked: pairs.map((outcome) => (outcome.ok ? 'quoted' : outcome.rejection.code)),
      goesOn: [market.isUsable(ether), market.read(bitcoin, ether, 'float').ok],
    }
  }
  const open = { offered: [true, true], asked: ['quoted', 'quoted'], goesOn: [true, true] }
  expect(await told(), 'a node may lie for a moment').toEqual(open)
  differing.differing_count = 3
  expect(await told()).toEqual({ ...open, offered: [true, false], asked: ['MAINTENANCE', 'MAINTENANCE'] })
  differing.differing_count = 0
  expect(await told()).toEqual(open)
})

test('what the operator has paused is not offered, and what was taken goes on', async () => {
  const head = { chain: 'ETH', height: 1, hash: 'h', node_height: 1, looked_at_ms: 0, looked_wall_ms: 1 }
  const row = { spendable: 10n ** 24n, payout_cost: 1n, at_ms: 0, figure: 1 }
  const reserves = (['ETH:ETH', 'USDC:ERC20'] as const).map((asset) => ({ ...row, asset }))
  const market = marketBoard({
    db: databaseTelling({ chain_heads: [head], reserves }),
    clock: { nowMs: () => 0, wallMs: () => 1 } as Clock,
    prices: { usd: () => (10n ** 18n) as UsdPrice },
    policy: { ...defaultPolicy, paused: ['USDC:ERC20'] },
    assets: new Set(assets.map(({ id }) => id)),
  })
  await market.refresh()
  const [ether, dollar] = [assetOf('ETH:ETH'), assetOf('USDC:ERC20')]
  expect([market.isOffered(ether), market.isOffered(dollar), market.isUsable(dollar)]).toEqual([
    true,
    false,
    true,
  ])
  expect(readMarket(market, { from: ether, to: dollar }, 'fixed')).toMatchObject({
    rejection: { code: 'MAINTENANCE', message: expect.stringContaining('USDC on ERC20') },
  })
  expect(market.read(ether, dollar, 'fixed').ok).toBe(true)
})

test('a market has the prices of both, the fee of its kind, and of what it pays out the cost and what may be quoted', async () => {
  const head = { height: 1, hash: 'h', node_height: 1, looked_at_ms: 0, looked_wall_ms: 1 }
  const row = { at_ms: 0, figure: 1 }
  const reserves = [
    { ...row, asset: 'BTC:BTC', spendable: 500_000n, payout_cost: 2_000n },
    // Gas for ten payouts: enough for the token to be quoted, and nothing of it is sold.
    { ...row, asset: 'ETH:ETH', spendable: 10n ** 16n, payout_cost: 10n ** 15n },
    { ...row, asset: 'USDT:ERC20', spendable: 7_000n, payout_cost: 10n ** 15n },
  ]
  const usd: Partial<Record<CurrencyCode, bigint>> = { BTC: 60_000n, ETH: 3_000n, USDT: 2n }
  const market = marketBoard({
    db: databaseTelling({ chain_heads: ['BTC', 'ETH'].map((chain) => ({ ...head, chain })), reserves }),
    clock: { nowMs: () => 0, wallMs: () => 1 } as Clock,
    prices: { usd: (currency) => usd[currency] ?? null },
    policy: { ...defaultPolicy, fees: { fixed: 110n, float: 40n } },
    assets: new Set(assets.map(({ id }) => id)),
  })
  await market.refresh()
  const read = (from: AssetId, to: AssetId, rateType: 'fixed' | 'float') => {
    const found = market.read(assetOf(from), assetOf(to), rateType)
    if (!found.ok) throw new Error(found.rejection.message)
    const { fee, networkFee, reserve, mid } = found.value
    const one = amountOf(from, 10n ** BigInt(assetOf(from).decimals))
    return { fee, networkFee: networkFee.units, reserve: reserve.units, mid: convert(one, mid, 'down').units }
  }
  // The gas, 0.001 ETH, is three dollars, and a unit of this USDT is two.
  const token = { networkFee: 15n * 10n ** 17n, reserve: 7_000n, mid: 30_000n * 10n ** 18n }
  expect(read('BTC:BTC', 'USDT:ERC20', 'fixed')).toEqual({ fee: 110n, ...token })
  expect(read('BTC:BTC', 'USDT:ERC20', 'float')).toEqual({ fee: 40n, ...token })
  expect(read('USDT:ERC20', 'ETH:ETH', 'float')).toEqual({
    fee: 40n,
    networkFee: 10n ** 15n,
    reserve: 0n,
    mid: (2n * 10n ** 18n) / 3_000n,
  })
  expect(market.reserve(assetOf('ETH:ETH'), 'an order'), 'what is accepted may use it').toEqual(
    amountOf('ETH:ETH', 10n ** 16n),
  )
  expect(read('ETH:ETH', 'BTC:BTC', 'fixed')).toMatchObject({ networkFee: 2_000n, reserve: 460_000n })
})
