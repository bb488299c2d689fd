import Type from 'typebox'
import type { Problem } from '../errors.ts'

/** The last 8 digits: enough together with a token. */
export function isShortId(text: string): boolean {
  return /^\d{8}$/.test(text)
}

export const orderIdSchema = Type.String({
  pattern: '^CB[0-9]{16}$',
  description: 'The order.',
  examples: ['CB4821093377160542'],
})

export const orderReference = Type.String({
  pattern: '^(CB[0-9]{16}|[0-9]{8})$',
  description: 'The order; with its token the last 8 digits are enough.',
  examples: ['CB4821093377160542'],
})

/** The same words for no order, someone else's order and no possible order. */
export const orderNotFound: Problem = { code: 'ORDER_NOT_FOUND', message: 'there is no such order' }
