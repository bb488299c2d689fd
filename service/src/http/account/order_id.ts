import Type from 'typebox'
import { ORDER_ID_PATTERN, SHORT_ID_PATTERN } from '../../domain/orders/identifiers.ts'
import type { Problem } from '../errors.ts'

export const orderIdSchema = Type.String({
  pattern: `^${ORDER_ID_PATTERN}$`,
  description: 'The order.',
  examples: ['CB4821093377160542'],
})

export const orderReference = Type.String({
  pattern: `^(${ORDER_ID_PATTERN}|${SHORT_ID_PATTERN})$`,
  description: 'The order; with its token the last 8 digits are enough.',
  examples: ['CB4821093377160542'],
})

/** The same words for no order, someone else's order and no possible order. */
export const orderNotFound: Problem = { code: 'ORDER_NOT_FOUND', message: 'there is no such order' }
