import type { CreatedOrder, CreateOrderRequest, Order } from '@cambist/sdk'
import { isAddressEqual } from 'viem'
import { reserveAddresses } from '../../../src/db/addresses.ts'
import { assert } from '../../../src/domain/assert.ts'
import { networkChains } from '../../../src/domain/catalog/networks.ts'
import { chainUnits } from '../../harness/amounts.ts'
import type { Chance } from '../../harness/chance.ts'
import { createOrder, type Pair } from '../../harness/orders.ts'
import type { NetworkName, TestSandbox } from '../../harness/test_sandbox.ts'
import { type ChainDiary, type ForkingChain, forkingChains, openDiary } from './chain_diary.ts'

/** A transaction that the test sent to an order's address. */
export type Payment = { readonly txHash: string; readonly units: bigint }

export type StormOrder = {
  readonly created: CreatedOrder
  readonly chain: ForkingChain
  readonly refundAddress: string
  /** So deep a payment has to be. */
  readonly confirmations: number
  readonly payments: Payment[]
}

/** Where an order is, as far as a storm cares. */
const stages = ['NEW', 'PENDING', 'EXCHANGE', 'payout sent', 'payout mined', 'EMERGENCY', 'DONE'] as const
export type Stage = (typeof stages)[number]

export type Storm = {
  readonly sandbox: TestSandbox
  readonly chance: Chance
  readonly diaries: Readonly<Record<ForkingChain, ChainDiary>>
  readonly orders: StormOrder[]
  /** How often an order was struck while it was there; of a reorganisation, only if it took a block of the order's. */
  readonly struck: Record<'reorg' | 'replacement', Record<Stage, number>>
  /** Payouts and refunds that were taken out of their block, each time. */
  readonly orphanedPayouts: Record<ForkingChain, number>
}

/** A bitcoin is 65,000 of them, and a long storm has many hundred orders. */
const LARGE_ORDERS_USDT = 100_000_000n * 10n ** 6n

export async function openStorm(sandbox: TestSandbox, chance: Chance): Promise<Storm> {
  const [reserve = ''] = await reserveAddresses(sandbox.service.world.db, 'evm')
  await sandbox.devnet.send('ETH', 'USDT', reserve, LARGE_ORDERS_USDT)
  // Reserves and token contracts are not what the storm is about: they lie below its deepest reach.
  for (const chain of forkingChains) await sandbox.mine(chain, 30)
  const none = () => Object.fromEntries(stages.map((stage) => [stage, 0])) as Record<Stage, number>
  return {
    sandbox,
    chance,
    diaries: {
      BTC: await openDiary(sandbox, 'BTC'),
      ETH: await openDiary(sandbox, 'ETH'),
      BNB: await openDiary(sandbox, 'BNB'),
      TRX: await openDiary(sandbox, 'TRX'),
    },
    orders: [],
    struck: { reorg: none(), replacement: none() },
    orphanedPayouts: { BTC: 0, ETH: 0, BNB: 0, TRX: 0 },
  }
}

/** What orders wait for (spec 8), said once more: the service must not be asked about itself. */
const CONFIRMATIONS = { BTC: 3, ETH: 12, BNB: 12, TRX: 20 } as const
const CONFIRMATIONS_LARGE_BTC = 6
const LARGE_BTC_FROM = 1

export async function placeOrder(
  { sandbox, orders }: Storm,
  pair: Pair,
  more: Partial<CreateOrderRequest> = {},
): Promise<StormOrder> {
  const refundAddress = await sandbox.remote.freshAddress(pair.from_network)
  const created = await createOrder(sandbox, pair, { refund_address: refundAddress, ...more })
  const chain = forkingChain(pair.from_network)
  const isLarge = chain === 'BTC' && Number(created.deposit_amount) >= LARGE_BTC_FROM
  const order = {
    created,
    chain,
    refundAddress,
    confirmations: isLarge ? CONFIRMATIONS_LARGE_BTC : CONFIRMATIONS[chain],
    payments: [],
  }
  orders.push(order)
  return order
}

export function forkingChain(network: string): ForkingChain {
  const chain = forkingChains.find((one) => one === networkChains[network as NetworkName])
  assert(chain !== undefined, `blocks of ${network} may leave their chain`)
  return chain
}

export type Staged = StormOrder & { readonly stage: Stage; readonly payout: string | null }

/** Orders that are not forgotten yet: those that have not ended, and those that ended in blocks that may still go. */
export async function underWay(storm: Storm): Promise<Staged[]> {
  const { sandbox, orders, diaries } = storm
  const rows = await sandbox.rows<{
    order_id: string
    status: Order['status']
    payout_tx_hash: string | null
  }>('SELECT order_id, status, payout_tx_hash FROM orders WHERE order_id = ANY($1)', [
    orders.map(({ created }) => created.order_id),
  ])
  const byId = new Map(rows.map((row) => [row.order_id, row]))
  return orders.flatMap((order) => {
    const row = byId.get(order.created.order_id)
    if (row === undefined || row.status === 'EXPIRED') return []
    const payout = row.payout_tx_hash
    const depth =
      payout === null ? 0 : Math.max(...forkingChains.map((chain) => diaries[chain].depthOf(payout)))
    const hasEnded = row.status === 'DONE' || row.status === 'REFUNDED'
    if (hasEnded && depth > FORGOTTEN_DEPTH) return []
    return [{ ...order, payout, stage: stageOf(row.status, payout, depth) }]
  })
}

const FORGOTTEN_DEPTH = 40

function stageOf(status: Order['status'], payout: string | null, depth: number): Stage {
  switch (status) {
    case 'WITHDRAW':
    case 'REFUND':
      return payout === null ? 'EXCHANGE' : depth === 0 ? 'payout sent' : 'payout mined'
    case 'DONE':
    case 'REFUNDED':
      return 'DONE'
    case 'NEW':
    case 'PENDING':
    case 'EXCHANGE':
    case 'EMERGENCY':
      return status
    case 'EXPIRED':
      throw new Error('an order that expired is over')
  }
}

export function unitsOf({ created }: StormOrder, amount: number): bigint {
  return chainUnits(amount, created.deposit_currency as 'BTC', created.deposit_network as NetworkName)
}

export async function pay(
  { sandbox }: Storm,
  { created, chain, payments }: StormOrder,
  units: bigint,
): Promise<string> {
  const { txHash } = await sandbox.devnet.send(
    chain,
    created.deposit_currency as 'BTC',
    created.deposit_address,
    units,
  )
  notePayment(payments, { txHash, units })
  return txHash
}

/** A payment that was lost and is made, or replaced, again under the same nonce and fees is the same transaction. */
export function notePayment(payments: StormOrder['payments'], payment: Payment): void {
  if (payments.every(({ txHash }) => txHash !== payment.txHash)) payments.push(payment)
}

export async function mine({ sandbox, diaries }: Storm, chain: ForkingChain, blocks: number): Promise<void> {
  await sandbox.mine(chain, blocks)
  await diaries[chain].read()
}

/** A payment that was never sent again leaves a nonce that all later ones of the faucet wait for. */
export async function fillFaucetGaps(storm: Storm, chain: 'ETH' | 'BNB'): Promise<void> {
  const { client } = storm.sandbox.devnet.evm(chain)
  const to = (await storm.sandbox.remote.freshAddress(chain)) as `0x${string}`
  for (const nonce of await faucetGaps(storm, chain)) await client.sendTransaction({ to, value: 1n, nonce })
}

/** Nonces of the faucet below one that waits, which nobody has sent. What others wait for is theirs to mend. */
async function faucetGaps({ sandbox }: Storm, chain: 'ETH' | 'BNB'): Promise<number[]> {
  const { client } = sandbox.devnet.evm(chain)
  const { address } = client.account
  const { pending, queued } = await client.getTxpoolContent()
  const waiting = [pending, queued].flatMap((pool) =>
    Object.entries(pool).flatMap(([sender, byNonce]) =>
      isAddressEqual(sender as `0x${string}`, address) ? Object.keys(byNonce).map(Number) : [],
    ),
  )
  const mined = await client.getTransactionCount({ address, blockTag: 'latest' })
  const last = Math.max(mined, ...waiting)
  return Array.from({ length: last - mined }, (_, at) => mined + at).filter(
    (nonce) => !waiting.includes(nonce),
  )
}
