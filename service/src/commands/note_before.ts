/** The end of what a command says that has closed something: whoever goes on after somebody else goes by the note. */
export function noteBefore(about: string): string {
  return `Before you send it: \`cambist audit note ${about} --because …\``
}
