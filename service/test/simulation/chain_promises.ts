import { type AssetId, assetOf } from '../../src/domain/catalog/assets.ts'
import { amountOf, fromChainUnits } from '../../src/domain/money/amount.ts'
import type { OrderStatus } from '../../src/domain/orders/order.ts'
import type { SimulatedNodes } from './chains/simulated_chains.ts'
import type { Ground } from './ground.ts'
import type { Witness } from './witness.ts'

/**
 * What only whoever made the chains can say: what people outside hold in the end, whoever signed it, and what the
 * witness saw.
 */
export async function findBrokenPromises(
  rows: Ground['rows'],
  nodes: SimulatedNodes,
  { depths, problems }: Witness,
): Promise<string[]> {
  return [...problems, ...(await findWrongPayments(rows, nodes)), ...(await findHastyCredits(rows, depths))]
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
  readonly destination: string
  readonly refund_address: string | null
  readonly paid: string | null
  readonly refunded: string | null
}

/** Every order has addresses of its own outside, so that what they hold is what was paid for it. */
async function findWrongPayments(rows: Ground['rows'], nodes: SimulatedNodes): Promise<string[]> {
  const orders = await rows<Ended>(
    `SELECT order_id, status, to_asset, from_asset, destination, refund_address, settled_paid::text AS paid,
       refund_units::text AS refunded FROM orders`,
  )
  const owed = new Set((await findOwed(rows)).map(({ order_id }) => order_id))
  return orders.flatMap((order) => {
    const { order_id, status, paid, refunded } = order
    const hasLeft = !owed.has(order_id)
    const due = status === 'DONE' && hasLeft ? BigInt(paid ?? 0) : 0n
    const back = status === 'REFUNDED' && hasLeft ? BigInt(refunded ?? 0) : 0n
    return [
      ...differs(nodes, order.to_asset, order.destination, due, `${order_id} is ${status}`),
      ...differs(nodes, order.from_asset, order.refund_address, back, `${order_id} is ${status}, its refund`),
    ]
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
  const { chain } = assetOf(asset)
  // By the newest block, also where it is not told yet.
  const chainUnits =
    chain === 'BTC'
      ? nodes.BTC.holds([address])
      : nodes[chain].holds(asset, [address], Number.POSITIVE_INFINITY)
  const { units } = fromChainUnits(asset, chainUnits)
  if (units === due) return []
  return [
    `nothing is paid twice or wrongly: ${what}: ${address} got ${units} of ${amountOf(asset, due).units} ${asset}`,
  ]
}

type Credit = {
  readonly order_id: string
  readonly fact_key: string
  readonly required_confirmations: number
}

async function findHastyCredits(rows: Ground['rows'], depths: Witness['depths']): Promise<string[]> {
  const credits = await rows<Credit>(
    `SELECT order_id, fact_key, required_confirmations FROM facts JOIN orders USING (bucket, order_id)
     WHERE kind = 'DepositConfirmed' AND outcome = 'changed'`,
  )
  return credits.flatMap(({ order_id, fact_key, required_confirmations: required }) => {
    const depth = depths.get(fact_key) ?? 0
    return depth >= required
      ? []
      : [`nothing is credited before it is deep: ${order_id} by ${fact_key}, ${depth} of ${required} deep`]
  })
}
