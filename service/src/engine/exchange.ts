import {
  type DueExchange,
  findDueExchanges,
  findOrder,
  postponeExchange,
  saveExchangeTrouble,
} from '../db/orders.ts'
import { assert } from '../domain/assert.ts'
import { assetOf } from '../domain/catalog/assets.ts'
import type { Fact } from '../domain/orders/facts.ts'
import { type Order, promised, received } from '../domain/orders/order.ts'
import { accept, type Outcome, refuse } from '../domain/outcome.ts'
import { type Quote, quoteReceived } from '../domain/quotes/quote.ts'
import { apply } from './apply.ts'
import { atOnce } from './at_once.ts'
import { type MarketBoard, type MarketRejection, whyUnavailable } from './market.ts'
import type { World } from './world.ts'

const ORDERS_A_STEP = 50
const TRY_AGAIN_MS = 1_000
/** One that failed rests as long again as it has been in trouble, but not for longer. */
const FAILED_REST_MAX_MS = 60_000

/** Exchanges the orders whose deposits are deep enough. True: there may be more. */
export async function exchangeOrders(world: World): Promise<boolean> {
  const due = await findDueExchanges(world.db, world.clock.nowMs(), ORDERS_A_STEP)
  await atOnce(world.policy.atOnce, due, (exchange) => exchangeSafely(world, exchange))
  return due.length === ORDERS_A_STEP
}

/**
 * An order that fails whatever is tried would be the first to be due each time, and hold its amount: it rests for longer and longer,
 * and none waits behind it.
 */
async function exchangeSafely(world: World, due: DueExchange): Promise<void> {
  try {
    await exchangeOrder(world, due)
  } catch (error) {
    world.log.error({ order: due.orderId, err: error }, 'an exchange failed')
    const nowMs = world.clock.nowMs()
    const troubleMs = nowMs - (due.troubleSinceMs ?? nowMs)
    const restMs = Math.min(Math.max(troubleMs, TRY_AGAIN_MS), FAILED_REST_MAX_MS)
    const why = String(error)
    await postponeExchange(world.db, due.orderId, why, nowMs, nowMs + restMs)
    if (isStalled(world, due)) await giveUpSafely(world, due, why)
  }
}

async function exchangeOrder(world: World, due: DueExchange): Promise<void> {
  const order = await findOrder(world.db, due.orderId)
  assert(order !== null, 'an order that is due exists')
  if (order.state.status !== 'EXCHANGE' || order.state.settlement !== null) return
  const priced = priceOrder(order, world.market)
  if (!priced.ok) return postpone(world, due, priced.rejection.message)
  const quote = priced.value
  const pays = quote?.to ?? null
  if (pays !== null && pays.units > world.market.reserve(assetOf(pays.asset), due.orderId).units) {
    return postpone(world, due, `the reserve of ${order.terms.to} does not cover it`)
  }
  const settle = () => apply(world, due.orderId, `priced:${due.sequence}`, { kind: 'ExchangePriced', quote })
  await (pays === null ? settle() : world.market.setAside(due.orderId, pays, settle))
}

/**
 * Null when what was received is too little to be paid out. A fixed order waits for its chains, and for no price: it has its rate.
 * A float one goes with the market, and not with what we charge others by now: its fee was agreed.
 */
function priceOrder(order: Order, board: MarketBoard): Outcome<Quote | null, MarketRejection> {
  const { from, to, rateType, feeShare } = order.terms
  if (rateType === 'fixed') {
    const rejection = whyUnavailable(board.isUsable, assetOf(from), assetOf(to))
    return rejection === null ? accept(promised(order)) : refuse(rejection)
  }
  const market = board.read(assetOf(from), assetOf(to), rateType)
  if (!market.ok) return market
  // The same one where it can be, for which what quotes need again and again is worked out once.
  const agreed = market.value.fee === feeShare ? market.value : { ...market.value, fee: feeShare }
  return accept(quoteReceived(agreed, received(order)))
}

/** The order stays where it is and is tried again; after too long, a person decides (docs/api.md, Lifecycle). */
async function postpone(world: World, due: DueExchange, why: string): Promise<void> {
  if (isStalled(world, due)) return giveUp(world, due, why)
  if (due.troubleSinceMs === null) world.log.warn({ order: due.orderId, why }, 'an exchange has to wait')
  const nowMs = world.clock.nowMs()
  await postponeExchange(world.db, due.orderId, why, nowMs, nowMs + TRY_AGAIN_MS)
}

function isStalled({ clock, policy }: World, { troubleSinceMs }: DueExchange): boolean {
  return troubleSinceMs !== null && clock.nowMs() - troubleSinceMs >= policy.stallMs
}

async function giveUp(world: World, { orderId, sequence }: DueExchange, why: string): Promise<void> {
  const fact: Fact = { kind: 'ExchangeStalled', payoutId: null, sequence }
  const applied = await apply(world, orderId, `stalled:${sequence}`, fact, async (tx, { state }) => {
    if (state.status === 'EMERGENCY') await saveExchangeTrouble(tx, orderId, why)
  })
  if (applied.kind === 'changed') world.log.warn({ order: orderId, why }, 'an exchange was given up')
}

/** Where nothing of an order can be written down, this cannot either: it rests. */
async function giveUpSafely(world: World, due: DueExchange, why: string): Promise<void> {
  try {
    await giveUp(world, due, why)
  } catch (error) {
    world.log.error({ order: due.orderId, err: error }, 'an exchange that fails could not be given up')
  }
}
