import type { CreatedOrder, CreateOrderRequest, Order } from '@cambist/sdk'
import { expect } from 'vitest'
import { balanceOf, chainUnits } from './amounts.ts'
import type { NetworkName, TestSandbox } from './test_sandbox.ts'

export type Pair = Pick<CreateOrderRequest, 'from' | 'from_network' | 'to' | 'to_network'>

type Currency = 'BTC' | 'ETH' | 'BNB' | 'USDT' | 'USDC' | 'XRP' | 'XLM' | 'TRX' | 'EOS' | 'SOL'

export const btcToUsdt: Pair = { from: 'BTC', from_network: 'BTC', to: 'USDT', to_network: 'ERC20' }
export const usdtToBtc: Pair = { from: 'USDT', from_network: 'BEP20', to: 'BTC', to_network: 'BTC' }
export const ethToUsdc: Pair = { from: 'ETH', from_network: 'ETH', to: 'USDC', to_network: 'BEP20' }
export const usdcToBnb: Pair = { from: 'USDC', from_network: 'ERC20', to: 'BNB', to_network: 'BNB' }
export const bnbToEth: Pair = { from: 'BNB', from_network: 'BNB', to: 'ETH', to_network: 'ETH' }
/** Both sides on EVM chains, where a block costs a millisecond: for tests that are not about a particular pair. */
export const quickPair: Pair = { from: 'USDT', from_network: 'ERC20', to: 'USDC', to_network: 'BEP20' }

/** An amount that is small, allowed and not round. */
const USUAL_AMOUNT: Readonly<Record<Currency, string>> = {
  BTC: '0.01234567',
  ETH: '0.23456789',
  BNB: '1.23456789',
  USDT: '1234.567891',
  USDC: '1234.567891',
  XRP: '123.456789',
  XLM: '612.3456789',
  TRX: '1234.567891',
  EOS: '432.1234',
  SOL: '1.23456789',
}

/**
 * An order to a fresh outside address; `more` replaces any field of the request. A fixed one is quoted first, as an
 * integrator would, so that it does not find the lock of an earlier test.
 */
export async function createOrder(
  sandbox: TestSandbox,
  pair: Pair,
  more: Partial<CreateOrderRequest> = {},
): Promise<CreatedOrder> {
  const destination = more.destination ?? (await sandbox.remote.freshAddress(pair.to_network))
  const request: CreateOrderRequest = {
    ...pair,
    amount: USUAL_AMOUNT[pair.from as Currency],
    rate_type: 'fixed',
    destination,
    ...more,
  }
  if (request.rate_type === 'fixed' && request.rate_id === undefined) {
    const { amount } = request
    request.rate_id = (await sandbox.client.getRate({ ...pair, amount, rate_type: 'fixed' })).rate_id
  }
  const order = await sandbox.client.createOrder(request)
  sandbox.log(
    `${order.order_id}: ${order.deposit_amount} ${request.from} → ${request.to}, ${request.rate_type}`,
  )
  return order
}

/** Pays, and buries the payment. Without an amount: what the order asks. Gives the transaction's hash. */
export async function payAndBury(
  sandbox: TestSandbox,
  order: Pick<Order, 'order_id' | 'deposit_network'>,
  amount?: number | string,
): Promise<string> {
  const txHash = await sandbox.remote.pay(order.order_id, amount)
  sandbox.log(`${order.order_id} is paid ${amount ?? 'as asked'}: ${txHash}`)
  await sandbox.bury(order.deposit_network as NetworkName)
  return txHash
}

/** From wherever it is to DONE: waits for the payout, buries it, and checks on the chain that it arrived to the unit. */
export async function expectPaidOut(
  sandbox: TestSandbox,
  order: Pick<Order, 'order_id' | 'receive_network' | 'receive_currency' | 'destination'>,
): Promise<Order> {
  const { order_id: id, receive_network: network, destination } = order
  await sandbox.waitForStatus(id, 'WITHDRAW', 'DONE')
  await sandbox.bury(network as NetworkName)
  const done = await sandbox.waitForStatus(id, 'DONE')
  const currency = order.receive_currency as Currency
  const arrived = await balanceOf(sandbox, destination, currency, network as NetworkName)
  expect(arrived).toBe(chainUnits(done.receive_final_amount, currency, network as NetworkName))
  return done
}

/** What the network answered to each attempt to pay. */
export async function answersOf({ rows }: TestSandbox, orderId: string): Promise<(string | null)[]> {
  const found = await rows<{ answer: string | null }>(
    'SELECT a.answer FROM attempts a JOIN outflows USING (bucket, payout_id) WHERE order_id = $1',
    [orderId],
  )
  return found.map(({ answer }) => answer)
}

/** From REFUND to REFUNDED: buries the refund, and checks on the chain that it arrived to the unit. */
export async function expectRefunded(
  sandbox: TestSandbox,
  order: Pick<Order, 'order_id' | 'deposit_network' | 'deposit_currency'>,
): Promise<Order> {
  const { order_id: id, deposit_network: network } = order
  await sandbox.eventually(`the refund of ${id} is sent`, async () => {
    expect((await sandbox.client.getOrder(id)).refund?.tx_hash ?? null).not.toBeNull()
  })
  await sandbox.bury(network as NetworkName)
  const refunded = await sandbox.waitForStatus(id, 'REFUNDED')
  const { refund } = refunded
  if (refund === undefined) throw new Error('a refunded order tells its refund')
  const currency = order.deposit_currency as Currency
  const arrived = await balanceOf(sandbox, refund.address, currency, network as NetworkName)
  expect(arrived).toBe(chainUnits(refund.amount, currency, network as NetworkName))
  return refunded
}

/** An order that stands in EMERGENCY because it was paid this amount. */
export async function createUnderpaid(
  sandbox: TestSandbox,
  pair: Pair,
  amount: number | string,
  more: Partial<CreateOrderRequest> = {},
): Promise<Order> {
  const order = await createOrder(sandbox, pair, more)
  await payAndBury(sandbox, order, amount)
  return sandbox.waitForStatus(order.order_id, 'EMERGENCY')
}

/** Every status the order has had, from its event log. */
export async function statusesOf({ rows }: TestSandbox, orderId: string): Promise<string[]> {
  const events = await rows<{ status: string }>(
    'SELECT status FROM events WHERE order_id = $1 ORDER BY sequence',
    [orderId],
  )
  return events.map(({ status }) => status)
}

/** What the ledger holds of an account in an asset because of one order; a debit is positive. */
export async function bookedFor(
  { rows }: TestSandbox,
  orderId: string,
  account: string,
  asset: string,
): Promise<bigint> {
  const [sum] = await rows<{ units: bigint }>(
    `SELECT coalesce(sum(CASE WHEN debit = $2 THEN units ELSE -units END), 0)::numeric(78,0) AS units
     FROM journal WHERE owner = $1 AND asset = $3 AND $2 IN (debit, credit)`,
    [orderId, account, asset],
  )
  return sum?.units ?? 0n
}

export type DepositRow = {
  tx_hash: string
  asset: string
  units: bigint
  role: string
  state: string
  is_late: boolean
}

export function depositsOf({ rows }: TestSandbox, orderId: string): Promise<DepositRow[]> {
  return rows<DepositRow>('SELECT * FROM deposits WHERE order_id = $1 ORDER BY seen_at_ms, deposit_key', [
    orderId,
  ])
}
