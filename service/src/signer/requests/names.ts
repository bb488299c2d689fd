import { chainFacts, isChainId } from '../../domain/catalog/networks.ts'
import type { OrderId } from '../../domain/orders/identifiers.ts'
import type { Intent, KeyPath, PayoutId } from '../../domain/payouts/intent.ts'
import { KEY_INDEX_MAX } from '../derivation.ts'
import { type Fields, integer, Malformed, oneOf, record, text } from './fields.ts'

/**
 * As many as the record can hold. Where time alone ends an attempt, one follows the other every minute for as long as a network
 * takes none, and whoever could sign no more for a number of an account could never again send after it.
 */
const ATTEMPTS_MAX = 2 ** 15 - 1

export const purposes = ['deposit', 'reserve', 'change'] as const

export function readIdentity(fields: Fields, family: Intent['family']) {
  const chain = text('intent.chain', fields.chain, /^[A-Z]{1,10}$/)
  if (!isChainId(chain) || chainFacts[chain].family !== family) {
    throw new Malformed(`intent.chain is not a chain of the family ${family}`)
  }
  return {
    chain,
    payoutId: payoutName('intent.payoutId', fields.payoutId),
    attempt: integer('intent.attempt', fields.attempt, 1, ATTEMPTS_MAX),
  }
}

export function readKey(name: string, value: unknown): KeyPath {
  const fields = record(name, value, ['purpose', 'index'])
  return {
    purpose: oneOf(`${name}.purpose`, fields.purpose, purposes),
    index: integer(`${name}.index`, fields.index, 0, KEY_INDEX_MAX),
  }
}

export function orderName(name: string, value: unknown): OrderId {
  return text(name, value, /^[A-Za-z0-9_-]{1,64}$/)
}

export function payoutName(name: string, value: unknown): PayoutId {
  return text(name, value, /^[A-Za-z0-9_-]{1,64}:[1-9]\d{0,8}$/)
}
