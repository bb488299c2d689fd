/**
 * Of attempts that are looked for block by block: the last block that was read for each and does not have it. Those blocks are final,
 * so a line that breaks goes on there, and what was looked for to its end is not looked for again.
 */
export type ReadSoFar<Block> = {
  /** `first` when nothing was read yet. An attempt is named by what it refers to and its hash. */
  get(attempt: string, first: Block): Block
  set(attempt: string, block: Block): void
}

/** A few wait at a time; what is forgotten is read again. */
const REMEMBERED = 1_000

export function readSoFar<Block>(): ReadSoFar<Block> {
  const known = new Map<string, Block>()
  return {
    get: (attempt, first) => known.get(attempt) ?? first,
    set: (attempt, block) => {
      known.delete(attempt)
      known.set(attempt, block)
      const [oldest] = known.keys()
      if (known.size > REMEMBERED && oldest !== undefined) known.delete(oldest)
    },
  }
}
