import { endOfTurn } from '../clock.ts'

/**
 * Gathers what arrives while the write before is under way into one write. Each caller waits for the write that
 * carries its item, and gets what that write answers in its item's place. Nobody waits for a batch to fill: with one
 * caller at a time nothing is delayed. `isWholeTurn`: the first of many that arrive in one turn of the event loop does
 * not go alone, but with the others of that turn.
 *
 * `isOneToBlame` tells of an error that a single item can cause: then each item is written alone, and only the one
 * that cannot be written fails. With any other error all of them fail, for they would again.
 */
export function batched<Item, Answer>(
  write: (items: readonly Item[]) => Promise<readonly Answer[]>,
  { itemsMax = 256, isWholeTurn = false, isOneToBlame = (_error: unknown): boolean => false } = {},
): (item: Item) => Promise<Answer> {
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

  const drain = async () => {
    isWriting = true
    if (isWholeTurn) await endOfTurn()
    while (waiting.length > 0) await writeBatch(waiting.splice(0, itemsMax))
    isWriting = false
  }

  return (item) =>
    new Promise((resolve, reject) => {
      waiting.push({ item, resolve, reject })
      if (!isWriting) void drain()
    })
}
