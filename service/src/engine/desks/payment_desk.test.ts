import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type AssetId, assets } from '../../domain/catalog/assets.ts'
import { type BooksStage, openBooksStage, placeOrder } from '../testing/books_stage.ts'
import type { World } from '../world.ts'
import { paymentDesk } from './payment_desk.ts'

/**
 * What: a QR never asks a wallet for another coin than its order does, also where the contract of a token is known no more.
 * How: the real desk on a real PostgreSQL; contracts are given and taken away.
 */
let stage: BooksStage

beforeAll(async () => {
  stage = await openBooksStage('payment-desk')
})

beforeEach(() => stage.reset())

afterAll(() => stage?.stop())

async function paymentOf(from: AssetId, asks: bigint, tokens: World['tokens']) {
  const order = await placeOrder(
    stage,
    from,
    'BTC:BTC',
    { asks, promises: 1n },
    `to-${from.replace(':', '-')}`,
  )
  const world = { ...stage.world, tokens, evmChainIds: { ETH: 1, BNB: 56 } }
  const payment = await paymentDesk(world).findPayment(order.terms.id)
  return [payment?.uri, payment?.standardUri]
}

test('a token is asked for by its contract, the coin of a chain without one', async () => {
  const tokens = { 'USDC:SOL': 'Mint', 'USDT:ERC20': '0xcontract' } as const
  const spl = 'solana:to-USDC-SOL?amount=1000&spl-token=Mint'
  expect(await paymentOf('USDC:SOL', 1_000n * 10n ** 18n, tokens)).toEqual([spl, spl])
  expect(await paymentOf('USDT:ERC20', 1_000n * 10n ** 18n, tokens)).toEqual([
    'ethereum:to-USDT-ERC20?amount=1000',
    'ethereum:0xcontract@1/transfer?address=to-USDT-ERC20&uint256=1000000000',
  ])
  const sol = 'solana:to-SOL-SOL?amount=2'
  expect(await paymentOf('SOL:SOL', 2n * 10n ** 9n, {})).toEqual([sol, sol])
  expect(await paymentOf('ETH:ETH', 10n ** 18n, {})).toEqual([
    'ethereum:to-ETH-ETH?amount=1',
    'ethereum:to-ETH-ETH@1?value=1000000000000000000',
  ])
})

test('a token without a known contract gets the address alone, where an amount would be one of the coin', async () => {
  const address = 'to-USDC-SOL'
  expect(await paymentOf('USDC:SOL', 1_000n * 10n ** 18n, {})).toEqual([address, address])
  for (const [from, scheme] of [
    ['USDT:ERC20', 'ethereum'],
    ['USDT:BEP20', 'bnb'],
  ] as const) {
    const to = `to-${from.replace(':', '-')}`
    expect(await paymentOf(from, 1_000n * 10n ** 18n, {})).toEqual([`${scheme}:${to}?amount=1000`, to])
  }
})

const everyContract: World['tokens'] = Object.fromEntries(
  assets.filter(({ isNative }) => !isNative).map(({ id, network }) => [id, `contract-on-${network}`]),
)
/** Its wallets have agreed on no form for a token (docs/api.md). */
const noStandard: ReadonlySet<AssetId> = new Set(['USDT:TRC20'])

test.each(assets)('a QR of $id is made in both styles, and names the contract of a token', async (asset) => {
  const { id, isNative, maxAmount } = asset
  const [own, standard] = await paymentOf(id, maxAmount, everyContract)
  expect(own).toContain(`to-${id.replace(':', '-')}`)
  expect(standard).toMatch(/[?&](amount|value|uint256)=\d/)
  if (!isNative && !noStandard.has(id)) expect(standard).toContain(everyContract[id])
})

test.each(assets.filter(({ id, isNative }) => !isNative && !noStandard.has(id)))(
  'a standard QR of $id without its contract has no amount',
  async ({ id, maxAmount }) => {
    const [, standard] = await paymentOf(id, maxAmount, {})
    expect(standard).toBe(`to-${id.replace(':', '-')}`)
  },
)
