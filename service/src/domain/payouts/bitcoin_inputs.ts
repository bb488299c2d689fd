/** So many coins a transaction of ours spends at the most: about 34 kB, a third of what nodes relay. The signer signs no more. */
export const BITCOIN_INPUTS_MAX = 500

/** So many a payout is charged for, whoever is paid; most need fewer. */
export const BITCOIN_INPUTS_CHARGED = 3

/**
 * What one more payout can bring, of what the largest coins bring (the largest first), when `taken` of it is for others and a payout may spend
 * `countMax` of them. The others take the largest, and what is left of the last one comes back as change. Negative when they take more
 * than there is. Of coins that end early it is too little, unless `areEnough` says otherwise.
 */
export function leftForOne(brings: readonly bigint[], taken: bigint, countMax: number): bigint {
  const { left, due } = leaveTo(brings, taken)
  const largest = left.toSorted((one, other) => (one < other ? 1 : one > other ? -1 : 0)).slice(0, countMax)
  return largest.reduce((total, satoshi) => total + satoshi, -due)
}

/** Whether smaller coins than these could not change what `leftForOne` says. */
export function areEnough(brings: readonly bigint[], taken: bigint, countMax: number): boolean {
  const { left, due } = leaveTo(brings, taken)
  // The first may be the change of one of the others', and smaller than any.
  return due === 0n && left.length > countMax
}

/** What coins still bring, and what is still due, when others have taken theirs. */
function leaveTo(
  brings: readonly bigint[],
  taken: bigint,
): { readonly left: bigint[]; readonly due: bigint } {
  let due = taken
  const left: bigint[] = []
  for (const satoshi of brings) {
    if (due < satoshi) left.push(satoshi - due)
    due = due < satoshi ? 0n : due - satoshi
  }
  return { left, due }
}
