import { assert } from '../../src/domain/assert.ts'
import { type Asset, type AssetId, assetOf } from '../../src/domain/catalog/assets.ts'
import { type ChainId, chainFacts } from '../../src/domain/catalog/networks.ts'
import { amountOf, fromChainUnits, parseAmount } from '../../src/domain/money/amount.ts'
import type { OrderStatus } from '../../src/domain/orders/order.ts'
import type { OrderView } from '../../src/engine/desks/desk.ts'
import type { SimulatedNodes } from './chains/simulated_chains.ts'
import { refundPlace, type Wanted } from './customers.ts'
import type { Ground } from './ground.ts'
import type { RequiredDepth } from './required_depth.ts'
import type { Witness } from './witness.ts'

/**
 * What only whoever made the chains can say: what people outside hold in the end, whoever signed it, and what the
 * witness saw.
 */
export async function findBrokenPromises(
  rows: Ground['rows'],
  nodes: SimulatedNodes,
  { depths, problems, requiredDepth }: Witness,
  wanted: readonly Wanted[],
): Promise<string[]> {
  const depthAsked = (orderId: string, chain: ChainId) => {
    const shown = clientOf(wanted, orderId)?.order
    return shown == null ? chainFacts[chain].confirmations : depthOf(shown, requiredDepth)
  }
  return [
    ...problems,
    ...(await findWrongPayments(rows, nodes, wanted)),
    ...(await findBrokenRates(rows, wanted)),
    ...(await findHastyCredits(rows, depths, depthAsked)),
    ...findWrongDepths(wanted, requiredDepth),
  ]
}

export type Owed = { readonly order_id: string }

/** Orders that ended with a payment in coins that was final, lost its block and can never be mined again. */
export function findOwed(rows: Ground['rows']): Promise<Owed[]> {
  return rows<Owed>(
    `SELECT order_id FROM orders o JOIN outflows f USING (bucket, payout_id, order_id)
     WHERE status IN ('DONE', 'REFUNDED') AND f.state = 'failed' AND f.chain = 'BTC' ORDER BY order_id`,
  )
}

type Ended = {
  readonly order_id: string
  readonly status: OrderStatus
  readonly to_asset: AssetId
  readonly from_asset: AssetId
  readonly paid: string | null
  readonly refunded: string | null
  /** By the last event: what was told of the end. */
  readonly told_paid: string | null
  readonly told_refunded: string | null
  /** The transaction that the order names, and the one that its last event names. */
  readonly tx_hash: string | null
  readonly told_tx_hash: string | null
  /** It lost its block after that event, and the same or another attempt was mined instead. */
  readonly is_final_again: boolean
  /** Whether its last event names a transaction that was signed for it. */
  readonly is_own_told: boolean
}

/**
 * Every client has named addresses of its own, so that what they hold is what was paid to it: whatever the service has written down.
 * A refund goes where the action says that asks for it.
 */
async function findWrongPayments(
  rows: Ground['rows'],
  nodes: SimulatedNodes,
  wanted: readonly Wanted[],
): Promise<string[]> {
  const orders = await rows<Ended>(
    `SELECT order_id, orders.status, to_asset, from_asset, settled_paid::text AS paid, refund_units::text AS refunded,
       snapshot->>'receive_final_amount' AS told_paid, snapshot #>> '{refund,amount}' AS told_refunded,
       payout_tx_hash AS tx_hash, told_tx_hash,
       EXISTS (SELECT FROM attempts a WHERE (a.bucket, a.payout_id, a.tx_hash) = (orders.bucket, orders.payout_id, told_tx_hash))
         AS is_own_told,
       EXISTS (SELECT FROM facts f WHERE (f.bucket, f.order_id) = (orders.bucket, orders.order_id)
         AND fact_key LIKE '%:final_again:%') AS is_final_again
     FROM orders JOIN events USING (bucket, order_id, sequence)
       CROSS JOIN LATERAL (SELECT CASE orders.status WHEN 'DONE' THEN snapshot->>'withdraw_tx_hash'
         ELSE snapshot #>> '{refund,tx_hash}' END AS told_tx_hash) AS told`,
  )
  const owed = new Set((await findOwed(rows)).map(({ order_id }) => order_id))
  return orders.flatMap((order) => {
    const { order_id, status, paid, refunded } = order
    const client = clientOf(wanted, order_id)
    if (client === null) return [`every order is somebody's: nobody has asked for ${order_id}`]
    const { destination, refundAddress } = client.request
    const askedBack = refundPlace(order)
    const hasLeft = !owed.has(order_id)
    const due = status === 'DONE' && hasLeft ? BigInt(paid ?? 0) : 0n
    const back = status === 'REFUNDED' && hasLeft ? BigInt(refunded ?? 0) : 0n
    return [
      ...differs(nodes, order.to_asset, destination, due, `${order_id} is ${status}`),
      ...differs(nodes, order.from_asset, askedBack, back, `${order_id} is ${status}, its refund`),
      ...differs(nodes, order.from_asset, refundAddress, 0n, `${order_id} is ${status}, refunded elsewhere`),
      ...(status === 'DONE' ? toldWrongly(order, order.to_asset, order.told_paid, paid) : []),
      ...(status === 'REFUNDED' ? toldWrongly(order, order.from_asset, order.told_refunded, refunded) : []),
      ...(hasLeft ? toldElsewhere(nodes, order) : []),
    ]
  })
}

/** What an order came to is looked for on the chain; its last event, which webhooks and mails repeat, has to say the same. */
function toldWrongly(
  { order_id, status }: Ended,
  asset: AssetId,
  told: string | null,
  due: string | null,
): string[] {
  const amount = parseAmount(assetOf(asset), told ?? '')
  return amount.ok && amount.value.units === BigInt(due ?? 0)
    ? []
    : [
        `what is told has arrived: ${order_id} is ${status} with ${due} of ${asset}, and its event says ${told}`,
      ]
}

/**
 * Of several attempts only the one that was mined can be shown to whoever asks where his money is. An event that was told before
 * another one was mined instead named one of them.
 */
function toldElsewhere(
  nodes: SimulatedNodes,
  { order_id, status, from_asset, to_asset, tx_hash, told_tx_hash, is_final_again, is_own_told }: Ended,
): string[] {
  if (status !== 'DONE' && status !== 'REFUNDED') return []
  const { chain } = assetOf(status === 'DONE' ? to_asset : from_asset)
  const told = is_final_again ? [tx_hash] : [tx_hash, told_tx_hash]
  const hasPaid = (txHash: string | null) => {
    const found = txHash === null ? null : nodes[chain].lookup(txHash)
    return found?.where === 'block' && found.succeeded
  }
  return told.every(hasPaid) && is_own_told
    ? []
    : [
        `what is told is in a block: ${order_id} is ${status} by ${tx_hash}, its event by ${told_tx_hash} on ${chain}`,
      ]
}

function clientOf(wanted: readonly Wanted[], orderId: string): Wanted | null {
  return wanted.find(({ order }) => order?.order_id === orderId) ?? null
}

type Exchanged = { readonly order_id: string; readonly to_asset: AssetId; readonly paid: string }

/** A fixed order that nothing went wrong with pays what its client was shown when it was made. */
async function findBrokenRates(rows: Ground['rows'], wanted: readonly Wanted[]): Promise<string[]> {
  const orders = await rows<Exchanged>(
    `SELECT order_id, to_asset, settled_paid::text AS paid FROM orders o
     WHERE rate_type = 'fixed' AND status = 'DONE'
       AND NOT EXISTS (SELECT FROM events e WHERE (e.bucket, e.order_id) = (o.bucket, o.order_id) AND e.status = 'EMERGENCY')`,
  )
  return orders.flatMap(({ order_id, to_asset, paid }) => {
    const shown = clientOf(wanted, order_id)?.order?.receive_amount ?? ''
    const promised = parseAmount(assetOf(to_asset), shown)
    return promised.ok && promised.value.units === BigInt(paid)
      ? []
      : [`what was promised is paid: ${order_id} paid ${paid} units of ${shown} ${to_asset}`]
  })
}

function differs(
  nodes: SimulatedNodes,
  asset: AssetId,
  address: string | null,
  due: bigint,
  what: string,
): string[] {
  if (address === null) return []
  const units = heldBy(nodes, assetOf(asset), address)
  if (units === due) return []
  return [
    `nothing is paid twice or wrongly: ${what}: ${address} got ${units} of ${amountOf(asset, due).units} ${asset}`,
  ]
}

/** By the newest block, also where it is not told yet; ledger units. */
export function heldBy(nodes: SimulatedNodes, { id, chain }: Asset, address: string): bigint {
  const chainUnits =
    chain === 'BTC' ? nodes.BTC.holds([address]) : nodes[chain].holds(id, [address], Number.POSITIVE_INFINITY)
  return fromChainUnits(id, chainUnits).units
}

type Credit = {
  readonly order_id: string
  readonly fact_key: string
  readonly chain: ChainId
}

/** What is required is what the chain asks for so much, whatever the order says. */
async function findHastyCredits(
  rows: Ground['rows'],
  depths: Witness['depths'],
  depthAsked: (orderId: string, chain: ChainId) => number,
): Promise<string[]> {
  const credits = await rows<Credit>(
    `SELECT order_id, fact_key, split_part(fact_key, ':', 1) AS chain FROM facts
     WHERE kind = 'DepositConfirmed' AND outcome = 'changed'`,
  )
  return credits.flatMap(({ order_id, fact_key, chain }) => {
    const required = depthAsked(order_id, chain)
    const depth = depths.get(fact_key) ?? 0
    return depth >= required
      ? []
      : [`nothing is credited before it is deep: ${order_id} by ${fact_key}, ${depth} of ${required} deep`]
  })
}

/** Whoever waits is told for how many blocks. */
function findWrongDepths(wanted: readonly Wanted[], requiredDepth: RequiredDepth): string[] {
  return wanted.flatMap(({ order }) => {
    if (order === null) return []
    const { order_id, deposit_required_confirmations: shown } = order
    const required = depthOf(order, requiredDepth)
    return shown === required
      ? []
      : [`how long it takes is shown: ${order_id} shows ${shown} confirmations and waits for ${required}`]
  })
}

/** Of what an order asks for. */
function depthOf(
  { deposit_currency, deposit_network, deposit_amount }: OrderView,
  requiredDepth: RequiredDepth,
): number {
  const asset = `${deposit_currency}:${deposit_network}` as AssetId
  const asked = parseAmount(assetOf(asset), deposit_amount)
  assert(asked.ok, `${deposit_amount} is an amount`)
  return requiredDepth(asset, asked.value.units)
}
