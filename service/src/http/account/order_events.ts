import type { FastifyRequest, RouteOptions } from 'fastify'
import Type from 'typebox'
import type { OrderView, Viewer } from '../../engine/desks/desk.ts'
import type { EventFeed, FeedEvent } from '../../engine/notify/feed.ts'
import { anyOrigin } from '../answers/answers.ts'
import { keepOpen, type OpenAnswer } from '../answers/open_answer.ts'
import { errorAnswers } from '../answers/problem_schema.ts'
import { invalidParameters } from '../errors.ts'
import { limitedAs } from '../limits/client_address.ts'
import type { RouteContext } from '../route_context.ts'
import { writeOrderEvent } from './order_event.ts'
import { orderReference } from './order_id.ts'
import { signedSecurity } from './signed_schema.ts'
import { orderAskedFor, seenBy } from './viewer.ts'

const NO_STORE = ['Cache-Control', 'no-store']
const HEADERS = ['Content-Type', 'text/event-stream; charset=utf-8', ...NO_STORE]
/** nginx would keep the events until its buffer is full. */
const UNBUFFERED = ['X-Accel-Buffering', 'no']
const GREETING = 'retry: 2000\n\n'
const BEAT = ':\n\n'

/** Server-Sent Events (https://html.spec.whatwg.org/multipage/server-sent-events.html) over the event log. */
export function orderEventsRoute(context: RouteContext): RouteOptions {
  const { answers, parts } = context
  return {
    method: 'GET',
    url: '/v1/order/:order_id/events',
    schema,
    async handler(request, reply) {
      const asked = await orderAskedFor(context, request, reply, 'stream')
      if (asked === null) return
      const { order, viewer } = asked
      // Also where nothing is told: a browser that may not read that comes back for ever.
      const origin = viewer.kind === 'token' ? anyOrigin : []
      const after = lastEventId(request)
      if (after === null) return answers.problem(request, reply, malformedId)
      const missed = await parts.feed.since(order.order_id, after)
      // Who has left meanwhile has closed already: nothing would ever give their seat back.
      if (reply.raw.destroyed || request.raw.socket.destroyed)
        return answers.raw(request, reply, 204, '', NO_STORE)
      // A browser that is told "no content" does not come back.
      if (missed.length === 0 && isFinal(order))
        return answers.raw(request, reply, 204, '', [...NO_STORE, ...origin])
      const tokenOf = viewer.kind === 'token' ? order.order_id : null
      const seat = context.seats.take(whoIs(context, request, viewer), tokenOf)
      if (seat === null) return answers.problem(request, reply, full)
      reply.raw.on('close', seat.leave)
      answers.open(request, reply, [...HEADERS, ...UNBUFFERED, ...origin])
      const answer = keepOpen(parts.clock, request, reply)
      if (request.raw.method === 'HEAD') return answer.end()
      const isAdmitted = viewer.kind === 'token' ? null : () => hasItsKey(context, request)
      reply.raw.on('close', stream(parts.feed, answer, { order, viewer, after, missed, isAdmitted }))
    },
  }
}

type Streamed = {
  readonly order: OrderView
  readonly viewer: Viewer
  readonly after: number
  readonly missed: readonly FeedEvent[]
  /** Asked before an event is told, and at every beat; null: for good. */
  readonly isAdmitted: (() => Promise<boolean>) | null
}

/** Gives what ends the following; an end of the answer ends it too. */
function stream(
  feed: EventFeed,
  answer: OpenAnswer,
  { order, viewer, after, missed, isAdmitted }: Streamed,
): () => void {
  let unfollow = () => {}
  const end = () => {
    unfollow()
    answer.end()
  }
  const tell = (event: FeedEvent) => {
    const shown = writeOrderEvent({ ...event, snapshot: seenBy(viewer, event.snapshot as OrderView) })
    answer.write(`id: ${event.sequence}\nevent: order.status_changed\ndata: ${shown}\n\n`)
    if (isFinal(event)) end()
  }
  let turn = Promise.resolve()
  // One after the other, so that nothing overtakes.
  const whenAdmitted = (act: () => void, whenUnknown: () => void) => {
    if (isAdmitted === null) return act()
    turn = turn.then(async () => ((await isAdmitted()) ? act() : end())).catch(whenUnknown)
  }
  answer.write(GREETING)
  for (const event of missed) tell(event)
  if (missed.some(isFinal)) return unfollow
  unfollow = feed.follow({
    orderId: order.order_id,
    after: missed.at(-1)?.sequence ?? after,
    // While the database is away nobody knows: an event must not be missed, so that they have to come back for it.
    tell: (event) => whenAdmitted(() => tell(event), end),
    beat: () => {
      // At once, because it tells nothing, and a database that is slow must not look like a line that has died.
      answer.write(BEAT)
      whenAdmitted(
        () => {},
        () => {},
      )
    },
    end,
  })
  return unfollow
}

/** The key may have been revoked since the request was proved. As long as it is not, an open stream is a use of it. */
async function hasItsKey({ parts }: RouteContext, { exchange }: FastifyRequest): Promise<boolean> {
  const key = exchange.keyId === null ? null : await parts.apiKeys.find(exchange.keyId)
  if (key !== null) parts.apiKeys.noteUse(key)
  return key !== null
}

function whoIs({ addressOf }: RouteContext, request: FastifyRequest, viewer: Viewer): string {
  return viewer.kind === 'account' ? viewer.accountId : limitedAs(addressOf(request.raw))
}

/** Nothing more happens to it that anybody waits for. An expired order may still be paid. */
function isFinal({ status }: Pick<OrderView, 'status'>): boolean {
  return status === 'DONE' || status === 'REFUNDED'
}

/** 0 without one; null when it is none of ours. */
function lastEventId(request: FastifyRequest): number | null {
  const id = request.headers['last-event-id'] ?? '0'
  return typeof id === 'string' && /^\d{1,9}$/.test(id) ? Number.parseInt(id, 10) : null
}

const malformedId = invalidParameters([
  { field: 'Last-Event-ID', message: 'must be the id of the last event that you have' },
])

const full = {
  code: 'RATE_LIMITED',
  message: 'too many streams are open: close some, or poll the order instead',
  retry_after: 30,
} as const

const schema = {
  tags: ['orders'],
  operationId: 'getOrderEvents',
  summary: 'Follow an order as it goes on',
  description: [
    'Server-Sent Events: every change of status, from the first or from after `Last-Event-ID` on, as webhooks tell it.',
    'The stream ends after DONE and REFUNDED, and otherwise after an hour; then come back with the last id that you have.',
    'A comment comes every 15 seconds. 204: there is nothing more to come.',
  ].join(' '),
  security: [...signedSecurity, { orderToken: [] }, { orderTokenQuery: [] }],
  params: Type.Object({ order_id: orderReference }),
  headers: Type.Object({
    'Last-Event-ID': Type.Optional(
      Type.String({ pattern: '^[0-9]{1,9}$', description: 'The last event that you have.', examples: ['2'] }),
    ),
  }),
  response: {
    200: {
      description: 'Events, each with the JSON of `OrderEvent` as its data and its sequence as its id.',
      content: { 'text/event-stream': { schema: Type.String() } },
    },
    204: { description: 'The order has ended, and you have all its events.', type: 'null' },
    ...errorAnswers(
      'INVALID_PARAMETER',
      'ORDER_NOT_FOUND',
      'UNAUTHORIZED',
      'INVALID_SIGNATURE',
      'TIMESTAMP_EXPIRED',
      'FORBIDDEN',
      'RATE_LIMITED',
    ),
  },
}
