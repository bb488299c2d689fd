import { createHmac, type KeyObject } from 'node:crypto'
import { type SealedTerms, sealText } from '../domain/orders/seal.ts'

/**
 * The seal of an order's terms, lowercase hex HMAC-SHA256. Made when the order is created and when it is given
 * a refund address; the signer checks it with its own copy of the key before any money leaves.
 */
export function makeSeal(sealKey: KeyObject, terms: SealedTerms): string {
  return createHmac('sha256', sealKey).update(sealText(terms)).digest('hex')
}

/**
 * Names a key without telling anything about it, in 16 hex digits. No order has such a seal: under a seal is a JSON array, and
 * this is none.
 */
export function sealKeyIdOf(sealKey: KeyObject): string {
  return createHmac('sha256', sealKey).update('cambist-order-seal-key-id').digest('hex').slice(0, 16)
}
