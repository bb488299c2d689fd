import { findOrders, findVersions, type VersionedOrder } from '../../db/orders.ts'
import { BoundedMap } from '../../domain/bounded_map.ts'
import { assetOf } from '../../domain/catalog/assets.ts'
import type { OrderId } from '../../domain/orders/identifiers.ts'
import type { Order } from '../../domain/orders/order.ts'
import { batched } from '../batched.ts'
import type { MarketBoard } from '../market.ts'
import { viewOrder } from '../view.ts'
import type { World } from '../world.ts'
import type { OrderView } from './desk.ts'

/** An order as the database has it now, and how its client sees it. */
export type Look = { readonly order: Order; readonly view: OrderView }

type Remembered = VersionedOrder & {
  readonly view: OrderView
  /** The view counts confirmations from here. */
  readonly headHeight: number | null
}

/** A few kilobytes each. */
export const LOOKS_REMEMBERED_MAX = 5_000

/**
 * Looks at orders for their clients, who ask for the same ones again and again. Every look asks the database; what it
 * asks for an order that was seen before is the version, and only another version is read whole and put into words.
 * As long as nothing changed, `view` is the same object. Looks that come together are one statement, and one that comes
 * while a statement is under way waits for the next: what happened before a look is in it.
 */
export function orderLooks(
  world: Pick<World, 'db' | 'market' | 'chains' | 'clock'>,
  rememberedMax = LOOKS_REMEMBERED_MAX,
): (orderId: OrderId) => Promise<Look | null> {
  const remembered = new BoundedMap<OrderId, Remembered>(rememberedMax)
  const readVersion = batched((orderIds: readonly OrderId[]) => findVersions(world.db, orderIds), {
    endOfTurn: world.clock.endOfTurn,
  })
  const readWhole = batched(async (orderIds: readonly OrderId[]) => {
    const orders = await findOrders(world.db, orderIds)
    return orderIds.map((orderId) => orders.get(orderId) ?? null)
  })
  const remember = (look: Remembered): Remembered => {
    // Under the id that the database told: the client's is a piece of its request, and would keep all of that.
    remembered.set(look.order.terms.id, look)
    return look
  }
  return async (orderId) => {
    const known = remembered.get(orderId)
    if (known !== undefined && known.version === (await readVersion(orderId))) {
      return standsAsSeen(known, world.market) ? known : remember(see(known, world))
    }
    const read = await readWhole(orderId)
    return read === null ? null : remember(see(read, world))
  }
}

function see({ order, version }: VersionedOrder, world: Pick<World, 'market' | 'chains'>): Remembered {
  return { order, version, view: viewOrder(order, world), headHeight: headOf(order, world.market) }
}

/** Offers of an emergency follow the market at every moment. */
function standsAsSeen({ order, headHeight }: Remembered, market: MarketBoard): boolean {
  return order.state.status !== 'EMERGENCY' && headHeight === headOf(order, market)
}

function headOf({ terms }: Order, market: MarketBoard): number | null {
  return market.headHeight(assetOf(terms.from).chain)
}
