/**
 * Whether a memo is written so that it says what whoever gave it sees. A space that was copied with a number makes words of it, and
 * another memo, which where many share an account is nobody's.
 */
export function isPlainMemo(text: string): boolean {
  return text !== '' && text.isWellFormed() && !/\p{Cc}|^[\s\p{Cf}]|[\s\p{Cf}]$/u.test(text)
}
