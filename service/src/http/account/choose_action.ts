import type { RouteOptions } from 'fastify'
import Type from 'typebox'
import { ownerByKey } from '../../accounts/owner_acts.ts'
import { isOrderId } from '../../domain/orders/identifiers.ts'
import type { EmergencyAction } from '../../engine/desks/desk.ts'
import { errorAnswers } from '../answers/problem_schema.ts'
import { instant, success, text } from '../json/schema.ts'
import { compileWriter } from '../json/writer.ts'
import { address, listed } from '../parameters/kinds.ts'
import { optional, type Parameter } from '../parameters/parameter.ts'
import { parametersSchema } from '../parameters/read_body.ts'
import { parameterOf, type RouteContext } from '../route_context.ts'
import { orderIdSchema, orderNotFound } from './order_id.ts'
import { statusSchema } from './order_schema.ts'
import { admitSignedPost, headersOf, refuseWithoutCredentials } from './signed_post.ts'
import { idempotencyHeaders, signedSecurity } from './signed_schema.ts'

const actions = ['continue', 'refund', 'recalculate'] as const satisfies readonly EmergencyAction[]

/** Any text, because an unknown action has an error code of its own (spec 7). */
const action: Parameter<string> = {
  schema: Type.Unsafe({
    type: 'string',
    enum: actions,
    description:
      '`continue` accepts what arrived at the rate of the order, `recalculate` at the rate of now, `refund` returns it.',
  }),
  kind: 'string',
  absent: null,
  readText: (value) => ({ ok: true, value }),
}

const parameters = {
  action,
  refund_address: optional(
    address(
      'Where to return the deposit; needed for `refund` when the order has none, checked with every action.',
    ),
  ),
}

export const actionSchema = Type.Object(
  {
    order_id: orderIdSchema,
    status: statusSchema,
    message: text('For a person.', 'The deposit is being returned.'),
    updated_at: instant('When the action was taken.'),
  },
  { $id: 'ActionResult' },
)

const write = compileWriter(actionSchema)

export function chooseActionRoute(context: RouteContext): RouteOptions {
  const { answers, parts } = context
  return {
    method: 'POST',
    url: '/v1/order/:order_id/emergency',
    schema: { ...schema, body: parametersSchema(parameters, 'body') },
    onRequest: refuseWithoutCredentials(context),
    async handler(request, reply) {
      const post = await admitSignedPost(context, request, reply, { parameters, units: 1 })
      if (post === null) return
      const chosen = actions.find((name) => name === post.values.action)
      if (chosen === undefined) {
        const message = `action must be ${listed(actions)}`
        return answers.problem(request, reply, { code: 'INVALID_ACTION', message })
      }
      const orderId = parameterOf(request, 'order_id')
      if (!isOrderId(orderId)) return answers.problem(request, reply, orderNotFound)
      const owner = ownerByKey(post.key, context.addressOf(request.raw))
      const refundAddress = post.values.refund_address
      const outcome = await parts.desk.chooseAction(owner, orderId, chosen, refundAddress, post.retry)
      if (!outcome.ok) return answers.problem(request, reply, outcome.rejection)
      answers.data(request, reply, write(outcome.value), headersOf(outcome.value))
    },
  }
}

const schema = {
  tags: ['orders'],
  operationId: 'chooseAction',
  summary: 'Choose what happens to an order in EMERGENCY',
  description: 'One action wins; any other gets NOT_EMERGENCY.',
  security: signedSecurity,
  headers: idempotencyHeaders,
  params: Type.Object({ order_id: orderIdSchema }),
  response: {
    200: { description: 'What the action led to.', ...success(Type.Ref('ActionResult')) },
    ...errorAnswers(
      'INVALID_ACTION',
      'INVALID_ADDRESS',
      'REFUND_ADDRESS_REQUIRED',
      'UNAUTHORIZED',
      'INVALID_SIGNATURE',
      'TIMESTAMP_EXPIRED',
      'FORBIDDEN',
      'ORDER_NOT_FOUND',
      'NOT_EMERGENCY',
      'PAYLOAD_TOO_LARGE',
      'UNSUPPORTED_MEDIA_TYPE',
      'IDEMPOTENCY_CONFLICT',
      'RATE_LIMITED',
      'RATE_UNAVAILABLE',
      'MAINTENANCE',
    ),
  },
}
