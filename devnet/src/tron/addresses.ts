import { sha256 } from '@noble/hashes/sha2.js'
import { keccak_256 } from '@noble/hashes/sha3.js'
import { createBase58check } from '@scure/base'

/** Inside, an address is 21 bytes as lower-case hex and starts with 41; the EVM knows the last 20 of them. */
const base58check = createBase58check(sha256)

export function toBase58(address: string): string {
  return base58check.encode(Buffer.from(address, 'hex'))
}

/** From either spelling; undefined when it is neither. */
export function parseAddress(text: unknown): string | undefined {
  if (typeof text !== 'string') return undefined
  if (isAddress(text.toLowerCase())) return text.toLowerCase()
  try {
    const decoded = Buffer.from(base58check.decode(text)).toString('hex')
    return isAddress(decoded) ? decoded : undefined
  } catch {
    return undefined
  }
}

export function isAddress(hex: unknown): hex is string {
  return typeof hex === 'string' && /^41[0-9a-f]{40}$/.test(hex)
}

export function addressOfPublicKey(uncompressed: Uint8Array): string {
  return `41${hexOf(keccak_256(uncompressed.subarray(1)).subarray(-20))}`
}

/** https://developers.tron.network/docs/create-transaction: by the transaction and the one who sent it. */
export function contractAddress(txId: string, owner: string): string {
  return `41${hexOf(keccak_256(Buffer.from(txId + owner, 'hex')).subarray(-20))}`
}

export function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex')
}

export function sha256Hex(hex: string): string {
  return hexOf(sha256(Buffer.from(hex, 'hex')))
}
