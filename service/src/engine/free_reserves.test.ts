import { expect, test } from 'vitest'
import type { AssetId } from '../domain/catalog/assets.ts'
import { amountOf } from '../domain/money/amount.ts'
import { openFreeReserves } from './free_reserves.ts'

/**
 * What: of a chain's own coin so much is kept out of quotes that payouts of its tokens find gas, and no token is quoted without.
 * How: figures on paper, of Ethereum and of Bitcoin.
 */
const COST = 10n

async function quoted(
  spendable: Readonly<Partial<Record<AssetId, bigint>>>,
  costs: Partial<Record<AssetId, bigint>> = {},
) {
  const reserves = openFreeReserves()
  const figures = Object.entries(spendable) as [AssetId, bigint][]
  await reserves.refresh(async () => ({
    reserves: figures.map(([asset, units]) => ({
      asset,
      spendable: units,
      payoutCost: costs[asset] ?? COST,
      isUnpayable: false,
      atMs: 0,
      figure: 1,
    })),
    lastDrawn: 1,
  }))
  return { reserves, of: (asset: AssetId) => reserves.get(asset)?.quotable }
}

test('coin for twenty of the dearest payouts of its chain is not sold, and orders that are accepted may use it', async () => {
  const { reserves, of } = await quoted({ 'ETH:ETH': 1_000n, 'USDT:ERC20': 5n }, { 'USDT:ERC20': 30n })
  expect(of('ETH:ETH')).toBe(1_000n - 20n * 30n)
  expect(reserves.get('ETH:ETH')?.spendable).toBe(1_000n)
  expect((await quoted({ 'BTC:BTC': 1_000n })).of('BTC:BTC')).toBe(1_000n - 20n * COST)
  expect((await quoted({ 'BTC:BTC': 20n * COST - 1n })).of('BTC:BTC')).toBe(0n)
})

test('a token is quoted as long as there is coin for five payouts of it', async () => {
  expect((await quoted({ 'ETH:ETH': 5n * COST, 'USDT:ERC20': 77n })).of('USDT:ERC20')).toBe(77n)
  expect((await quoted({ 'ETH:ETH': 5n * COST - 1n, 'USDT:ERC20': 77n })).of('USDT:ERC20')).toBe(0n)
  expect(
    (await quoted({ 'BNB:BNB': 5n * COST, 'USDT:ERC20': 77n })).of('USDT:ERC20'),
    'of another chain',
  ).toBe(0n)
})

test('coin that is sold out in quotes is still there for the gas of tokens', async () => {
  const { of } = await quoted({ 'ETH:ETH': 20n * COST, 'USDT:ERC20': 77n })
  expect(of('ETH:ETH')).toBe(0n)
  expect(of('USDT:ERC20')).toBe(77n)
})

test('what is being settled is quoted to nobody', async () => {
  const { reserves, of } = await quoted({ 'ETH:ETH': 1_000n, 'USDT:ERC20': 100n })
  let during: (bigint | undefined)[] = []
  await reserves.setAside('an order', amountOf('ETH:ETH', 300n), async () => {
    during = [of('ETH:ETH'), reserves.get('ETH:ETH')?.spendable]
  })
  expect(during).toEqual([1_000n - 300n - 20n * COST, 700n])
})

test('what would be refused because of its fee is quoted to nobody until that falls, and may be settled', async () => {
  const reserves = openFreeReserves()
  const refresh = (above: readonly AssetId[]) =>
    reserves.refresh(async () => ({
      reserves: (['ETH:ETH', 'USDT:ERC20'] as const).map((asset) => ({
        ...{ asset, spendable: 1_000n, payoutCost: COST, isUnpayable: above.includes(asset) },
        ...{ atMs: 0, figure: 1 },
      })),
      lastDrawn: 1,
    }))
  const both = () =>
    (['ETH:ETH', 'USDT:ERC20'] as const).map((asset) => {
      const { spendable, quotable } = reserves.get(asset) ?? {}
      return { spendable, quotable }
    })
  const coin = { spendable: 1_000n, quotable: 1_000n - 20n * COST }
  const token = { spendable: 1_000n, quotable: 1_000n }
  await refresh([])
  expect(both()).toEqual([coin, token])
  await refresh(['USDT:ERC20'])
  expect(both()).toEqual([coin, { ...token, quotable: 0n }])
  await refresh(['ETH:ETH', 'USDT:ERC20'])
  expect(both()).toEqual([
    { ...coin, quotable: 0n },
    { ...token, quotable: 0n },
  ])
  await refresh([])
  expect(both()).toEqual([coin, token])
})

/** Ether of the `figure`th figures, while `lastDrawn` was the last number of one that had been drawn. */
const told = (figure: number, lastDrawn: number) => ({
  reserves: [
    { asset: 'ETH:ETH' as const, spendable: 1_000n, payoutCost: 0n, isUnpayable: false, atMs: 0, figure },
  ],
  lastDrawn,
})

test('what is being settled is taken off all figures but those that were begun after it had ended', async () => {
  const reserves = openFreeReserves()
  const spendableOf = async (figure: number, lastDrawn: number) => {
    await reserves.refresh(async () => told(figure, lastDrawn))
    return reserves.get('ETH:ETH')?.spendable
  }
  expect(await spendableOf(1, 1)).toBe(1_000n)
  const work = Promise.withResolvers<void>()
  const settled = reserves.setAside('an order', amountOf('ETH:ETH', 300n), () => work.promise)
  expect(await spendableOf(2, 2), 'while it goes on').toBe(700n)
  await reserves.refresh(async () => {
    const read = told(3, 3)
    work.resolve()
    await settled
    return read
  })
  expect(reserves.get('ETH:ETH')?.spendable, 'when it ends while they are read').toBe(700n)
  // The fourth may have been begun in the moment between that reading and its end.
  expect(await spendableOf(4, 4)).toBe(700n)
  expect(await spendableOf(5, 5)).toBe(1_000n)
})

test('what was not settled after all is free again at once, and nothing else with it', async () => {
  const reserves = openFreeReserves()
  await reserves.refresh(async () => told(1, 1))
  const spendable = () => reserves.get('ETH:ETH')?.spendable
  const setAside = (units: bigint, isUndone: boolean) =>
    reserves.setAside(
      `of ${units}`,
      amountOf('ETH:ETH', units),
      async () => {},
      () => isUndone,
    )
  await setAside(300n, false)
  expect(spendable()).toBe(700n)
  await setAside(200n, true)
  expect(spendable()).toBe(700n)
  const failed = reserves.setAside('another', amountOf('ETH:ETH', 50n), () =>
    Promise.reject(new Error('maybe settled')),
  )
  await expect(failed).rejects.toThrow('maybe settled')
  expect(spendable(), 'nobody knows what became of it').toBe(650n)
})

test('what is tried again is set aside once, as much as the largest try, until no try of it counts any more', async () => {
  const reserves = openFreeReserves()
  const spendableOf = async (figure: number) => {
    await reserves.refresh(async () => told(figure, figure))
    return reserves.get('ETH:ETH')?.spendable
  }
  await spendableOf(1)
  const tryToSettle = (settlement: string, units: bigint) =>
    reserves
      .setAside(settlement, amountOf('ETH:ETH', units), () => Promise.reject(new Error('maybe settled')))
      .catch(() => {})
  for (const units of [300n, 310n, 290n]) await tryToSettle('an order', units)
  expect(reserves.get('ETH:ETH')?.spendable).toBe(690n)
  await tryToSettle('another', 100n)
  expect(reserves.get('ETH:ETH')?.spendable, 'two orders').toBe(590n)
  expect(await spendableOf(2)).toBe(590n)
  await tryToSettle('an order', 200n)
  expect(await spendableOf(3), 'what only the last try holds').toBe(800n)
  expect(await spendableOf(4)).toBe(1_000n)
})

test('what an order holds itself is there for its next try, whatever figures say meanwhile, and what others hold is not', async () => {
  const reserves = openFreeReserves()
  expect(reserves.spendableBy('an order', 'ETH:ETH'), 'nobody has looked').toBe(0n)
  await reserves.refresh(async () => told(1, 1))
  const tryToSettle = (order: string, units: bigint) =>
    reserves
      .setAside(order, amountOf('ETH:ETH', units), () => Promise.reject(new Error('maybe settled')))
      .catch(() => {})
  await tryToSettle('an order', 600n)
  await tryToSettle('another', 300n)
  const seen = () => [
    reserves.spendableBy('an order', 'ETH:ETH'),
    reserves.spendableBy('another', 'ETH:ETH'),
    reserves.spendableBy('a third', 'ETH:ETH'),
    reserves.get('ETH:ETH')?.spendable,
  ]
  expect(seen()).toEqual([700n, 400n, 100n, 100n])
  await reserves.refresh(async () => ({
    reserves: told(2, 2).reserves.map((figure) => ({ ...figure, spendable: 200n })),
    lastDrawn: 2,
  }))
  expect(seen(), 'a figure that may have them in it').toEqual([0n, 0n, 0n, 0n])
  await reserves.refresh(async () => told(3, 3))
  expect(seen()).toEqual([1_000n, 1_000n, 1_000n, 1_000n])
})
