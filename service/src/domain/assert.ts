/** An assertion that stays on: what it guards must never be false, and if it is we stop before money moves. */
export function assert(claim: boolean, message: string): asserts claim {
  if (!claim) throw new Error(`assertion failed: ${message}`)
}

/** Reached only if a union grew and a switch did not: then it does not compile. */
export function unreachable(value: never): never {
  const text = JSON.stringify(value, (_, part) => (typeof part === 'bigint' ? part.toString() : part))
  throw new Error(`unreachable: ${text}`)
}
