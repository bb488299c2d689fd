import { findSnapshot } from '../../db/books.ts'
import { findOrderPage } from '../../db/order_pages.ts'
import { findOrderByToken } from '../../db/orders.ts'
import { findEarlier } from '../../db/retry_slots.ts'
import { assert } from '../../domain/assert.ts'
import { isOrderId, isShortId, shortIdOf } from '../../domain/orders/identifiers.ts'
import type { Order } from '../../domain/orders/order.ts'
import { accept, refuse } from '../../domain/outcome.ts'
import { viewOrder } from '../view.ts'
import type { DeskWorld } from '../world.ts'
import type { CreateRequest, Desk, DeskOutcome, DeskRejection, OrderView, RetrySlot } from './desk.ts'
import { lockFinder } from './find_lock.ts'
import { FIRST_SEQUENCE, hashToken, type OpenOrder, orderOpener } from './open_order.ts'
import { orderLooks } from './order_looks.ts'
import { type PlanReaders, planOrder } from './plan_order.ts'
import { pairFinder } from './quoting.ts'
import { addressReader } from './read_address.ts'

type Parts = { readonly world: DeskWorld; readonly open: OpenOrder; readonly readers: PlanReaders }
type Created = { readonly order: OrderView; readonly isReplay: boolean }

/** POST /v1/order/create, GET /v1/order/{order_id} and GET /v1/orders. */
export function orderDesk(world: DeskWorld): Pick<Desk, 'createOrder' | 'findOrder' | 'listOrders'> {
  const open = orderOpener(world)
  const readers = {
    findPair: pairFinder(world.market.assets),
    findLock: lockFinder(world),
    addresses: addressReader(world),
  }
  const lookAt = orderLooks(world)
  return {
    createOrder: async (accountId, request, retry) => {
      const created = await createOrder({ world, open, readers }, { accountId, request, retry })
      if (!created.ok) return created
      const { order, isReplay } = created.value
      // Made again from the order id, so that a replay gives the same token; only its hash is stored.
      return { ok: true, value: { order, token: world.tokenOf(order.order_id), isReplay } }
    },
    findOrder: async (id, viewer) => {
      if (viewer.kind === 'token') {
        const order = await findByToken(world, id, viewer.token)
        return order === null ? null : viewOrder(order, world)
      }
      const look = isOrderId(id) ? await lookAt(id) : null
      return look?.order.terms.accountId === viewer.accountId ? look.view : null
    },
    listOrders: async (accountId, filter, { after, limit }) => {
      // One more than is wanted says whether there is a next page.
      const found = await findOrderPage(world.db, accountId, filter, after, limit + 1)
      const orders = found.slice(0, limit)
      const last = found.length > limit ? orders.at(-1)?.terms : undefined
      return {
        orders: orders.map((order) => viewOrder(order, world)),
        next: last === undefined ? null : { createdAtMs: last.createdAtMs, orderId: last.id },
      }
    },
  }
}

/** A token finds its order by the short id and by the full one. */
async function findByToken(world: DeskWorld, id: string, token: string): Promise<Order | null> {
  const isFull = isOrderId(id)
  if (!isFull && !isShortId(id)) return null
  const order = await findOrderByToken(world.db, isFull ? shortIdOf(id) : id, hashToken(token))
  return !isFull || order?.terms.id === id ? order : null
}

async function createOrder(
  { world, open, readers }: Parts,
  asked: { readonly accountId: string; readonly request: CreateRequest; readonly retry: RetrySlot },
): Promise<DeskOutcome<Created>> {
  const { accountId, retry } = asked
  const plan = await planOrder(world, readers, asked.request)
  const opened = plan.ok ? await open({ accountId, plan: plan.value, retry }) : plan
  if (opened?.ok) return accept({ order: opened.value, isReplay: false })
  // Only now is the slot looked at, because few requests are repeats: whatever would be said to a new one, a repeat
  // gets the first answer again.
  const earlier = await replay(world, accountId, retry)
  return earlier ?? opened ?? refuse(noAddress)
}

const noAddress: DeskRejection = {
  code: 'MAINTENANCE',
  message: 'no deposit address is ready at the moment; try again in a few seconds',
  retryAfterSeconds: 3,
}

async function replay(
  world: DeskWorld,
  accountId: string,
  retry: RetrySlot,
): Promise<DeskOutcome<Created> | null> {
  const earlier = await findEarlier(world.db, accountId, retry)
  if (!earlier?.ok) return earlier
  // As it was answered the first time, whatever became of the order since: its first event keeps that.
  const first = await findSnapshot(world.db, earlier.value.orderId, FIRST_SEQUENCE)
  assert(first !== null, 'a filled slot names an order, and an order has its first event')
  return accept({ order: first as OrderView, isReplay: true })
}
