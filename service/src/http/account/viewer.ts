import type { FastifyReply, FastifyRequest } from 'fastify'
import { isOrderId, isShortId } from '../../domain/orders/identifiers.ts'
import type { OrderView, Viewer } from '../../engine/desks/desk.ts'
import { hasCredentials, unauthorized } from '../auth/credentials.ts'
import { readOrderToken } from '../auth/order_token.ts'
import { invalidParameters } from '../errors.ts'
import { readQuery } from '../parameters/read_query.ts'
import { admitAnonymous, parameterOf, queryOf, type RouteContext } from '../route_context.ts'
import { orderNotFound } from './order_id.ts'
import { callerOf, followerOf } from './signed_post.ts'

/** What is asked of the order: to be shown, or to be told of it as it goes on. */
type Asked = 'order' | 'stream'

/** Who looks at an order, with an API key or with the order's token. Null when the request has been answered. */
async function viewerOf(
  context: RouteContext,
  request: FastifyRequest,
  reply: FastifyReply,
  what: Asked,
): Promise<Viewer | null> {
  const { answers } = context
  const token = readOrderToken(request)
  if (token.kind !== 'none') {
    if (!admitAnonymous(context, request, reply)) return null
    if (hasCredentials(request.raw)) {
      const message = 'is for callers without an API key: send one or the other'
      answers.problem(request, reply, unauthorized([{ field: 'X-ORDER-TOKEN', message }]))
      return null
    }
    if (token.kind === 'refused') {
      answers.problem(request, reply, token.rejection)
      return null
    }
    return { kind: 'token', token: token.token }
  }
  const caller =
    what === 'stream'
      ? await followerOf(context, request, reply)
      : await callerOf(context, request, reply, 'read', 1)
  if (caller === null) return null
  const read = readQuery({}, queryOf(request))
  if (!read.ok) {
    answers.problem(request, reply, invalidParameters(read.details))
    return null
  }
  return { kind: 'account', accountId: caller.key.accountId }
}

const withoutCallback = new WeakMap<OrderView, OrderView>()

/** Where a shop is told of its orders is no business of its customers, and may hold a secret: a token does not show it. */
export function seenBy(viewer: Viewer, order: OrderView): OrderView {
  if (viewer.kind === 'account' || order.callback_url === null) return order
  // The same object as long as the order stands as it stood: so it is written once.
  const known = withoutCallback.get(order) ?? { ...order, callback_url: null }
  withoutCallback.set(order, known)
  return known
}

/** The order that the path names, as far as whoever asks may see it. Null when the request has been answered. */
export async function orderAskedFor(
  context: RouteContext,
  request: FastifyRequest,
  reply: FastifyReply,
  what: Asked,
): Promise<{ readonly order: OrderView; readonly viewer: Viewer } | null> {
  const viewer = await viewerOf(context, request, reply, what)
  if (viewer === null) return null
  const id = parameterOf(request, 'order_id')
  const isPossible = isOrderId(id) || (viewer.kind === 'token' && isShortId(id))
  const order = isPossible ? await context.parts.desk.findOrder(id, viewer) : null
  if (order !== null) return { order: seenBy(viewer, order), viewer }
  context.answers.problem(request, reply, orderNotFound)
  return null
}
