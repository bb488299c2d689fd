/** Words of ours as a list in a statement: `('DONE', 'EXPIRED')`. Written out, so that PostgreSQL sees which index has just these. */
export function textList(words: readonly string[]): string {
  return `(${words.map((word) => `'${word}'`).join(', ')})`
}
