import Type from 'typebox'
import { orderStatuses } from '../../domain/orders/order.ts'
import { instant, nullable, oneOf, oneOfSoFar } from '../json/schema.ts'
import { compileWriter, joined } from '../json/writer.ts'
import { orderSchema } from './order_schema.ts'

const ORDER_EVENT_TYPE = 'order.status_changed'

/** What receivers of webhooks are sent: the order as `GET` showed it when it happened, and its place in the order's history. */
export const orderEventSchema = Type.Object(
  {
    type: oneOfSoFar([ORDER_EVENT_TYPE], 'What happened.'),
    timestamp: instant('When it happened.'),
    data: Type.Object({
      ...(orderSchema as unknown as ReturnType<typeof Type.Object>).properties,
      sequence: Type.Integer({
        description: 'The place of the event in the history of its order: 1, 2, 3 and so on, without gaps.',
        examples: [2],
      }),
      previous_status: nullable(oneOf(orderStatuses, 'Null for the first event of an order.')),
    }),
  },
  { $id: 'OrderEvent' },
)

const write = compileWriter(orderEventSchema)

/** The order of an event is a view of it (`OrderView`) as the event log keeps it. */
export function writeOrderEvent(event: {
  readonly sequence: number
  readonly previousStatus: string | null
  readonly snapshot: unknown
  readonly atMs: number
}): string {
  const { sequence, previousStatus, snapshot, atMs } = event
  const data = { ...(snapshot as object), sequence, previous_status: previousStatus }
  return joined(write({ type: ORDER_EVENT_TYPE, timestamp: atMs, data }))
}
