/** What a memo of the kind text holds, in UTF-8. */
export const STELLAR_MEMO_BYTES_MAX = 28

const UINT64_MAX = 2n ** 64n - 1n

/** Whether it is a number as a muxed address and a memo of the kind id carry one, written in the only right way. */
export function isStellarId(text: string): boolean {
  return /^(0|[1-9]\d{0,19})$/.test(text) && BigInt(text) <= UINT64_MAX
}

/** A number becomes a memo of the kind id, and everything else one of the kind text. */
export function stellarMemoKind(text: string): 'id' | 'text' {
  return isStellarId(text) ? 'id' : 'text'
}
