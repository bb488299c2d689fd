import { type DueExchange, findDueExchanges, findOrder, postponeExchange } from '../db/orders.ts'
import { assert } from '../domain/assert.ts'
import { assetOf } from '../domain/catalog/assets.ts'
import { received } from '../domain/orders/order.ts'
import { quoteReceived } from '../domain/quotes/quote.ts'
import { apply } from './apply.ts'
import { atOnce } from './at_once.ts'
import type { World } from './world.ts'

const ORDERS_A_STEP = 50
const TRY_AGAIN_MS = 1_000

/** Exchanges the orders whose deposits are deep enough. True: there may be more. */
export async function exchangeOrders(world: World): Promise<boolean> {
  const due = await findDueExchanges(world.db, world.clock.nowMs(), ORDERS_A_STEP)
  await atOnce(world.policy.atOnce, due, (exchange) => exchangeOrder(world, exchange))
  return due.length === ORDERS_A_STEP
}

async function exchangeOrder(world: World, due: DueExchange): Promise<void> {
  const order = await findOrder(world.db, due.orderId)
  assert(order !== null, 'an order that is due exists')
  if (order.state.status !== 'EXCHANGE' || order.state.settlement !== null) return
  const market = world.market.read(assetOf(order.terms.from), assetOf(order.terms.to), order.terms.rateType)
  if (!market.ok) return postpone(world, due, market.rejection.message)
  const quote = quoteReceived(market.value, received(order))
  const pays = order.terms.rateType === 'fixed' ? order.terms.promises : (quote?.to ?? null)
  if (pays !== null && pays.units > market.value.reserve.units) {
    return postpone(world, due, `the reserve of ${order.terms.to} does not cover it`)
  }
  const settle = () => apply(world, due.orderId, `priced:${due.sequence}`, { kind: 'ExchangePriced', quote })
  await (pays === null ? settle() : world.market.setAside(pays, settle))
}

/** The order stays where it is and is tried again; after too long, a person decides (DESIGN 3, Lifecycle). */
async function postpone(world: World, due: DueExchange, why: string): Promise<void> {
  const nowMs = world.clock.nowMs()
  if (due.troubleSinceMs !== null && nowMs - due.troubleSinceMs >= world.policy.stallMs) {
    await apply(world, due.orderId, `stalled:${due.sequence}`, { kind: 'ExchangeStalled' })
    return
  }
  if (due.troubleSinceMs === null) world.log.warn({ order: due.orderId, why }, 'an exchange has to wait')
  await postponeExchange(world.db, due.orderId, nowMs, nowMs + TRY_AGAIN_MS)
}
