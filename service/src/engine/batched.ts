/** Whoever is answered may ask again, and that takes longer than until the end of this turn. */
const QUIET_TURNS = 2
/** Where turns are long and each brings somebody, the wait would be for ever. */
const TURNS_MAX = 8

/**
 * Gathers what arrives while the write before is under way into one write. Each caller waits for the write that
 * carries its item, and gets what that write answers in its item's place. Nobody waits for a batch to fill: with one
 * caller at a time nothing is delayed.
 *
 * With `endOfTurn` (of the clock) a write begins only when two turns of the event loop have brought nobody new, which is
 * at once when there is little to do, or after eight. The busier it is, the more items share what a statement costs by
 * itself; but while more arrive the database has nothing to do, so this is for writes that cost it little.
 *
 * `isOneToBlame` tells of an error that a single item can cause: then each item is written alone, and only the one
 * that cannot be written fails. With any other error all of them fail, for they would again.
 */
export function batched<Item, Answer>(
  write: (items: readonly Item[]) => Promise<readonly Answer[]>,
  options: {
    readonly itemsMax?: number
    readonly endOfTurn?: () => Promise<void>
    readonly isOneToBlame?: (error: unknown) => boolean
  } = {},
): (item: Item) => Promise<Answer> {
  const { itemsMax = 256, endOfTurn, isOneToBlame = () => false } = options
  type Waiting = { readonly item: Item; resolve(answer: Answer): void; reject(error: unknown): void }
  const waiting: Waiting[] = []
  let isWriting = false

  const writeBatch = async (batch: readonly Waiting[]): Promise<void> => {
    try {
      const answers = await write(batch.map(({ item }) => item))
      for (const [index, { resolve }] of batch.entries()) resolve(answers[index] as Answer)
    } catch (error) {
      if (batch.length > 1 && isOneToBlame(error)) for (const one of batch) await writeBatch([one])
      else for (const { reject } of batch) reject(error)
    }
  }

  const arrivalsEnded = async (turnEnds: () => Promise<void>): Promise<void> => {
    for (let turns = 0; turns < TURNS_MAX && waiting.length < itemsMax; turns += QUIET_TURNS) {
      const known = waiting.length
      for (let turn = 0; turn < QUIET_TURNS; turn += 1) await turnEnds()
      if (waiting.length === known) return
    }
  }

  const drain = async () => {
    isWriting = true
    while (waiting.length > 0) {
      if (endOfTurn !== undefined) await arrivalsEnded(endOfTurn)
      await writeBatch(waiting.splice(0, itemsMax))
    }
    isWriting = false
  }

  return (item) =>
    new Promise((resolve, reject) => {
      waiting.push({ item, resolve, reject })
      if (!isWriting) void drain()
    })
}
