import Type from 'typebox'
import { orderStatuses } from '../../domain/orders/order.ts'
import { deliveryStates } from '../../engine/desks/webhook_desk.ts'
import { instant, nullable, oneOf, text } from '../json/schema.ts'
import { orderIdSchema } from './order_id.ts'

const states = [
  '`waiting` for its first or next attempt; `delivered`: answered with 2xx; `exhausted`: ten attempts failed;',
  '`cancelled`: the receiver answered 410, or its endpoint was disabled or deleted.',
].join(' ')

const attemptSchema = Type.Object({
  began_at: instant('When it was written down, right before it was sent.'),
  ended_at: nullable(instant('Null while it is under way.')),
  outcome: oneOf(
    ['answered', 'forbidden', 'failed', 'unknown'],
    '`forbidden`: not sent, because the URL leads where nothing is sent to; `failed`: no answer, or none in time; `unknown`: under way, or whoever sent it died.',
  ),
  http_status: nullable(Type.Integer({ description: 'Null without an answer.', examples: [200] })),
  response: nullable(text('The first 1,000 bytes of the answer, or why there was none.', 'ok')),
})

export const deliveryIdSchema = Type.String({
  description: 'The delivery.',
  examples: ['CB4821093377160542-2-callback'],
})

export const deliverySchema = Type.Object(
  {
    id: deliveryIdSchema,
    webhook_id: text('The `webhook-id` that the receiver sees.', 'evt_CB4821093377160542_2'),
    order_id: orderIdSchema,
    sequence: Type.Integer({ description: 'Which event of the order.', examples: [2] }),
    status: oneOf(orderStatuses, 'What the order became by the event.'),
    url: Type.String({ format: 'uri', description: 'Where it goes.' }),
    endpoint_id: nullable(text('Null for the `callback_url` of the order.', 'we_0123456789abcdef')),
    state: oneOf(deliveryStates, states),
    event_at: instant('When the event happened.'),
    next_attempt_at: nullable(instant('Null when it is over.')),
    ended_at: nullable(instant('Null while it is `waiting`.')),
    attempts: Type.Array(attemptSchema, { description: 'The newest 20, the oldest of them first.' }),
  },
  { $id: 'WebhookDelivery' },
)

export const endpointSchema = Type.Object(
  {
    id: text('The endpoint.', 'we_0123456789abcdef'),
    url: Type.String({ format: 'uri', description: 'Where it is.' }),
    created_at: instant('When it was added.'),
    disabled_at: nullable(instant('Null while it is enabled.')),
    disabled_by: nullable(oneOf(['owner', 'receiver'], '`receiver`: it answered 410.')),
  },
  { $id: 'WebhookEndpoint' },
)
