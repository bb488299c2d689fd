/** `Math.max` of two bigints. */
export function larger(left: bigint, right: bigint): bigint {
  return left > right ? left : right
}
