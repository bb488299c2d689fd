import { createPrivateKey, createPublicKey } from 'node:crypto'
import { base58 } from '@scure/base'
import type { KeyPath } from '../../domain/payouts/intent.ts'
import type { Keys } from '../derivation.ts'

/** What comes before the 32 bytes of a seed: https://www.rfc-editor.org/rfc/rfc8410#section-7 */
const PKCS8 = Buffer.from('302e020100300506032b657004220420', 'hex')
const BYTES = 32

/** The public key in base58. */
export function solanaAddress(keys: Pick<Keys, 'privateKey'>, key: KeyPath): string {
  const der = Buffer.concat([PKCS8, keys.privateKey('solana', key)])
  const publicKey = createPublicKey(createPrivateKey({ key: der, format: 'der', type: 'pkcs8' }))
  return base58.encode(publicKey.export({ format: 'der', type: 'spki' }).subarray(-BYTES))
}

/** The text itself when it is an address, or null: 32 bytes have one spelling. */
export function canonicalSolanaAddress(text: string): string | null {
  if (!/^[1-9A-HJ-NP-Za-km-z]{32,44}$/.test(text)) return null
  return base58.decode(text).length === BYTES ? text : null
}
