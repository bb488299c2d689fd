import { isSameKey, type SolanaIntent } from './intent.ts'

/** https://solana.com/docs/core/fees */
const LAMPORTS_PER_SIGNATURE = 5_000n
const MICRO = 1_000_000n

/** What the network takes of whoever pays it, in lamports, without accounts that are made. */
export function solanaFee(signatures: number, units: number, unitPriceMicroLamports: bigint): bigint {
  const priority = (BigInt(units) * unitPriceMicroLamports + MICRO - 1n) / MICRO
  return BigInt(signatures) * LAMPORTS_PER_SIGNATURE + priority
}

/** The same of an exact transaction. */
export function solanaFeeOf({ from, payer, computeUnits, unitPriceMicroLamports }: SolanaIntent): bigint {
  return solanaFee(isSameKey(from, payer) ? 1 : 2, computeUnits, unitPriceMicroLamports)
}

/** What a unit may cost so that all of them cost no more than that. */
export function unitPriceWithin(lamports: bigint, units: number): bigint {
  return (lamports * MICRO) / BigInt(units)
}
