import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Chain } from '../../chains/chain.ts'
import { insertAddresses } from '../../db/addresses.ts'
import { findOrder } from '../../db/orders.ts'
import type { AssetId } from '../../domain/catalog/assets.ts'
import { assetOf } from '../../domain/catalog/assets.ts'
import { chainFacts } from '../../domain/catalog/networks.ts'
import { amountOf } from '../../domain/money/amount.ts'
import type { Order } from '../../domain/orders/order.ts'
import { refuse } from '../../domain/outcome.ts'
import {
  type BooksStage,
  confirmDeposit,
  lookAt,
  mineDeposit,
  openBooksStage,
  placeOrder,
  tell,
} from '../testing/books_stage.ts'
import { worldSigningNothing } from '../testing/willing_signer.ts'
import { workPayouts } from './work.ts'

/**
 * What: a payout to where we keep our own money is never made. It would be booked as paid and leave nothing behind on the
 * chain, so that ledger and chain differed for ever and the outflows of the chain stopped.
 * How: a real PostgreSQL, orders that exist before their address is known to be ours, a chain on paper.
 */
let stage: BooksStage

beforeAll(async () => {
  stage = await openBooksStage('own_address')
})

beforeEach(() => stage.reset())

afterAll(() => stage?.stop())

const ETHER = 10n ** 18n

/** The chain of an asset, and what it was asked to bid for. */
function biddingFor(asset: AssetId) {
  const bids: string[] = []
  const chain: Chain = {
    ...stage.chain(assetOf(asset).chain),
    bid: async ({ address }) => {
      bids.push(address)
      return refuse({ code: 'network', message: 'not now' } as const)
    },
  }
  return { chain, bids }
}

/** What it asks is there and deep. */
async function paidOrder(from: AssetId, to: AssetId): Promise<Order> {
  const order = await placeOrder(stage, from, to, { asks: ETHER, promises: ETHER })
  const { chain } = assetOf(from)
  await confirmDeposit(stage, order, await mineDeposit(stage, order, ETHER, 100))
  await lookAt(stage, chain, 100)
  return order
}

async function stateOf({ terms }: Order) {
  return (await findOrder(stage.db, terms.id))?.state
}

const own = [
  { what: 'the reserve', to: 'ETH:ETH', purpose: 'reserve' },
  { what: 'the reserve, in a token', to: 'USDT:ERC20', purpose: 'reserve' },
  { what: 'the reserve of Bitcoin', to: 'BTC:BTC', purpose: 'reserve' },
  { what: 'a change address', to: 'BTC:BTC', purpose: 'change' },
] as const

test.each(own)(
  'a payout to $what ends in an emergency, with nothing written down',
  async ({ to, purpose }) => {
    const order = await paidOrder(to === 'BTC:BTC' ? 'ETH:ETH' : 'BTC:BTC', to)
    await insertAddresses(stage.db, chainFacts[assetOf(to).chain].family, purpose, 7, [
      order.terms.destination,
    ])
    await tell(stage, order.terms.id, 'priced:1', { kind: 'ExchangePriced', quote: null })

    const { chain, bids } = biddingFor(to)
    await workPayouts(worldSigningNothing(stage), chain)
    expect(await stateOf(order)).toMatchObject({ status: 'EMERGENCY', reasons: ['DESTINATION_PROBLEM'] })
    expect(bids).toEqual([])
    expect(await stage.db.query('SELECT 1 FROM attempts')).toEqual([])
  },
)

test('a refund to ourselves does not end the emergency, and the next one to the customer is made', async () => {
  const order = await paidOrder('BTC:BTC', 'ETH:ETH')
  const { id, destination } = order.terms
  await insertAddresses(stage.db, 'evm', 'reserve', 7, [destination])
  await insertAddresses(stage.db, 'bitcoin', 'change', 7, ['change-7'])
  await tell(stage, id, 'priced:1', { kind: 'ExchangePriced', quote: null })
  await workPayouts(worldSigningNothing(stage), biddingFor('ETH:ETH').chain)

  const [amount, networkFee] = [amountOf('BTC:BTC', ETHER - 9n), amountOf('BTC:BTC', 9n)]
  const refundTo = (address: string) =>
    tell(stage, id, `action:${address}`, {
      kind: 'ActionChosen',
      action: 'refund',
      refund: { amount, networkFee, address },
    })
  const { chain, bids } = biddingFor('BTC:BTC')
  await refundTo('change-7')
  await workPayouts(worldSigningNothing(stage), chain)
  expect(await stateOf(order)).toMatchObject({ status: 'EMERGENCY' })
  expect(bids).toEqual([])

  await refundTo('outside')
  await workPayouts(worldSigningNothing(stage), chain)
  expect(await stateOf(order)).toMatchObject({ status: 'REFUND' })
  expect(bids).toEqual(['outside'])
})

test('a payout to the deposit address of another order is a deposit there, and goes on', async () => {
  const order = await paidOrder('BTC:BTC', 'ETH:ETH')
  await insertAddresses(stage.db, 'evm', 'deposit', 1_000_000, [order.terms.destination])
  await tell(stage, order.terms.id, 'priced:1', { kind: 'ExchangePriced', quote: null })
  const { chain, bids } = biddingFor('ETH:ETH')
  await workPayouts(worldSigningNothing(stage), chain)
  expect(bids).toEqual([order.terms.destination])
})

test('an address of ours in another family is a stranger there', async () => {
  const order = await paidOrder('BTC:BTC', 'ETH:ETH')
  await insertAddresses(stage.db, 'tron', 'reserve', 7, [order.terms.destination])
  await tell(stage, order.terms.id, 'priced:1', { kind: 'ExchangePriced', quote: null })
  const { chain, bids } = biddingFor('ETH:ETH')
  await workPayouts(worldSigningNothing(stage), chain)
  expect(bids).toEqual([order.terms.destination])
})
