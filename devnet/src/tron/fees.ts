/** In sun, as on the main network since August 2025, by the names of `getchainparameters`. */
export const fees = {
  /** A byte for which there is no bandwidth. */
  getTransactionFee: 1_000n,
  getEnergyFee: 100n,
  /** In place of bandwidth, for a transaction that makes an account. */
  getCreateAccountFee: 100_000n,
  getCreateNewAccountFeeInSystemContract: 1_000_000n,
  /** For a transaction that carries a note. */
  getMemoFee: 1_000_000n,
  getMaxFeeLimit: 15_000_000_000n,
  /** Bytes a day and account. */
  getFreeNetLimit: 600n,
} as const

const DAY_MS = 86_400_000

/** What counts as used of the free bandwidth: it comes back evenly within a day. */
export function usedBandwidth(bandwidth: { used: bigint; atMs: number }, nowMs: number): bigint {
  const left = BigInt(Math.max(0, DAY_MS - Math.max(0, nowMs - bandwidth.atMs)))
  return (bandwidth.used * left) / BigInt(DAY_MS)
}
