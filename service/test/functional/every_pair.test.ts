import type { CreatedOrder, Order } from '@cambist/sdk'
import { expect, test } from 'vitest'
import { type Asset, assets } from '../../src/domain/catalog/assets.ts'
import { type ChainId, type NetworkId, networkChains } from '../../src/domain/catalog/networks.ts'
import { blocksToBeTold } from '../../src/sandbox/mine.ts'
import { balanceOf, chainUnits } from '../harness/amounts.ts'
import { Hopeless } from '../harness/eventually.ts'
import { createOrder } from '../harness/orders.ts'
import { EVERY_NETWORK, type TestSandbox, useTestSandbox } from '../harness/test_sandbox.ts'
import { readTags, sharingChains, toldAs } from '../harness/told_tags.ts'

/**
 * What: everything is exchanged for everything.
 * How: an order for every ordered pair of assets, at fixed and float rates in turn, all at once; each deposit and each payout
 * is asked of its own chain, and where many share an account for whom it was.
 */
// All at once take more addresses of the EVM chains than a pool of the usual size in tests has.
const given = useTestSandbox({ networks: EVERY_NETWORK, policy: { poolSize: 120 } })

/** About a hundred dollars of each. */
const AMOUNT: Readonly<Record<Asset['currency'], string>> = {
  BTC: '0.0015',
  ETH: '0.03',
  BNB: '0.16',
  USDT: '100',
  USDC: '100',
  XRP: '40',
  XLM: '250',
  TRX: '400',
  EOS: '125',
  SOL: '0.7',
}

const pairs = assets.flatMap((from) => assets.filter((to) => to !== from).map((to) => ({ from, to })))
const PATIENCE = { timeoutMs: 500_000 }

test(`each of ${pairs.length} pairs goes from quote to DONE`, { timeout: 600_000 }, async () => {
  const sandbox = given()
  const orders: CreatedOrder[] = []
  for (const [number, { from, to }] of pairs.entries()) {
    const rateType = number % 2 === 0 ? 'fixed' : 'float'
    orders.push(await openOrder(sandbox, from, to, rateType, tagOf(to, number)))
  }
  for (const { order_id } of orders) await sandbox.remote.pay(order_id)
  const done = await untilAllDone(sandbox, orders)
  for (const order of done) {
    expect(order.status).toBe('DONE')
    const { receive_currency, receive_network, receive_final_amount, destination } = order
    const [currency, network] = [receive_currency as Asset['currency'], receive_network as NetworkId]
    const name = `${order.deposit_currency}:${order.deposit_network} → ${currency}:${network}`
    const arrived = await balanceOf(sandbox, destination, currency, network)
    expect(arrived, name).toBe(chainUnits(receive_final_amount, currency, network))
    expect(order.deposit_received, name).toBe(order.deposit_amount)
  }
  await expectTagsTold(sandbox, done)
})

/** Another one for each, as a number or, where that goes, as words. */
function tagOf({ chain }: Asset, number: number): string | null {
  if (!sharingChains.includes(chain)) return null
  return chain === 'XRP' || number % 2 === 0 ? String(number) : `customer ${number}`
}

async function expectTagsTold({ devnet }: TestSandbox, done: readonly Order[]): Promise<void> {
  for (const chain of sharingChains) {
    const paid = done.filter(({ receive_network }) => networkChains[receive_network as NetworkId] === chain)
    expect(paid.length, chain).toBeGreaterThan(0)
    const asked = paid.map(({ destination, destination_tag: tag }) => [destination, [toldAs(chain, tag)]])
    const accounts = paid.map(({ destination }) => destination)
    expect([...(await readTags(devnet, chain, accounts))], chain).toEqual(asked)
  }
}

async function openOrder(
  sandbox: TestSandbox,
  from: Asset,
  to: Asset,
  rate_type: 'fixed' | 'float',
  tag: string | null,
): Promise<CreatedOrder> {
  const pair = {
    from: from.currency,
    from_network: from.network,
    to: to.currency,
    to_network: to.network,
  }
  return createOrder(sandbox, pair, {
    amount: AMOUNT[from.currency],
    rate_type,
    ...(tag !== null && { destination_tag: tag }),
  })
}

/** A block on every chain, again and again, so that deposits become deep and payouts final. */
async function untilAllDone(sandbox: TestSandbox, orders: readonly CreatedOrder[]): Promise<Order[]> {
  const chains = [...new Set(assets.map(({ chain }) => chain))]
  await sandbox.eventually(
    'all orders are DONE',
    async () => {
      await Promise.all(chains.map((chain) => mineOne(sandbox, chain)))
      // Whoever mines faster than is read never has it read to the end.
      await sandbox.settle()
      // Hundreds are asked for each as a customer does only once they have ended.
      const waiting = await sandbox.rows<{ order_id: string; status: string }>(
        `SELECT order_id, status FROM orders WHERE status <> 'DONE'`,
      )
      const stuck = waiting.filter(({ status }) => status === 'EMERGENCY')
      if (stuck.length > 0) throw new Hopeless(`in EMERGENCY: ${stuck.map(({ order_id }) => order_id)}`)
      expect(waiting).toEqual([])
    },
    PATIENCE,
  )
  return Promise.all(orders.map(({ order_id }) => sandbox.client.getOrder(order_id)))
}

async function mineOne({ devnet }: TestSandbox, chain: ChainId): Promise<void> {
  // Twenty blocks there are a minute, as long as five are elsewhere.
  await devnet.mine(chain, chain === 'TRX' ? 4 : blocksToBeTold(devnet, chain))
}
