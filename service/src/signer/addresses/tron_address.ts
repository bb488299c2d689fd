import { createHash } from 'node:crypto'
import { createBase58check } from '@scure/base'

/** https://developers.tron.network/docs/account: 0x41 and the last 20 bytes of the hash of the public key, in Base58Check. */
const MAIN = 0x41
const base58check = createBase58check((bytes: Uint8Array) => createHash('sha256').update(bytes).digest())

/** Out of the same 20 bytes that an EVM address has. */
export function tronAddressOf(evmAddress: string): string {
  return base58check.encode(Buffer.from(`41${evmAddress.slice(2)}`, 'hex'))
}

/** The text itself when it is an address, or null. Other spellings of an address (41…, 0x…) are none here. */
export function canonicalTronAddress(text: string): string | null {
  if (!/^T[1-9A-HJ-NP-Za-km-z]{33}$/.test(text)) return null
  try {
    const bytes = base58check.decode(text)
    return bytes.length === 21 && bytes[0] === MAIN ? text : null
  } catch {
    return null
  }
}

/** `41…`, as the bytes of a transaction have it. */
export function hexOfTronAddress(text: string): string {
  return Buffer.from(base58check.decode(text)).toString('hex')
}
