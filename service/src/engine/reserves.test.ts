import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Chain } from '../chains/chain.ts'
import { readLookedBefore } from '../db/chain_looks.ts'
import { readReserves } from '../db/reserves.ts'
import type { AssetId } from '../domain/catalog/assets.ts'
import { amountOf } from '../domain/money/amount.ts'
import { saveReserves } from './reserves.ts'
import {
  type BooksStage,
  confirmDeposit,
  mineDeposit,
  openBooksStage,
  placeOrder,
  sendPayout,
} from './testing/books_stage.ts'

/**
 * What: quotes are made from what the chain holds for payouts less what is promised, and these figures are never old.
 * How: a real PostgreSQL and a chain on paper that says what it holds.
 */
let stage: BooksStage
const ETHER = 10n ** 18n

beforeAll(async () => {
  stage = await openBooksStage('reserves')
})
beforeEach(() => stage.reset())
afterAll(() => stage?.stop())

/** Holds so much of each asset, and a payout costs so much; asked how often. */
function ethereum(held: Readonly<Partial<Record<AssetId, bigint>>>, payoutCost = 21n) {
  const asked: AssetId[] = []
  const chain: Chain = {
    ...stage.chain('ETH'),
    balance: async (asset) => {
      asked.push(asset)
      return held[asset] ?? 0n
    },
    estimateCost: async () => amountOf('ETH:ETH', payoutCost),
  }
  return { chain, asked }
}

async function spendable() {
  const reserves = await readReserves(stage.db)
  return Object.fromEntries(reserves.map(({ asset, spendable }) => [asset, spendable]))
}

/** An order whose payout of so much USDT is planned, or on its way. */
async function promise(units: bigint) {
  const order = await placeOrder(stage, 'ETH:ETH', 'USDT:ERC20', {
    asks: ETHER,
    promises: units,
  })
  await confirmDeposit(stage, order, await mineDeposit(stage, order, ETHER, 100))
  await sendPayout(stage, order)
}

test('what is promised of one asset is not there for others to be promised, and each has its own', async () => {
  const { chain } = ethereum({ 'ETH:ETH': 7n, 'USDT:ERC20': 1_000n, 'USDC:ERC20': 50n }, 9n)
  await promise(300n)
  await promise(200n)
  await saveReserves(stage.world, chain, 100, 0)
  expect(await spendable()).toEqual({ 'ETH:ETH': 7n, 'USDT:ERC20': 500n, 'USDC:ERC20': 50n })
  const reserves = await readReserves(stage.db)
  expect(reserves.map(({ payoutCost }) => payoutCost)).toEqual([9n, 9n, 9n])
})

test('when more is promised than is held, nothing can be promised', async () => {
  const { chain } = ethereum({ 'USDT:ERC20': 100n })
  await promise(300n)
  await saveReserves(stage.world, chain, 100, 0)
  expect((await spendable())['USDT:ERC20']).toBe(0n)
})

test('figures that are young stay, and are taken anew when they are three seconds old', async () => {
  const { chain, asked } = ethereum({ 'ETH:ETH': 7n })
  const takenAtMs = stage.world.clock.nowMs()
  await saveReserves(stage.world, chain, 100, 0)
  const first = asked.length
  stage.advance(2_999)
  await saveReserves(stage.world, chain, 100, takenAtMs)
  expect(asked).toHaveLength(first)
  stage.advance(1)
  await saveReserves(stage.world, chain, 100, takenAtMs)
  expect(asked).toHaveLength(2 * first)
  expect((await readReserves(stage.db)).map(({ atMs }) => atMs - takenAtMs)).toEqual([3_000, 3_000, 3_000])
})

test('a look knows how old the oldest figure is, and when one was never taken', async () => {
  const { chain } = ethereum({})
  const before = () => readLookedBefore(stage.db, 'ETH', chain.assets)
  expect(await before()).toMatchObject({ reservesAtMs: 0, begun: null })
  const takenAtMs = stage.world.clock.nowMs()
  await saveReserves(stage.world, chain, 100, 0)
  expect(await before()).toMatchObject({ reservesAtMs: takenAtMs })
  await stage.corrupt("UPDATE reserves SET at_ms = at_ms - 500 WHERE asset = 'USDC:ERC20'")
  expect(await before()).toMatchObject({ reservesAtMs: takenAtMs - 500 })
  await stage.corrupt("DELETE FROM reserves WHERE asset = 'USDC:ERC20'")
  expect(await before()).toMatchObject({ reservesAtMs: 0 })
})

test('a look knows of the block whose telling was begun and not ended', async () => {
  const { chain } = ethereum({})
  await stage.corrupt(
    "INSERT INTO chain_blocks (chain, height, hash) VALUES ('ETH', 101, 'h101'), ('BTC', 101, 'b101')",
  )
  expect(await readLookedBefore(stage.db, 'ETH', chain.assets)).toMatchObject({
    head: { block: { height: 100 } },
    begun: { height: 101, hash: 'h101' },
  })
  expect(await readLookedBefore(stage.db, 'SOL', [])).toMatchObject({ begun: null })
})
