import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto'
import { sealedFor, sealText } from '../domain/orders/seal.ts'
import type { Authority } from './signer.ts'

/**
 * Whether these are the terms that were sealed, and for such an outflow; compared in constant time. Kept apart from the code that
 * makes seals.
 */
export function isSealIntact(sealKey: KeyObject, authority: Omit<Authority, 'payeeKey'>): boolean {
  const { seal } = authority
  if (!/^[0-9a-f]{64}$/.test(seal)) return false
  const expected = createHmac('sha256', sealKey)
    .update(sealText(authority, sealedFor(authority)))
    .digest()
  return timingSafeEqual(expected, Buffer.from(seal, 'hex'))
}
