import { chainFacts } from '../../../src/domain/catalog/networks.ts'
import { bnbToEth, btcToUsdt, type Pair, usdcToBnb, usdtToBtc } from '../../harness/orders.ts'
import type { ForkingChain } from './chain_diary.ts'
import {
  fillFaucetGaps,
  forkingChain,
  mine,
  pay,
  placeOrder,
  type Storm,
  type StormOrder,
  underWay,
  unitsOf,
} from './storm.ts'
import { reorganise } from './storm_reorg.ts'

/** Where an order stands when its chain is struck as deep as it has come; chance alone seldom brings it there. */
export const scenes = [
  'a payout was sent',
  'a large payout was sent',
  'a payout was mined',
  'a payout is final',
  'an exchange waits',
  'a deposit is nearly final',
  'a payout is nearly final',
] as const
export type Scene = (typeof scenes)[number]

/** Needs the larger number of confirmations. */
export const LARGE_BTC = '1.01'

export const trxToEth: Pair = { from: 'TRX', from_network: 'TRX', to: 'ETH', to_network: 'ETH' }
export const bnbToUsdt: Pair = { from: 'BNB', from_network: 'BNB', to: 'USDT', to_network: 'TRC20' }

type Pairs = Readonly<Record<ForkingChain, Pair>>
const paidOn: Pairs = { BTC: btcToUsdt, ETH: usdcToBnb, BNB: bnbToEth, TRX: trxToEth }
const payingOn: Pairs = { BTC: usdtToBtc, ETH: bnbToEth, BNB: usdcToBnb, TRX: bnbToUsdt }

/** Brings an order there by the newest blocks of this chain, so many as the order or its payout needs. */
export async function setScene(storm: Storm, chain: ForkingChain, scene: Scene): Promise<void> {
  // What is paid now has to be mined in the next block.
  for (const one of ['ETH', 'BNB'] as const) await fillFaucetGaps(storm, one)
  switch (scene) {
    case 'a payout was sent':
      await bringToPayout(storm, paidOn[chain])
      return
    case 'a large payout was sent':
      await bringToPayout(storm, paidOn[chain], LARGE_BTC)
      return
    case 'a payout was mined': {
      const order = await bringToPayout(storm, paidOn[chain])
      return minePayout(storm, forkingChain(order.created.receive_network), order)
    }
    case 'a payout is final': {
      const order = await bringToPayout(storm, payingOn[chain])
      await minePayout(storm, chain, order)
      await mine(storm, chain, chainFacts[chain].confirmations - 1)
      await storm.sandbox.waitForStatus(order.created.order_id, 'DONE')
      return
    }
    case 'an exchange waits':
      return bringToExchange(storm, chain)
    case 'a deposit is nearly final': {
      const order = await placeOrder(storm, paidOn[chain])
      await pay(storm, order, unitsOf(order, order.created.deposit_amount))
      await mine(storm, chain, chainFacts[chain].confirmations - 1)
      await storm.sandbox.waitForStatus(order.created.order_id, 'PENDING')
      return
    }
    case 'a payout is nearly final':
      await minePayout(storm, chain, await bringToPayout(storm, payingOn[chain]))
      return mine(storm, chain, chainFacts[chain].confirmations - 2)
  }
}

/** It waits for payouts with lower nonces: those that were taken out of their blocks have to be sent again first. */
async function minePayout(storm: Storm, chain: ForkingChain, { created }: StormOrder): Promise<void> {
  await storm.sandbox.eventually(`the payout of ${created.order_id} is in a block`, async () => {
    await mine(storm, chain, 1)
    const order = (await underWay(storm)).find((one) => one.created.order_id === created.order_id)
    if (order?.stage !== 'payout mined' && order?.stage !== 'DONE') throw new Error(`it is ${order?.stage}`)
  })
}

async function bringToPayout(storm: Storm, pair: Pair, amount?: string): Promise<StormOrder> {
  const order = await placeOrder(storm, pair, amount === undefined ? {} : { amount })
  const { created, chain } = order
  const { confirmations, confirmationsLarge } = chainFacts[chain]
  // The service is careful after a deep reorganisation; that is over when the chain has grown.
  await mine(storm, chain, confirmationsLarge)
  await pay(storm, order, unitsOf(order, created.deposit_amount))
  await mine(storm, chain, amount === undefined ? confirmations : confirmationsLarge)
  await storm.sandbox.waitForStatus(created.order_id, 'WITHDRAW')
  return order
}

/** A deposit just below a deep reorganisation becomes final while nothing leaves on the word of its chain. */
async function bringToExchange(storm: Storm, chain: ForkingChain): Promise<void> {
  const order = await placeOrder(storm, paidOn[chain])
  const { created } = order
  const { confirmations } = chainFacts[chain]
  const depth = Math.floor(confirmations / 2) + 1
  await pay(storm, order, unitsOf(order, created.deposit_amount))
  await mine(storm, chain, depth + 1)
  await storm.sandbox.settle(chain)
  await reorganise(storm, chain, depth)
  await mine(storm, chain, confirmations - depth - 1)
  await storm.sandbox.waitForStatus(created.order_id, 'EXCHANGE')
}
