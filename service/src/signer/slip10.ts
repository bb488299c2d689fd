import { createHmac } from 'node:crypto'

const HARDENED = 0x8000_0000

/**
 * The ed25519 secret at a path, every step of which is hardened: the curve knows no other way.
 * https://github.com/satoshilabs/slips/blob/master/slip-0010.md
 */
export function deriveEd25519(seed: Uint8Array, path: readonly number[]): Uint8Array {
  const start = split('ed25519 seed', seed)
  return path.reduce(({ key, chainCode }, index) => {
    const step = Buffer.alloc(1 + key.length + 4)
    step.set(key, 1)
    step.writeUInt32BE(index + HARDENED, 1 + key.length)
    return split(chainCode, step)
  }, start).key
}

function split(hmacKey: string | Uint8Array, data: Uint8Array) {
  const hashed = createHmac('sha512', hmacKey).update(data).digest()
  return { key: hashed.subarray(0, 32), chainCode: hashed.subarray(32) }
}
