/**
 * Gathers what arrives while the write before is under way into one write. Each caller waits for the write that
 * carries its item; when that fails, everyone in it is told. With one caller at a time nothing is delayed.
 */
export function batched<Item>(
  write: (items: readonly Item[]) => Promise<void>,
  itemsMax = 256,
): (item: Item) => Promise<void> {
  type Waiting = { readonly item: Item; resolve(): void; reject(error: unknown): void }
  let waiting: Waiting[] = []
  let isWriting = false

  const drain = async () => {
    isWriting = true
    while (waiting.length > 0) {
      const batch = waiting.slice(0, itemsMax)
      waiting = waiting.slice(itemsMax)
      try {
        await write(batch.map(({ item }) => item))
        for (const { resolve } of batch) resolve()
      } catch (error) {
        for (const { reject } of batch) reject(error)
      }
    }
    isWriting = false
  }

  return (item) =>
    new Promise((resolve, reject) => {
      waiting.push({ item, resolve, reject })
      if (!isWriting) void drain()
    })
}
