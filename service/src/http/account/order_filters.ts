import Type from 'typebox'
import { ORDER_ID_PATTERN } from '../../domain/orders/identifiers.ts'
import { orderStatuses } from '../../domain/orders/order.ts'
import type { OrderFilter, OrderPage, OrderPosition } from '../../engine/desks/desk.ts'
import { compileWriter } from '../json/writer.ts'
import { choice, instant, listOf, wholeNumber } from '../parameters/kinds.ts'
import { optional, type Parameter, type Values, withDefault } from '../parameters/parameter.ts'
import { orderPageSchema, orderSchema } from './order_schema.ts'

const CURSOR = new RegExp(`^(0|[1-9][0-9]{0,14})\\.(${ORDER_ID_PATTERN})$`)

/** Where a page begins. To the client it is a word; to us the place of the last order before. */
const cursor: Parameter<OrderPosition> = {
  schema: Type.String({ description: 'The `next_cursor` of the page before.', minLength: 1, maxLength: 100 }),
  kind: 'string',
  absent: null,
  readText: (text) => {
    const plain = Buffer.from(text, 'base64url').toString('latin1')
    const [, createdAt, orderId] = CURSOR.exec(plain) ?? []
    return createdAt === undefined || orderId === undefined || writeCursorText(plain) !== text
      ? { ok: false, problem: 'must be a next_cursor as it was answered' }
      : { ok: true, value: { createdAtMs: Number.parseInt(createdAt, 10), orderId } }
  },
}

function writeCursorText(plain: string): string {
  return Buffer.from(plain, 'latin1').toString('base64url')
}

export const filterParameters = {
  status: optional(
    listOf(
      choice(orderStatuses, 'Where an order is.'),
      { min: 1, max: orderStatuses.length },
      'Only orders in one of these.',
    ),
  ),
  created_after: optional(instant('Only orders that were created then or later.')),
  created_before: optional(instant('Only orders that were created before.')),
  updated_after: optional(instant('Only orders that changed then or later.')),
}

export const pageParameters = {
  limit: withDefault(wholeNumber(1, 100, 'How many orders a page has at most.'), 50),
  cursor: optional(cursor),
}

export function filterOf(values: Values<typeof filterParameters>): OrderFilter {
  return {
    statuses: values.status,
    createdFromMs: values.created_after,
    createdBeforeMs: values.created_before,
    updatedFromMs: values.updated_after,
  }
}

const write = compileWriter(orderPageSchema, { Order: orderSchema })

export function writeOrderPage({ orders, next }: OrderPage): string {
  const nextCursor = next === null ? null : writeCursorText(`${next.createdAtMs}.${next.orderId}`)
  return write({ orders, next_cursor: nextCursor })
}
