/**
 * Each control character as JSON writes it, those from U+007F to U+009F too, which JSON leaves as they are: a terminal obeys
 * them, and what strangers send us (a User-Agent, a name) may hold some.
 */
export function escapeControls(text: string): string {
  return text.replace(
    /\p{Cc}/gu,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
