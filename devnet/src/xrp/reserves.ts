/** In drops, as on the main network since December 2024. */
export const BASE_FEE = 10n
export const RESERVE_BASE = 1_000_000n
export const RESERVE_INCREMENT = 200_000n

export function reserveOf(ownerCount: number): bigint {
  return RESERVE_BASE + RESERVE_INCREMENT * BigInt(ownerCount)
}
