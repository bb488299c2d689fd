import { createHmac, type KeyObject } from 'node:crypto'
import { type SealedFor, type SealedTerms, sealText } from '../domain/orders/seal.ts'

/**
 * The seal of an order's terms, lowercase hex HMAC-SHA256. Made when the order is created and when it is given
 * a refund address; the signer checks it with its own copy of the key before any money leaves. Transfers from us to us are sealed
 * each time that one is to be signed, and that seal is kept nowhere.
 */
export function makeSeal(sealKey: KeyObject, terms: SealedTerms, whose?: SealedFor): string {
  return createHmac('sha256', sealKey).update(sealText(terms, whose)).digest('hex')
}

/**
 * Names a key without telling anything about it, in 16 hex digits. No order has such a seal: under a seal is a JSON array, and
 * this is none.
 */
export function sealKeyIdOf(sealKey: KeyObject): string {
  return createHmac('sha256', sealKey).update('cambist-order-seal-key-id').digest('hex').slice(0, 16)
}
