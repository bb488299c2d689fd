import type { Devnet } from '@cambist/devnet'
import { assetOf } from '../../../src/domain/catalog/assets.ts'
import { amountOf, toChainUnits } from '../../../src/domain/money/amount.ts'
import { isStopping } from '../../../src/engine/books/stopped_outflows.ts'
import { eventually, Hopeless } from '../../harness/eventually.ts'
import type { Inspected } from '../../harness/invariants.ts'
import { readTags, sharingChains, type ToldTags, toldAs } from '../../harness/told_tags.ts'
import { type Customer, endsOf } from './customers.ts'
import { type Due, duesOf } from './dues.ts'

/** What came of every customer: what their own chains tell, against what they were shown. */
export type Settled = {
  readonly payouts: number
  readonly refunds: number
  readonly paidTwice: number
  readonly lost: number
  /** Wrong at any moment whatsoever, a sentence each. */
  readonly certain: readonly string[]
  /** Wrong once everything has ended. */
  readonly problems: readonly string[]
}

type OrderRow = { order_id: string; status: string }

type DepositRow = { order_id: string; tx_hash: string; units: bigint }

/** Asks the nodes what arrived at every address that a customer gave, and the tables what became of every payment. */
export async function settle(
  devnet: Devnet,
  inspected: Inspected,
  customers: readonly Customer[],
): Promise<Settled> {
  const { rows } = inspected
  // The chains first: what they tell now was in the tables before.
  const arrived = await readArrivals(devnet, customers)
  const tags = await readAllTags(devnet, customers)
  const orders = await rows<OrderRow>('SELECT order_id, status FROM orders')
  const deposits = await rows<DepositRow>(
    `SELECT order_id, tx_hash, units FROM deposits WHERE role = 'counted' AND state = 'confirmed'`,
  )
  const found: Found = { payouts: 0, refunds: 0, paidTwice: 0, lost: 0, certain: [], problems: [] }
  const ordered = customers.filter(({ order }) => order !== null)
  if (orders.length !== ordered.length)
    found.problems.push(`${ordered.length} customers have ${orders.length} orders`)
  const known = new Map(orders.map((order) => [order.order_id, order]))
  for (const customer of ordered) {
    const order = known.get(customer.order?.order_id ?? '')
    if (order === undefined) found.problems.push(`${customer.order?.order_id} is not there`)
    else await checkOne(inspected, { customer, order, arrived, tags, deposits, found })
  }
  found.certain.push(...(await findForgotten(inspected)), ...(await findStopped(inspected)))
  return { ...found, problems: [...found.certain, ...found.problems] }
}

/** What an order owes is a row that is due, written in the same moment; a second later at the latest it is there. */
async function findForgotten({ rows }: Inspected): Promise<string[]> {
  const forgotten = await rows<{ order_id: string; payout_id: string }>(
    `SELECT order_id, payout_id FROM orders
     WHERE payout_id IS NOT NULL AND NOT EXISTS (SELECT FROM outflows WHERE outflows.payout_id = orders.payout_id)
       AND updated_at_ms < extract(epoch FROM now()) * 1000 - 1000`,
  )
  return forgotten.map(({ order_id, payout_id }) => `${order_id} owes ${payout_id}, and nobody knows of it`)
}

/** Assets whose outflows the service has stopped: so often in a row nothing honest differs. */
async function findStopped({ rows }: Inspected): Promise<string[]> {
  const compared = await rows<{ asset: string; difference: bigint; differing_count: number }>(
    'SELECT asset, difference, differing_count FROM reconciliations',
  )
  return compared
    .filter(({ differing_count: count }) => isStopping(count))
    .map(({ asset, difference }) => `the ledger of ${asset} differs from the chain by ${difference}`)
}

type Found = { -readonly [Name in keyof Settled]: Settled[Name] extends number ? number : string[] }
type Arrivals = ReadonlyMap<string, readonly bigint[]>
type Case = {
  readonly customer: Customer
  readonly order: OrderRow
  readonly arrived: Arrivals
  readonly tags: ToldTags
  readonly deposits: readonly DepositRow[]
  readonly found: Found
}

async function checkOne({ chains }: Inspected, one: Case): Promise<void> {
  const { customer, order, arrived, found } = one
  const { from, destination, refundAddress, paid } = customer
  const name = `${order.order_id} (${customer.story})`
  const payouts = arrived.get(destination) ?? []
  const refunds = arrived.get(refundAddress) ?? []
  const dues = duesOf(customer)
  found.payouts += payouts.length
  found.refunds += refunds.length
  const isWithin = ({ payout, refund }: Due) => total(payouts) <= payout.most && total(refunds) <= refund.most
  if (!dues.some(isWithin)) {
    found.paidTwice += 1
    found.certain.push(
      `${name} was paid ${list(payouts)} and refunded ${list(refunds)}; due were ${say(dues)}`,
    )
  }
  found.certain.push(...findWrongTags(one, name))
  if (payouts.length + refunds.length > 0) {
    const { chain } = assetOf(from)
    for (const { txHash } of paid) {
      if ((await chains.get(chain)?.lookup(txHash))?.where === 'absent')
        found.certain.push(`${name} was paid although its own payment ${txHash} is nowhere`)
    }
  }
  if (!endsOf(customer).includes(order.status)) found.problems.push(`${name} is ${order.status}`)
  if (isLost(one, dues)) {
    found.lost += 1
    found.problems.push(
      `${name} paid ${paid.map(({ txHash }) => txHash)}; arrived ${list(payouts)} and ${list(refunds)}; due were ${say(dues)}`,
    )
  }
}

/** Whoever shares an account with others has what arrives there only by the tag that he named. */
function findWrongTags({ customer, tags }: Case, name: string): string[] {
  const { from, to, destination, destinationTag, refundAddress, refundTag } = customer
  const wrongAt = (account: string, asked: string | null) =>
    (tags.get(account) ?? [])
      .filter((told) => told !== asked)
      .map((told) => `${name} asked for ${account} with ${asked}, and what arrived there was for ${told}`)
  return [
    ...wrongAt(destination, toldAs(assetOf(to).chain, destinationTag)),
    ...wrongAt(refundAddress, toldAs(assetOf(from).chain, refundTag)),
  ]
}

/** A payment that is in no table, or one credited that nobody made, or less than what is due came back. */
function isLost({ customer, order, arrived, deposits }: Case, dues: readonly Due[]): boolean {
  const { from, destination, refundAddress, story } = customer
  const credited = deposits
    .filter(({ order_id }) => order_id === order.order_id)
    .map(({ tx_hash, units }) => `${tx_hash} ${toChainUnits(amountOf(from, units))}`)
  const paid = story === 'loses the payment' ? [] : customer.paid
  const expected = paid.map(({ txHash, units }) => `${txHash} ${units}`)
  if (credited.toSorted().join() !== expected.toSorted().join()) return true
  const payouts = total(arrived.get(destination) ?? [])
  const refunds = total(arrived.get(refundAddress) ?? [])
  return dues.every(({ payout, refund }) => payouts < payout.least || refunds < refund.least)
}

function total(units: readonly bigint[]): bigint {
  return units.reduce((sum, each) => sum + each, 0n)
}

function list(units: readonly bigint[]): string {
  return units.length === 0 ? 'nothing' : units.join(' + ')
}

function say(dues: readonly Due[]): string {
  const span = ({ least, most }: Due['payout']) => (least === most ? String(most) : `${least} to ${most}`)
  return dues.map(({ payout, refund }) => `${span(payout)} and ${span(refund)}`).join(', or ')
}

/** In chain units: on Bitcoin every output; on Ethereum, whose accounts only hold a sum, that sum. */
async function readArrivals(devnet: Devnet, customers: readonly Customer[]): Promise<Arrivals> {
  const asked = customers.flatMap(({ from, to, destination, refundAddress }) => [
    { asset: assetOf(to), address: destination },
    { asset: assetOf(from), address: refundAddress },
  ])
  const onBitcoin = asked.filter(({ asset }) => asset.chain === 'BTC').map(({ address }) => address)
  const arrived: Map<string, readonly bigint[]> = await scanBitcoin(devnet, onBitcoin)
  for (const { asset, address } of asked.filter(({ asset }) => asset.chain !== 'BTC')) {
    const held = await devnet.balance(asset.chain, asset.currency, address)
    if (held > 0n) arrived.set(address, [held])
  }
  return arrived
}

async function readAllTags(devnet: Devnet, customers: readonly Customer[]): Promise<ToldTags> {
  const asked = customers.flatMap(({ from, to, destination, refundAddress }) => [
    { chain: assetOf(to).chain, account: destination },
    { chain: assetOf(from).chain, account: refundAddress },
  ])
  const told = await Promise.all(
    sharingChains.map((id) =>
      readTags(
        devnet,
        id,
        asked.filter(({ chain }) => chain === id).map(({ account }) => account),
      ),
    ),
  )
  return new Map(told.flatMap((one) => [...one]))
}

const ADDRESSES_A_SCAN = 2_000

async function scanBitcoin(
  devnet: Devnet,
  addresses: readonly string[],
): Promise<Map<string, readonly bigint[]>> {
  const arrived = new Map<string, readonly bigint[]>()
  for (let at = 0; at < addresses.length; at += ADDRESSES_A_SCAN) {
    const unspents = await scanOnce(devnet, addresses.slice(at, at + ADDRESSES_A_SCAN))
    for (const { desc, amount } of unspents) {
      const address = /addr\((\w+)\)/.exec(desc)?.[1] ?? ''
      arrived.set(address, [...(arrived.get(address) ?? []), BigInt(amount.toFixed(8).replace('.', ''))])
    }
  }
  return arrived
}

type Unspent = { readonly desc: string; readonly amount: number }

/** A node scans for one at a time, and the engine compares its reserve with the same node. */
function scanOnce(devnet: Devnet, addresses: readonly string[]): Promise<readonly Unspent[]> {
  const descriptors = addresses.map((address) => `addr(${address})`)
  return eventually('the node has scanned for us', async () => {
    try {
      const { unspents } = await devnet.bitcoin.rpc<{ unspents: Unspent[] }>('scantxoutset', [
        'start',
        descriptors,
      ])
      return unspents
    } catch (error) {
      const isBusy = error instanceof Error && error.message.includes('Scan already in progress')
      throw isBusy ? error : new Hopeless('the scan was refused', { cause: error })
    }
  })
}
