import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto'
import { type SealedTerms, sealText } from '../domain/orders/seal.ts'

/** Whether these are the terms that were sealed; compared in constant time. Kept apart from the code that makes seals. */
export function isSealIntact(sealKey: KeyObject, terms: SealedTerms, seal: string): boolean {
  if (!/^[0-9a-f]{64}$/.test(seal)) return false
  const expected = createHmac('sha256', sealKey).update(sealText(terms)).digest()
  return timingSafeEqual(expected, Buffer.from(seal, 'hex'))
}
