/** What somebody else said, as a text column can keep it: PostgreSQL keeps no NUL, and an answer may be of any length. */
export function keptText(said: string, lengthMax: number): string {
  return said.replaceAll('\0', '').slice(0, lengthMax)
}
