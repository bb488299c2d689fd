import { divide } from '../../domain/money/decimal.ts'
import { type OutputKind, scriptBytes } from './addresses.ts'

/**
 * Sizes of what our signer builds: version 2, P2WPKH inputs with sequence 0xfffffffd (BIP-125). A signature has
 * 71 or 72 bytes; 72 is assumed, so a transaction is never larger than this and at most half a vbyte per input smaller.
 */
const INPUT_WEIGHT = 4 * (32 + 4 + 1 + 4) + (1 + 1 + 72 + 1 + 33)
const FIXED_WEIGHT = 4 * (4 + 4) + 2

export function vbytesOf(inputs: number, outputs: readonly OutputKind[]): bigint {
  const counts = 4 * (compactSizeBytes(inputs) + compactSizeBytes(outputs.length))
  const outputBytes = outputs.reduce((sum, kind) => sum + 8 + 1 + scriptBytes[kind], 0)
  return vbytes(FIXED_WEIGHT + counts + inputs * INPUT_WEIGHT + 4 * outputBytes)
}

/** In satoshi, rounded up: a fee a fraction too low can be a refusal. */
export function feeFor(vbytes: bigint, milliSatPerVb: bigint): bigint {
  return divide(vbytes * milliSatPerVb, 1000n, 'up')
}

/** What it takes to spend one coin of ours at that rate, in satoshi. */
export function costOfInput(milliSatPerVb: bigint): bigint {
  return feeFor(vbytes(INPUT_WEIGHT), milliSatPerVb)
}

/** Outputs below this are not relayed: three times what spending them costs at 1 sat/vB (policy.cpp, GetDustThreshold). */
export function dustLimit(kind: OutputKind): bigint {
  const isWitness = kind === 'wpkh' || kind === 'wsh' || kind === 'tr'
  return 3n * BigInt(8 + 1 + scriptBytes[kind] + (isWitness ? 67 : 148))
}

/** Math.max for satoshi. */
export function highest(left: bigint, right: bigint): bigint {
  if (left > right) return left
  return right
}

function vbytes(weight: number): bigint {
  return BigInt(Math.ceil(weight / 4))
}

function compactSizeBytes(count: number): number {
  return count < 0xfd ? 1 : 3
}
