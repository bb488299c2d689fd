/** In stroops: a ten-millionth of a lumen. As on the main network. */
export const BASE_FEE = 100n
export const BASE_RESERVE = 5_000_000n
export const INT64_MAX = 2n ** 63n - 1n

/** What an account cannot spend: two base reserves for itself and one for each entry that it owns. */
export function reserveOf(subentries: number): bigint {
  return BASE_RESERVE * BigInt(2 + subentries)
}
