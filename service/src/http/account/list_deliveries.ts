import type { RouteOptions } from 'fastify'
import Type from 'typebox'
import { isOrderId, ORDER_ID_PATTERN } from '../../domain/orders/identifiers.ts'
import { deliveryStates, type WebhookDesk } from '../../engine/desks/webhook_desk.ts'
import { jsonNoStore } from '../answers/answers.ts'
import { errorAnswers } from '../answers/problem_schema.ts'
import { invalidParameters } from '../errors.ts'
import { nullable, success, text } from '../json/schema.ts'
import { compileWriter } from '../json/writer.ts'
import { choice, wholeNumber } from '../parameters/kinds.ts'
import { optional, type Parameter, type Values, withDefault } from '../parameters/parameter.ts'
import { parametersSchema } from '../parameters/read_body.ts'
import { readQuery } from '../parameters/read_query.ts'
import { queryOf, type RouteContext } from '../route_context.ts'
import { deliverySchema } from './delivery_schema.ts'
import { orderIdSchema } from './order_id.ts'
import { callerOf } from './signed_post.ts'
import { signedSecurity } from './signed_schema.ts'

type Position = {
  readonly eventAtMs: number
  readonly orderId: string
  readonly receiver: string
  readonly sequence: number
}

const orderId: Parameter<string> = {
  schema: orderIdSchema,
  kind: 'string',
  absent: null,
  readText: (given) =>
    isOrderId(given) ? { ok: true, value: given } : { ok: false, problem: 'must be an order id' },
}

const CURSOR = new RegExp(
  `^(0|[1-9][0-9]{0,14})\\.(${ORDER_ID_PATTERN})\\.([a-z0-9_]{1,40})\\.([1-9][0-9]{0,8})$`,
)

/** Where a page begins. To the client it is a word; to us the place of the last delivery before. */
const cursor: Parameter<Position> = {
  schema: Type.String({ description: 'The `next_cursor` of the page before.', minLength: 1, maxLength: 200 }),
  kind: 'string',
  absent: null,
  readText: (given) => {
    const plain = Buffer.from(given, 'base64url').toString('latin1')
    const read = CURSOR.exec(plain)
    const [, eventAt = '', order = '', receiver = '', sequence = ''] = read ?? []
    return read === null || cursorOf(plain) !== given
      ? { ok: false, problem: 'must be a next_cursor as it was answered' }
      : {
          ok: true,
          value: {
            eventAtMs: Number.parseInt(eventAt, 10),
            orderId: order,
            receiver,
            sequence: Number.parseInt(sequence, 10),
          },
        }
  },
}

function cursorOf(plain: string): string {
  return Buffer.from(plain, 'latin1').toString('base64url')
}

export const deliveryParameters = {
  order_id: optional(orderId),
  state: optional(choice(deliveryStates, 'Only deliveries in this state.')),
  limit: withDefault(wholeNumber(1, 100, 'How many deliveries a page has at most.'), 50),
  cursor: optional(cursor),
}

export const deliveryPageOf = (item: typeof deliverySchema | ReturnType<typeof Type.Ref>) =>
  Type.Object({
    deliveries: Type.Array(item),
    next_cursor: nullable(text('Gives the next page; null on the last one.', 'MTc5MDAwMDAwMDAwMC5DQjQ4')),
  })

const write = compileWriter(deliveryPageOf(deliverySchema))

export function listDeliveriesRoute(context: RouteContext): RouteOptions {
  const { answers, parts } = context
  return {
    method: 'GET',
    url: '/v1/account/webhooks/deliveries',
    schema: { ...schema, querystring: parametersSchema(deliveryParameters, 'query') },
    async handler(request, reply) {
      const caller = await callerOf(context, request, reply, 'read', 1)
      if (caller === null) return
      const read = readQuery(deliveryParameters, queryOf(request))
      if (!read.ok) return answers.problem(request, reply, invalidParameters(read.details))
      const page = await readDeliveries(parts.webhooks, caller.key.accountId, read.values)
      answers.data(request, reply, write(page), jsonNoStore)
    },
  }
}

/** A page as it is written. */
export async function readDeliveries(
  webhooks: WebhookDesk,
  accountId: string,
  { order_id: orderId, state, limit, cursor: after }: Values<typeof deliveryParameters>,
): Promise<object> {
  const { deliveries, next } = await webhooks.listDeliveries(accountId, { orderId, state }, { after, limit })
  const next_cursor =
    next === null ? null : cursorOf([next.eventAtMs, next.orderId, next.receiver, next.sequence].join('.'))
  return { deliveries, next_cursor }
}

const schema = {
  tags: ['webhooks'],
  operationId: 'listWebhookDeliveries',
  summary: 'List webhook deliveries with their attempts',
  description: 'The newest event first. Deliveries that are over are kept for 30 days.',
  security: signedSecurity,
  response: {
    200: { description: 'A page of deliveries.', ...success(deliveryPageOf(Type.Ref('WebhookDelivery'))) },
    ...errorAnswers(
      'INVALID_PARAMETER',
      'UNAUTHORIZED',
      'INVALID_SIGNATURE',
      'TIMESTAMP_EXPIRED',
      'FORBIDDEN',
      'RATE_LIMITED',
    ),
  },
}
